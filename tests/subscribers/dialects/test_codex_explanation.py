"""Hook files of the Codex family explained, handler by handler."""

from __future__ import annotations

import json

import pytest

from subscribers.dialects.codex_explanation import explain
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, PROFILES, Profile
from subscribers.dialects.codex_spec import TrustState
from subscribers.hooks.explanation import Explained, ExplainedFile, document

PATH = "/h/.codex/hooks.json"
GOOD = {"type": "command", "command": "ok"}


def explained(hooks: object, profile: Profile = CODEX, **options: object) -> Explained:
    """A document of hooks, explained."""
    return explain(json.dumps({"hooks": hooks}, indent=1).encode(), PATH, profile, **options)  # type: ignore[arg-type]


def test_every_handler_has_a_status_and_a_line() -> None:
    """Those that run, those that are skipped, those that are wrong, and those that nothing starts."""
    found = explained(
        {
            "PreToolUse": [
                {"matcher": "[", "hooks": [GOOD]},
                {
                    "matcher": "Bash",
                    "hooks": [
                        GOOD,
                        {"type": "prompt"},
                        {"type": "mcp_tool", "server": "s", "tool": "t"},
                        {**GOOD, "timeout": 1.5},
                        7,
                    ],
                },
            ],
            "Bogus": [{"hooks": [GOOD]}],
            "Stop": [{"hooks": [{**GOOD, "timeout": 5}]}],
        }
    )
    assert [(each.name, each.index, each.status, each.line) for each in found.handlers] == [
        ("PreToolUse#0.0", 0, "dead", 7),
        ("PreToolUse#1.0", 1, "ok", 16),
        ("PreToolUse#1.1", 2, "skipped", 20),
        ("PreToolUse#1.2", 3, "skipped", 23),
        ("PreToolUse#1.3", 4, "refused", 28),
        ("PreToolUse#1.4", 5, "refused", 33),
        ("Stop#0.0", 0, "ok", 50),
        ("Bogus#0.0", 0, "dead", 40),
    ]
    assert [each.code for each in found.diagnostics] == ["upstream_refuses"]
    runs, calls, stop, bogus = (found.handlers[place] for place in (1, 3, 6, 7))
    assert (calls.command, calls.args) == ("s", ("t",))
    assert (runs.topics, runs.command, runs.matcher) == (("prx.lifecycle.tool_call_start",), "ok", "Bash")
    assert (runs.timeout_s, runs.timeout_from) == (600.0, "default")
    assert (stop.topics, stop.timeout_s, stop.timeout_from) == (("prx.lifecycle.turn_complete",), 5.0, "own")
    assert (bogus.topics, bogus.timeout_s, bogus.timeout_from) == ((), None, None)


def test_what_codex_would_do_with_the_whole_file_is_always_said() -> None:
    """Beside the one handler that is left out; in strict reading nothing is left."""
    hooks = {"Stop": [{"hooks": [GOOD, {"type": "http", "url": "http://x"}]}]}
    found = explained(hooks)
    assert [each.status for each in found.handlers] == ["ok", "refused"]
    assert found.diagnostics[0].message.startswith(
        "Codex would refuse this whole file: unknown variant `http`"
    )
    strict = explained(hooks, strict=True)
    assert strict.refused
    assert [each.status for each in strict.handlers] == ["refused", "refused"]
    assert strict.diagnostics[0].code == "refused"
    assert explained(hooks, BITFUN).diagnostics == ()


def test_a_file_with_very_many_faults_says_what_codex_would_do() -> None:
    """And no handler that is wrong passes for one that is skipped on purpose."""
    found = explained({"Stop": [{"hooks": [{"type": "webhook"}] * 1_200}]})
    assert [each.code for each in found.diagnostics] == ["upstream_refuses", "more_findings"]
    assert {each.status for each in found.handlers} == {"refused"}


def test_codex_own_record_is_shown_with_key_and_hash() -> None:
    """For an agent that reviews handlers, and for no other."""
    hooks = {"Stop": [{"hooks": [GOOD]}]}
    (said,) = explained(hooks).handlers[0].diagnostics
    assert (said.code, said.severity) == ("review_untrusted", "info")
    key = f"{PATH}:stop:0:0"
    assert key in said.message
    digest = said.message.split("sha256:")[1][:64]
    for state, code in (
        (TrustState(True, f"sha256:{digest}"), "review_trusted"),
        (TrustState(True, "sha256:0"), "review_modified"),
        (TrustState(False), "review_disabled"),
    ):
        (said,) = explained(hooks, states={key: state}).handlers[0].diagnostics
        assert said.code == code
    assert explained(hooks, CLAUDE).handlers[0].diagnostics == ()


def test_records_of_the_file_itself_count() -> None:
    """A config.toml carries them."""
    text = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "x"\n'
    record = '[hooks.state."/h/config.toml:stop:0:0"]\n'
    reviewed = f'{text}{record}trusted_hash = "sha256:0"\n'
    (handler,) = explain(reviewed.encode(), "/h/config.toml", CODEX).handlers
    assert (handler.line, handler.diagnostics[0].code) == (2, "review_modified")
    off = f"{text}{record}enabled = false\n"
    (handler,) = explain(off.encode(), "/h/config.toml", CODEX).handlers
    assert (handler.status, handler.diagnostics[0].code) == ("skipped", "switched_off")


def test_handlers_of_claude_code() -> None:
    """Addresses, arguments, and what a failure means."""
    found = explained(
        {
            "PreToolUse": [
                {
                    "hooks": [
                        {"type": "http", "url": "http://x", "onFailure": "block"},
                        {**GOOD, "args": ["a"]},
                    ]
                }
            ],
            "SessionStart": [{"hooks": [{"type": "http", "url": "http://x"}, {**GOOD, "if": "Bash"}]}],
        },
        CLAUDE,
    )
    http, command, never, unmet = found.handlers
    assert (http.runtime, http.command, http.failure) == ("http", "http://x", "closed")
    assert (command.runtime, command.args, command.failure) == ("shell", ("a",), "open")
    assert (never.status, unmet.status) == ("dead", "dead")


def test_what_is_switched_off_is_skipped() -> None:
    """That is meant."""
    text = json.dumps({"disableAllHooks": True, "hooks": {"Stop": [{"hooks": [GOOD]}]}}).encode()
    found = explain(text, "/w/.claude/settings.json", CLAUDE)
    assert ([each.status for each in found.handlers], found.refused) == (["skipped"], False)


@pytest.mark.parametrize("text", [b"", b"{", b'{"x": 1}', b'{"hooks": []}', b"\xff"])
def test_a_file_that_is_refused_has_no_handlers(text: bytes) -> None:
    """And says why."""
    for profile in PROFILES.values():
        found = explain(text, PATH, profile)
        assert found.handlers == ()
        assert found.refused or profile.root_keys is None
        assert found.diagnostics or profile.root_keys is None


def test_an_explanation_can_be_printed_as_json() -> None:
    """Names of handlers, files and remarks are text."""
    file = ExplainedFile(PATH, "codex", "", "/h", True, explained({"Stop": [{"hooks": [GOOD, 7]}]}))
    assert json.loads(json.dumps(document([file])))["files"][0]["handlers"][1]["status"] == "refused"
    assert file.is_broken
