"""The records of Codex's user are found where Codex keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.dialects.codex_spec import TrustState
from subscribers.runner.inspection import explained, world
from subscribers.sources.codex_records import LARGEST, records


def test_the_records_of_the_users_configuration(tmp_path: Path) -> None:
    """In CODEX_HOME, else below the home directory."""
    text = '[hooks.state."/x/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    for folder, environ in (
        (tmp_path / "own", {"CODEX_HOME": str(tmp_path / "own")}),
        (tmp_path / "home" / ".codex", {"HOME": str(tmp_path / "home")}),
    ):
        assert records(environ) == {}
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(text)
        assert records(environ) == {"/x/hooks.json:stop:0:0": TrustState(None, "sha256:1")}


@pytest.mark.parametrize("text", ["", "model = 1", "[hooks", "hooks = 7", "#" * (LARGEST + 1)])
def test_a_file_without_records_has_none(tmp_path: Path, text: str) -> None:
    """Whatever is wrong with it is its owner's business."""
    (tmp_path / "config.toml").write_text(text)
    assert records({"CODEX_HOME": str(tmp_path)}) == {}


def test_a_check_of_codex_own_file_says_what_was_reviewed(tmp_path: Path) -> None:
    """Under the handler's key, with its hash; another hash is a change since."""
    hooks = tmp_path / ".codex" / "hooks.json"
    hooks.parent.mkdir()
    hooks.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}')
    environ = {"HOME": str(tmp_path), "PRXBUS_CONFIG_DIR": str(tmp_path / "none")}

    def review() -> tuple[str, str]:
        (file,) = explained([str(hooks)], None, world(environ))
        (handler,) = file.explained.handlers
        return next((d.code, d.message) for d in handler.diagnostics if d.code.startswith("review_"))

    code, message = review()
    assert code == "review_untrusted"
    digest = message.split("sha256:")[1][:64]
    for recorded, expected in ((digest, "review_trusted"), ("0", "review_modified")):
        record = f'[hooks.state."{hooks}:stop:0:0"]\ntrusted_hash = "sha256:{recorded}"\n'
        (hooks.parent / "config.toml").write_text(record)
        assert review()[0] == expected
