"""What is asked before a handler of the Codex family runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CODEX
from subscribers.hooks.trust_record import Record
from subscribers.runner.codex_invocation import Scene
from subscribers.runner.codex_runs import Runs
from subscribers.runner.codex_selection import Chosen
from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.reaper import Reaper
from subscribers.sources.codex_layers import Layer
from subscribers.sources.trust_files import look
from subscribers.sources.trust_gate import TrustGate
from subscribers.sources.trust_store import TrustStore


def test_handlers_of_a_trusted_workspace_run_as_recorded_only(tmp_path: Path) -> None:
    """A changed hook file or script starts nothing; the user's own, and imports, are not asked about."""
    workspace = tmp_path / "workspace"
    file, script = workspace / ".prxbus" / "hooks.json", workspace / "s.sh"
    file.parent.mkdir(parents=True)
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh ./s.sh"}]}]}})
    file.write_text(text)
    script.write_text("true")
    store = TrustStore(str(tmp_path / "state"))
    digests = look(str(workspace), {"PRXBUS_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)}).digests()
    store.write(Record(os.path.realpath(workspace), "now", digests))
    runs = Runs(cast(Reaper, None), cast(Deadlines, None))  # no run gets so far
    runs.refusal = "it was allowed to run"
    runs.gate = TrustGate(str(workspace), store)
    (handler,) = read_document(text.encode(), str(file), CODEX).handlers
    scene = Scene({}, str(workspace), str(workspace), "/run", "id", 0)

    def reason(scope: str = "project", *, imported: bool = False) -> str | None:
        layer = Layer("x", str(file), "codex", "user" if scope == "user" else "project")
        layer = layer._replace(verify=(lambda: None) if imported else None)
        return runs.run(Chosen(handler, CODEX, layer, b"{}", None), scene, 1.0).reason

    assert reason() == "it was allowed to run"
    script.write_text("false")
    assert reason() == "changed since prxbus trust: s.sh"
    file.write_text("{}")
    assert reason() == "changed since prxbus trust: .prxbus/hooks.json, s.sh"
    assert reason("user") == reason(imported=True) == "it was allowed to run"
