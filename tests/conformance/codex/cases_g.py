"""Part G: HTTP handlers of Claude Code's settings, as the caller, and as the server that is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CLAUDE
from subscribers.dialects.codex_result import FailurePolicy, Terms, judge
from subscribers.dialects.codex_result_values import COMPLETED, Judged
from subscribers.dialects.codex_spec import CodexHandler
from subscribers.hooks.outcome import NOTHING, Captured, Outcome
from subscribers.runner.codex_http import headers_of, outcome_of, refusal_of
from subscribers.runtimes.http_call import Reply
from tests.conformance.codex.conformance import Case

EVENT: Final = "PreToolUse"
DENY: Final = json.dumps(
    {
        "hookSpecificOutput": {
            "hookEventName": EVENT,
            "permissionDecision": "deny",
            "permissionDecisionReason": "no",
        }
    }
)
NOBODY: Final = Outcome.not_started("it cannot be reached: Connection refused")
TOO_SLOW: Final = Outcome("timeout", None, None, 5.0, NOTHING, NOTHING)


def reply(status: int, body: str) -> Outcome:
    """What a server's answer is as an outcome."""
    return outcome_of(Reply(status, Captured(body.encode(), b"", len(body.encode()))), 0.1)


def judged(outcome: Outcome, policy: FailurePolicy = "continue", event: str = EVENT) -> Judged:
    """What the caller makes of it."""
    return judge(event, CLAUDE, outcome, Terms(on_failure=policy, strict=True))


def completes(body: str) -> Callable[[], None]:
    """A check that nothing comes of an answer."""

    def check() -> None:
        assert judged(reply(200, body)) == COMPLETED

    return check


def goes_on(outcome: Outcome) -> None:
    """An error that blocks nothing, and is no context either."""
    for event in (EVENT, "UserPromptSubmit"):
        found = judged(outcome, event=event)
        assert found.status == "failed"
        assert (found.effects.verdict, found.effects.contexts) == ("none", ())


def g3() -> None:
    """A denial denies."""
    found = judged(reply(200, DENY))
    assert (found.status, found.effects.reason) == ("blocked", "no")


def g6() -> None:
    """A status can never block."""
    for status in (301, 403, 500):
        goes_on(reply(status, DENY))


def settings(event: str, **fields: Any) -> bytes:
    """Claude Code's settings with one HTTP handler."""
    handler = {"type": "http", "url": "http://127.0.0.1:9/hooks", **fields}
    return json.dumps({"hooks": {event: [{"hooks": [handler]}]}}).encode()


def handler(**fields: Any) -> CodexHandler:
    """That handler."""
    (found,) = read_document(settings(EVENT, **fields), "/h/.claude/settings.json", CLAUDE).handlers
    return found


def sent(**fields: Any) -> str:
    """The authorisation that it sends where the variable TOKEN is set."""
    return headers_of(handler(headers={"Authorization": "Bearer $TOKEN"}, **fields), {"TOKEN": "t0p"})[
        "Authorization"
    ]


def g9() -> None:
    """A name that is not allowed is the empty text."""
    assert sent(allowedEnvVars=["OTHER"]) == "Bearer "


def g10() -> None:
    """One that is allowed is its value."""
    assert sent(allowedEnvVars=["TOKEN"]) == "Bearer t0p"


def g11() -> None:
    """A handler that blocks on failure blocks on each of them, and not on a good answer."""
    for outcome in (reply(200, "hello"), reply(500, DENY), NOBODY, TOO_SLOW):
        found = judged(outcome, "block")
        how = "timed out" if outcome is TOO_SLOW else "failed"
        assert found.effects.reason == f'{EVENT} hook {how}; blocking because onFailure is "block"'
        assert (found.status, found.effects.verdict) == ("blocked", "deny")
    assert judged(reply(200, ""), "block") == COMPLETED


def g12() -> None:
    """An event that has no HTTP hooks calls none, and says so."""
    for event in ("SessionStart", "Setup"):
        found = read_document(settings(event), "/h/.claude/settings.json", CLAUDE)
        assert [each for each in found.handlers if each.unsupported is None] == []
        assert found.diagnostics


def g13() -> None:
    """A server beyond this machine is called only where its address is allowed."""
    url = "https://hooks.example.org/check"
    assert refusal_of(url, ()) is not None
    assert refusal_of(url, ("https://hooks.example.com/*",)) is not None
    assert refusal_of(url, ("https://hooks.example.org/*",)) is None


_CALL: Final = "tests/subscribers/runtimes/test_http_call.py"
_SERVER: Final = "tests/subscribers/http/test_agent_hooks.py"

CASES: Final[tuple[Case, ...]] = (
    Case("G1", "200 and nothing", completes("")),
    Case("G2", "200 and an empty object", completes("{}")),
    Case("G3", "200 and a denial", g3),
    Case("G4", "200 and plain text", lambda: goes_on(reply(200, "allowed"))),
    Case("G5", "200 and an array", lambda: goes_on(reply(200, "[]"))),
    Case("G6", "another status and a denial", g6),
    Case(
        "G7",
        "nobody listens",
        lambda: goes_on(NOBODY),
        (f"{_CALL}::test_nobody_there_is_a_failure_with_its_reason",),
    ),
    Case(
        "G8",
        "slower than its time",
        lambda: goes_on(TOO_SLOW),
        (f"{_CALL}::test_time_is_over_whatever_the_other_side_does",),
    ),
    Case(
        "G9",
        "a header with a variable that is not allowed; a server that refuses it",
        g9,
        (f"{_SERVER}::test_who_has_not_the_hooks_own_token_is_refused",),
    ),
    Case("G10", "and with one that is", g10),
    Case("G11", "failures with onFailure block", g11),
    Case("G12", "SessionStart has no HTTP hooks", g12),
    Case("G13", "an address that is not allowed", g13),
)
