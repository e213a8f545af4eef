"""Our secrets in an environment."""

from __future__ import annotations

import re
from pathlib import Path

import subscribers
from subscribers.hooks.withheld import API_TOKEN, HOOK_TOKEN, without_secrets


def test_both_tokens_are_taken_out_and_nothing_else() -> None:
    """A name is recognised in any case; what only begins like one of ours stays."""
    kept = {"HOME": "/h", "PRXBUS_RUNTIME_DIR": "/r", f"{HOOK_TOKEN}S": "x"}
    secret = dict.fromkeys((API_TOKEN, HOOK_TOKEN, API_TOKEN.lower()), "secret")
    assert without_secrets({**secret, **kept}) == kept


def test_there_is_one_list() -> None:
    """No other module writes the names down, so that a new secret is withheld everywhere at once."""
    root = Path(subscribers.__file__).parent
    written = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(f"[\"']({API_TOKEN}|{HOOK_TOKEN})[\"']", path.read_text())
    ]
    assert sorted(written) == ["hooks/withheld.py", "shim/hook_command.py"]
