"""``prxbus up`` with plugins, as a person starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from broker.client import Subscriber
from tests.integration.test_up import up

ROOT = Path(__file__).parents[2]
PRXBUS = os.path.join(sysconfig.get_path("scripts"), "prxbus")


def test_plugins_run_with_up(runtime_dir: Path, tmp_path: Path) -> None:
    """The ready line counts them, an event reaches them, and their calls are on the bus."""
    workspace = tmp_path / "workspace"
    shutil.copytree(ROOT / "examples" / "plugins" / "error-watch", workspace / "plugins" / "error-watch")
    environ = {
        "PRXBUS_RUNTIME_DIR": str(runtime_dir),
        "PRXBUS_WASM_CACHE_DIR": str(tmp_path / "cache"),
        "PRXBUS_WASM_STATE_DIR": str(tmp_path / "state"),
        "PRXBUS_HTTP_STATE_DIR": str(tmp_path / "http"),
    }
    with up(runtime_dir, "--workspace", str(workspace), "--http", "0", environ=environ) as (_, said):
        assert said["plugins"] == 1
        assert said["processes"].keys() >= {"broker", "shell", "wasm"}
        with Subscriber(["prx.hooks.run"], runtime_dir=str(runtime_dir)) as reports:
            published = subprocess.run(
                [PRXBUS, "pub", "prx.lifecycle.error", '{"message": "x"}'],
                env={**os.environ, **environ},
                timeout=40,
                check=False,
            )
            assert published.returncode == 0
            (report,) = reports.batch(max_events=1, timeout=40.0)
        assert (report.payload["hook"], report.payload["status"]) == ("plugin:error-watch", "ok")
