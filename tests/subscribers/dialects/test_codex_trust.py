"""Codex's keys and hashes, against vectors, and what its records say."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CODEX
from subscribers.dialects.codex_spec import CodexHandler, TrustState
from subscribers.dialects.codex_trust import (
    command_identity,
    merge_states,
    read_states,
    trust_hash,
    trust_key,
    trust_status,
)

# Each text is the canonical JSON that the rule asks for, written by hand; its SHA-256 is what is compared.
GOLDEN: list[tuple[str, dict[str, Any], str]] = [
    (
        "PreToolUse",
        {"matcher": "^Bash$", "hooks": [{"type": "command", "command": "echo hello"}]},
        (
            '{"event_name":"pre_tool_use","hooks":[{"async":false,"command":"echo hello","timeout":600,'
            '"type":"command"}],"matcher":"^Bash$"}'
        ),
    ),
    (
        "PreToolUse",
        {"hooks": [{"type": "command", "command": "echo hello"}]},
        (
            '{"event_name":"pre_tool_use","hooks":[{"async":false,"command":"echo hello","timeout":600,'
            '"type":"command"}]}'
        ),
    ),
    (
        "PreToolUse",
        {"matcher": "", "hooks": [{"type": "command", "command": "echo hello"}]},
        (
            '{"event_name":"pre_tool_use","hooks":[{"async":false,"command":"echo hello","timeout":600,'
            '"type":"command"}],"matcher":""}'
        ),
    ),
    (
        "Stop",
        {"matcher": "[", "hooks": [{"type": "command", "command": 'é "q" \\ \u2028\t', "timeout": 0}]},
        (
            '{"event_name":"stop","hooks":[{"async":false,"command":"é \\"q\\" \\\\ \u2028\\t","timeout":1,'
            '"type":"command"}]}'
        ),
    ),
    (
        "SessionEnd",
        {"hooks": [{"type": "command", "command": "x", "timeout": 600, "async": True}]},
        '{"event_name":"session_end","hooks":[{"async":true,"command":"x","timeout":3,"type":"command"}]}',
    ),
    (
        "UserPromptSubmit",
        {
            "hooks": [
                {
                    "type": "command",
                    "command": "x",
                    "statusMessage": "checking",
                    "additionalContextLimit": 20000,
                    "commandWindows": "y",
                    "bogus": 1,
                }
            ]
        },
        (
            '{"event_name":"user_prompt_submit","hooks":[{"additionalContextLimit":20000,"async":false,'
            '"command":"x","statusMessage":"checking","timeout":600,"type":"command"}]}'
        ),
    ),
    (
        "PostToolUse",
        {
            "matcher": "Edit|Write",
            "hooks": [
                {
                    "type": "mcp_tool",
                    "server": "s",
                    "tool": "t",
                    "input": {"b": [1, True], "a": "${x}"},
                    "statusMessage": "m",
                }
            ],
        },
        (
            '{"event_name":"post_tool_use","hooks":[{"input":{"a":"${x}","b":[1,true]},"server":"s",'
            '"statusMessage":"m","timeout":600,"tool":"t","type":"mcp_tool"}],"matcher":"Edit|Write"}'
        ),
    ),
]


def only(event: str, group: dict[str, Any], **options: Any) -> CodexHandler:
    """The one handler of a document with one group."""
    content = json.dumps({"hooks": {event: [group]}}).encode()
    (handler,) = read_document(content, "/home/me/.codex/hooks.json", CODEX, **options).handlers
    return handler


@pytest.mark.parametrize("event,group,canonical", GOLDEN, ids=[event for event, _, _ in GOLDEN])
def test_golden_vectors(event: str, group: dict[str, Any], canonical: str) -> None:
    """A handler's digest is the SHA-256 of the canonical JSON of what counts of it."""
    assert only(event, group).digest == "sha256:" + sha256(canonical.encode()).hexdigest()


def test_a_hash_that_codex_itself_recorded() -> None:
    """A public ``config.toml`` holds this record of a plugin's Stop hook."""
    command = "${PLUGIN_ROOT}/scripts/on-stop.sh"
    assert only("Stop", {"hooks": [{"type": "command", "command": command}]}).digest == (
        "sha256:6a3b3af655efa426e920425de93a830fe25b8b5a62ef7b9a699e7ff40d9ef351"
    )


def test_a_digest_has_the_form_of_the_record() -> None:
    """``sha256:`` and sixty-four digits."""
    found = only("PreToolUse", {"hooks": [{"type": "command", "command": "x"}]}).digest
    assert re.fullmatch("sha256:[0-9a-f]{64}", found)


def test_a_default_that_is_written_out_hashes_as_one_that_is_not() -> None:
    """An explicit limit of 2,500 and an explicit timeout of 600 are no change."""
    plain = only("PreToolUse", {"hooks": [{"type": "command", "command": "x"}]})
    explicit = {"type": "command", "command": "x", "timeout": 600, "additionalContextLimit": 2_500}
    assert only("PreToolUse", {"hooks": [explicit]}).digest == plain.digest


def test_the_command_is_chosen_before_it_is_hashed() -> None:
    """On Windows another command is another handler."""
    group = {"hooks": [{"type": "command", "command": "x", "command_windows": "y"}]}
    here, there = only("Stop", group), only("Stop", group, windows=True)
    assert (here.command, there.command) == ("x", "y")
    assert here.digest != there.digest
    assert there.digest == only("Stop", {"hooks": [{"type": "command", "command": "y"}]}).digest


def test_keys_are_positions() -> None:
    """Source, event in snake case, group and handler."""
    assert trust_key("p@m:hooks/hooks.json", "pre_tool_use", 0, 1) == "p@m:hooks/hooks.json:pre_tool_use:0:1"
    assert only("Stop", {"hooks": [{"type": "command", "command": "x"}]}).key == (
        "/home/me/.codex/hooks.json:stop:0:0"
    )


@given(st.text(), st.integers(1, 10**9), st.booleans(), st.none() | st.text(), st.none() | st.integers(0, 9))
def test_a_hash_depends_on_each_field(
    command: str, timeout: int, is_async: bool, status: str | None, limit: int | None
) -> None:
    """Two handlers have one hash exactly when what counts of them is the same."""
    identity = command_identity(
        command, timeout, is_async=is_async, status_message=status, context_limit=limit
    )
    same = trust_hash("stop", None, identity)
    assert same == trust_hash("stop", None, dict(reversed(identity.items())))
    assert same != trust_hash("stop", None, {**identity, "command": command + "x"})
    assert same != trust_hash("stop", "", identity)


def test_records_are_read_and_malformed_ones_left_out() -> None:
    """One bad entry harms no other."""
    assert read_states(
        {
            "a": {"enabled": False, "trusted_hash": "sha256:1"},
            "b": {"enabled": "no"},
            "c": {"trusted_hash": 7},
            "d": 7,
            " ": {"enabled": True},
            "e": {},
        }
    ) == {"a": TrustState(False, "sha256:1"), "e": TrustState()}
    assert read_states(None) == {}


def test_later_layers_win_field_by_field() -> None:
    """What a later layer does not say stays."""
    merged = merge_states(
        [
            {"a": TrustState(False, "1"), "b": TrustState(None, "2")},
            {"a": TrustState(True), "c": TrustState(False)},
        ]
    )
    assert merged == {
        "a": TrustState(True, "1"),
        "b": TrustState(None, "2"),
        "c": TrustState(False),
    }


def test_what_a_record_says() -> None:
    """Nothing, the same, something else, or that it is off."""
    handler = only("Stop", {"hooks": [{"type": "command", "command": "x"}]})
    records = {
        "untrusted": TrustState(),
        "trusted": TrustState(True, handler.digest),
        "modified": TrustState(None, "sha256:0"),
        "disabled": TrustState(False, handler.digest),
    }
    for status, state in records.items():
        assert trust_status(handler, {handler.key: state}) == status
    assert trust_status(handler, {}) == "untrusted"
