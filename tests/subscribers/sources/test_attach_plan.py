"""What is written into an agent's settings and taken out again: nothing else in them changes by a byte."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CLAUDE, CODEX
from subscribers.hooks.withheld import HOOK_TOKEN
from subscribers.sources.attach_plan import (
    LEFT_OUT,
    SHIM_NAME,
    SettingsRefused,
    Wanted,
    all_events,
    attach,
    chosen_events,
    default_events,
    detach,
    handlers_in,
    is_ours,
    words_of,
)

SHIM = "/opt/my tools/prxbus_hook.py"
WANTED = Wanted("/usr/bin/python3", SHIM, "/run/prxbus/hook.sock", ("PreToolUse", "SessionStart"))
URL = "http://127.0.0.1:16831/hooks/claude"
THEIRS: dict[str, Any] = {"type": "command", "command": "python3 lint.py", "timeout": 10}
PAGE = b"""{
    "permissions": {"allow": ["Bash(git *)"]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}
        ],
        "Stop": []
    },
    "ratio": 1.50
}
"""


def ours(text: bytes) -> dict[str, dict[str, Any]]:
    """Our handlers by event; each event has one at most."""
    found = [(event, handler) for event, handler in handlers_in(orjson.loads(text)) if is_ours(handler)]
    assert len(dict(found)) == len(found)
    return dict(found)


def test_the_entry_runs_the_hook_command_with_a_second_to_spare() -> None:
    """Its words are the interpreter, the file, dialect, socket, time and policy, quoted for a shell."""
    entry = ours(attach(None, WANTED, CLAUDE).text)["PreToolUse"]
    assert entry.keys() == {"type", "command", "timeout"}
    assert (entry["type"], entry["timeout"]) == ("command", 600)
    words = ["/usr/bin/python3", "-I", "-S", SHIM, "claude", "/run/prxbus/hook.sock", "599", "open"]
    assert entry["command"] == f"test -f '{SHIM}' || exit 0; exec {shlex.join(words)}"
    assert words_of(entry) == words
    closed = ours(attach(None, WANTED._replace(closed=True), CLAUDE).text)["PreToolUse"]
    assert closed["command"] == f"{shlex.join([*words[:-1], 'closed'])} || exit 2"
    assert words_of(closed) == [*words[:-1], "closed"]
    assert [words_of({"command": other}) for other in ("exec prxbus_hook.py", "a b c d e f g h", 5)] == [
        []
    ] * 3


@pytest.mark.parametrize("closed,status", [(False, 0), (True, 2)])
def test_an_agent_goes_on_when_we_are_gone(tmp_path: Path, closed: bool, status: int) -> None:
    """Uninstalled and not detached, nothing blocks it, unless it was to be blocked without an answer."""
    wanted = WANTED._replace(python=sys.executable, shim=str(tmp_path / SHIM_NAME), closed=closed)
    command = ours(attach(None, wanted, CODEX).text)["PreToolUse"]["command"]
    done = subprocess.run(command, shell=True, input=b"{}", capture_output=True, timeout=30, check=False)
    assert done.returncode == status


@pytest.mark.parametrize("closed,status", [(False, 127), (True, 2)])
def test_an_interpreter_that_is_not_there_blocks_where_that_is_wanted(
    tmp_path: Path, closed: bool, status: int
) -> None:
    """A shell's own exit code for that blocks no agent."""
    (tmp_path / SHIM_NAME).touch()
    wanted = WANTED._replace(python="/gone/python3", shim=str(tmp_path / SHIM_NAME), closed=closed)
    command = ours(attach(None, wanted, CODEX).text)["PreToolUse"]["command"]
    done = subprocess.run(command, shell=True, input=b"{}", capture_output=True, timeout=30, check=False)
    assert done.returncode == status


def test_codex_is_told_to_shorten_nothing_that_was_shortened_before() -> None:
    """On the events whose context has a limit; on others Codex would complain, and Claude Code knows none."""
    for profile in (CODEX, CLAUDE):
        text = attach(None, WANTED._replace(events=all_events(profile)), profile).text
        limits = {event: entry.get("additionalContextLimit") for event, entry in ours(text).items()}
        limited = {event for event, limit in limits.items() if limit is not None}
        five = {"PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit", "SubagentStart"}
        assert limited == (five if profile is CODEX else set())
        document = read_document(text, "/h/hooks.json", profile)
        assert document.diagnostics == ()
        assert {each.event for each in document.handlers if each.context_limit == 0} == limited


@pytest.mark.parametrize("profile", [CLAUDE, CODEX])
def test_time_and_policy_fit_the_event(profile: Any) -> None:
    """Short events get a short time, and only what can be denied is blocked without an answer."""
    wanted = WANTED._replace(events=all_events(profile), closed=True)
    found = ours(attach(None, wanted, profile).text)
    assert tuple(found) == all_events(profile)
    words = {event: words_of(entry) for event, entry in found.items()}
    assert [words["SessionEnd"][-2], found["SessionEnd"]["timeout"]] == ["2", 3]
    assert all(entry["timeout"] > float(words[event][-2]) > 0 for event, entry in found.items())
    assert all(isinstance(entry["timeout"], int) for entry in found.values())
    closed = {event for event in found if words[event][-1] == "closed"}
    assert {"PreToolUse", "UserPromptSubmit"} <= closed
    assert not closed & {"Stop", "SubagentStop", "SessionStart", "SessionEnd", "PostToolUse"}
    assert ("PermissionRequest" in closed) == (profile is CODEX)  # the other one does not honour exit code 2


def test_http_entries_carry_the_token_and_leave_the_rest_to_the_command() -> None:
    """SessionStart and Setup cannot be HTTP; a token in a variable is named, one in the file is not shown."""
    wanted = WANTED._replace(events=("PreToolUse", "Stop", "SessionStart", "Setup"), url=URL, closed=True)
    plan = attach(None, wanted, CLAUDE)
    entry = ours(plan.text)["PreToolUse"]
    assert entry == {
        "type": "http",
        "url": f"{URL}?timeout=599&closed=1",
        "headers": {"Authorization": f"Bearer ${HOOK_TOKEN}"},
        "timeout": 600,
        "allowedEnvVars": [HOOK_TOKEN],
        "onFailure": "block",
    }
    assert "onFailure" not in ours(plan.text)["Stop"]
    assert [ours(plan.text)[event]["type"] for event in ("SessionStart", "Setup")] == ["command"] * 2
    secret = attach(None, wanted._replace(authorization="Bearer s3cret"), CLAUDE)
    assert ours(secret.text)["Stop"]["headers"] == {"Authorization": "Bearer s3cret"}
    assert "allowedEnvVars" not in ours(secret.text)["Stop"]
    assert not any("s3cret" in change.entry for change in secret.changes)
    assert {e["type"] for e in ours(attach(None, wanted, CODEX).text).values()} == {"command"}


def test_lists_of_what_is_allowed_are_added_to_and_never_made() -> None:
    """Without such a list everything is allowed; with one our address must be in it. Detaching mends both."""
    text = b'{"allowedHttpHookUrls": ["https://x/*"], "httpHookAllowedEnvVars": []}\n'
    wanted = WANTED._replace(url=URL)
    attached = attach(text, wanted, CLAUDE).text
    settings = orjson.loads(attached)
    assert settings["allowedHttpHookUrls"] == ["https://x/*", f"{URL}*"]
    assert settings["httpHookAllowedEnvVars"] == [HOOK_TOKEN]
    assert attach(attached, wanted, CLAUDE).text == attached
    assert detach(attached).text == text
    assert orjson.loads(attach(b"{}", wanted, CLAUDE).text).keys() == {"hooks"}


def test_other_hooks_stay_with_every_byte_around_them() -> None:
    """The plan says what is added and what stays; what is put in is written as its surroundings are."""
    plan = attach(PAGE, WANTED, CLAUDE)
    assert [(change.what, change.event) for change in plan.changes] == [
        ("add", "PreToolUse"),
        ("add", "SessionStart"),
    ]
    assert plan.others == 1
    text = plan.text.decode()
    assert '"ratio": 1.50' in text
    assert '{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}' in text
    assert '\n            {\n                "hooks": [\n' in text
    taken = detach(plan.text)
    assert taken.text == PAGE
    assert [(change.what, change.event) for change in taken.changes] == [
        ("remove", "PreToolUse"),
        ("remove", "SessionStart"),
    ]


def test_attaching_again_replaces_what_is_outdated_and_leaves_what_is_right() -> None:
    """One entry for each event whatever was there: an old one, two, one for an event no longer wanted."""
    once = attach(PAGE, WANTED, CLAUDE).text
    assert attach(once, WANTED, CLAUDE).text == once
    assert {change.what for change in attach(once, WANTED, CLAUDE).changes} == {"keep"}
    moved = WANTED._replace(socket="/run/other/hook.sock", events=("PreToolUse", "Stop"))
    plan = attach(once, moved, CLAUDE)
    assert [(change.what, change.event) for change in plan.changes] == [
        ("replace", "PreToolUse"),
        ("add", "Stop"),
        ("remove", "SessionStart"),
    ]
    assert all("/run/other/" in entry["command"] for entry in ours(plan.text).values())
    assert ours(plan.text).keys() == {"PreToolUse", "Stop"}
    settings = orjson.loads(once)
    (group,) = settings["hooks"]["SessionStart"]
    group["hooks"] += [THEIRS, *group["hooks"]]
    mended = orjson.loads(attach(orjson.dumps(settings), WANTED, CLAUDE).text)
    assert mended["hooks"]["SessionStart"][0] == {"hooks": [THEIRS]}
    assert len(ours(orjson.dumps(mended))) == 2


@pytest.mark.parametrize(
    "text,why",
    [
        (b"{// mine\n}", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"hooks": []}', "'hooks' is not an object"),
        (b'{"hooks": null}', "'hooks' is not an object"),
        (b'{"hooks": {"Stop": {}}}', "'hooks.Stop' is not an array"),
    ],
)
def test_settings_of_another_shape_are_refused(text: bytes, why: str) -> None:
    """Nothing is guessed about a file that the agent itself might refuse."""
    with pytest.raises(SettingsRefused, match=why):
        attach(text, WANTED, CLAUDE)
    with pytest.raises(SettingsRefused, match=why):
        detach(text)


@pytest.mark.parametrize("text", [None, b"", b" \n", b"{}"])
def test_settings_that_say_nothing_are_begun(text: bytes | None) -> None:
    """No file, an empty one and an empty object become settings; detached, an empty object is left."""
    plan = attach(text, WANTED, CODEX)
    assert ours(plan.text).keys() == {"PreToolUse", "SessionStart"}
    assert detach(plan.text).text.strip() == b"{}"


@pytest.mark.parametrize(
    "handler,expected",
    [
        ({"type": "command", "command": f"python3 -I -S {shlex.quote(SHIM)} codex s 1 open"}, True),
        ({"type": "command", "command": "exec /x/prxbus_hook.py"}, True),
        ({"type": "command", "command": "cat prxbus_hook.py.old"}, False),
        ({"type": "command", "command": "echo 'prxbus_hook.py"}, False),
        ({"type": "command", "command": 5}, False),
        ({"type": "http", "url": f"{URL}?timeout=1"}, True),
        ({"type": "http", "url": "http://localhost/hooks/claude"}, True),
        ({"type": "http", "url": "http://127.0.0.1.evil.example/hooks/claude"}, False),
        ({"type": "http", "url": "https://example.com/hooks/claude"}, False),
        ("prxbus_hook.py", False),
    ],
)
def test_what_is_ours_is_recognised_by_what_it_runs(handler: Any, expected: bool) -> None:
    """By the file among its words or the address that it calls, and by nothing that only looks like it."""
    assert is_ours(handler) is expected


def test_events_can_be_chosen() -> None:
    """In the contract's order; an unknown one, and one that must not be attached, are refused and why."""
    assert chosen_events(CLAUDE, ["Stop", "PreToolUse"]) == ("PreToolUse", "Stop")
    assert "Interrupt" in default_events(CODEX)
    assert {"Setup", "Notification"} <= set(default_events(CLAUDE))
    assert not set(LEFT_OUT) & set(all_events(CLAUDE))
    for name, why in (("PreTool", "no event 'PreTool'"), ("WorktreeCreate", "would fail it")):
        with pytest.raises(SettingsRefused, match=why):
            chosen_events(CLAUDE, [name])


HANDLERS = st.sampled_from(
    [THEIRS, {"type": "prompt", "prompt": "ok?"}, {"type": "command", "command": "é\n"}]
)
GROUPS = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLERS, max_size=2)}, optional={"matcher": st.just("Bash")}
)
EVENTS = st.sampled_from(["PreToolUse", "SessionStart", "Stop", "Other"])
SETTINGS = st.fixed_dictionaries(
    {"hooks": st.dictionaries(EVENTS, st.lists(GROUPS, min_size=1, max_size=2), min_size=1, max_size=3)},
    optional={"model": st.just("x"), "n": st.just([1.5, None])},
)


@given(SETTINGS, st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans())
def test_detaching_undoes_attaching(settings: Any, indent: Any, url: bool) -> None:
    """Byte for byte, in whatever style the file is written; attached, every other hook is still there."""
    text = json.dumps(settings, indent=indent, ensure_ascii=False).encode() + b"\n"
    plan = attach(text, WANTED._replace(url=URL if url else None), CLAUDE)
    assert detach(plan.text).text == text
    theirs = [pair for pair in handlers_in(orjson.loads(plan.text)) if not is_ours(pair[1])]
    assert theirs == list(handlers_in(settings))
    assert plan.others == len(theirs)
    assert ours(plan.text).keys() == set(WANTED.events)
