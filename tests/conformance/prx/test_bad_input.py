"""What a hand-written file can have wrong: each kind, what is said about it, and what still runs.

The first table is of files, the second of commands, variables and folders. ``beside`` is a good action of
another event that stands in the same file: whatever is wrong, it runs, unless the file as a whole is refused.
The third column is our documented outcome, where PRX's own program does something else the README says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx
from subscribers.dialects.base import EventView, ParsedFile, Place
from subscribers.dialects.environment import RULES
from subscribers.dialects.prx_rules import METACHARACTERS
from subscribers.hooks.spec import HookSpec
from subscribers.sources import discover
from subscribers.sources.hook_source import Content, SourceState, Unreadable, advance
from subscribers.sources.resolve import Resolved, Unresolved, resolve

BESIDE = '"error": [{"command": "/bin/true"}]'
GOOD = '{"command": "/bin/true"}'


def parse(text: str | bytes) -> ParsedFile:
    """A file's meaning."""
    return prx.parse(text.encode() if isinstance(text, str) else text, "hooks.json")


def codes(parsed: ParsedFile) -> list[str]:
    """What was said."""
    return [diagnostic.code for diagnostic in parsed.diagnostics]


def ids(parsed: ParsedFile) -> list[str]:
    """What runs."""
    return [spec.id for spec in parsed.specs]


FILES: Sequence[tuple[str, str, list[str], list[str]]] = [
    # what, the file, what runs, what is said
    ("unknown key of the file", '{"enabled": true, "hooks": {BESIDE}}', ["error#0"], ["unknown_key"]),
    (
        "unknown key of an action",
        '{"hooks": {"tool_call": [{"command": "/bin/true", "timeoutms": 5}], BESIDE}}',
        ["tool_call#0", "error#0"],
        ["unknown_key"],
    ),
    ("unknown event", '{"hooks": {"tool_cal": [GOOD], BESIDE}}', ["error#0"], ["unknown_event"]),
    ("event with a dash", '{"hooks": {"tool-call": [GOOD], BESIDE}}', ["tool_call#0", "error#0"], []),
    ("event in capitals", '{"hooks": {"TOOL_CALL": [GOOD], BESIDE}}', ["tool_call#0", "error#0"], []),
    ("event with blanks", '{"hooks": {" tool_call ": [GOOD], BESIDE}}', ["tool_call#0", "error#0"], []),
    (
        "two spellings of one event",
        '{"hooks": {"tool-call": [GOOD], "tool_call": [GOOD], BESIDE}}',
        ["tool_call#0", "tool_call#1", "error#0"],
        ["two_spellings"],
    ),
    (
        "the same event twice",
        '{"hooks": {"tool_call": [GOOD, GOOD], "tool_call": [GOOD], BESIDE}}',
        ["tool_call#0", "error#0"],
        ["duplicate_event"],
    ),
    (
        "the same key twice in an action",
        '{"hooks": {"tool_call": [{"command": "/bin/false", "command": "/bin/true"}], BESIDE}}',
        ["tool_call#0", "error#0"],
        ["duplicate_key"],
    ),
    (
        "the same action twice",
        '{"hooks": {"tool_call": [GOOD, GOOD], BESIDE}}',
        ["tool_call#0", "tool_call#1", "error#0"],
        [],
    ),
    ("no command", '{"hooks": {"tool_call": [{}], BESIDE}}', ["error#0"], ["missing_command"]),
    ("command: number", '{"hooks": {"tool_call": [{"command": 5}], BESIDE}}', ["error#0"], ["wrong_type"]),
    (
        "negative timeout",
        '{"hooks": {"tool_call": [{"command": "/bin/true", "timeout_ms": -1}], BESIDE}}',
        ["error#0"],
        ["timeout_range"],
    ),
    (
        "fractional timeout",
        '{"hooks": {"tool_call": [{"command": "/bin/true", "timeout_ms": 1.5}], BESIDE}}',
        ["error#0"],
        ["wrong_type"],
    ),
    (
        "timeout as text",
        '{"hooks": {"tool_call": [{"command": "/bin/true", "timeout_ms": "5000"}], BESIDE}}',
        ["error#0"],
        ["wrong_type"],
    ),
    (
        "timeout in seconds",
        '{"hooks": {"tool_call": [{"command": "/bin/true", "timeout_ms": 5}], BESIDE}}',
        ["tool_call#0", "error#0"],
        ["small_timeout"],
    ),
    (
        "timeout out of range",
        '{"hooks": {"tool_call": [{"command": "/bin/true", "timeout_ms": 300001}], BESIDE}}',
        ["error#0"],
        ["timeout_range"],
    ),
    (
        "variable: number",
        '{"hooks": {"tool_call": [{"command": "/bin/true", "env": {"N": 5}}], BESIDE}}',
        ["error#0"],
        ["wrong_type"],
    ),
    *(
        (
            f"{field}: null",
            '{"hooks": {"tool_call": [{"command": "/bin/true", "FIELD": null}], BESIDE}}'.replace(
                "FIELD", field
            ),
            ["tool_call#0", "error#0"],
            [],
        )
        for field in ("args", "env", "cwd", "timeout_ms", "stdin_json")
    ),
    ("empty command", '{"hooks": {"tool_call": [{"command": ""}], BESIDE}}', ["error#0"], ["empty_command"]),
    (
        "blank command",
        '{"hooks": {"tool_call": [{"command": " \\t"}], BESIDE}}',
        ["error#0"],
        ["empty_command"],
    ),
    ("event: object", '{"hooks": {"tool_call": GOOD, BESIDE}}', ["error#0"], ["wrong_event_value"]),
    ("timeout of the file", '{"timeout_ms": 1200, "hooks": {BESIDE}}', ["error#0"], []),
    (
        "wrong timeout of the file",
        '{"timeout_ms": "1", "hooks": {BESIDE}}',
        ["error#0"],
        ["wrong_file_timeout"],
    ),
]


@pytest.mark.parametrize("text, runs, said", [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_what_is_wrong_in_one_place_leaves_the_rest_in_force(
    text: str, runs: list[str], said: list[str]
) -> None:
    """Each fault is said once, at its line, and every sibling runs."""
    parsed = parse(text.replace("GOOD", GOOD).replace("BESIDE", BESIDE))
    assert not parsed.refused
    assert (ids(parsed), codes(parsed)) == (runs, said)
    assert all(diagnostic.line == 1 for diagnostic in parsed.diagnostics)


@pytest.mark.parametrize(
    "text, said",
    [
        (b"", "not_json"),
        (b'\xff\xfe{"hooks": {}}', "not_json"),
        (b'{"hooks": {}} and more', "not_json"),
        (b'{"hooks": {"error": [', "not_json"),
        (b"[]", "wrong_root"),
        (b'{"hooks": []}', "wrong_hooks"),
        (b" " * 1_048_577, "file_too_large"),
    ],
    ids=["empty", "not UTF-8", "text after the end", "half written", "array", "hooks: array", "over 1 MiB"],
)
def test_a_file_of_which_nothing_can_be_used_leaves_the_last_good_set(text: bytes, said: str) -> None:
    """It is refused with one reason; what was in force stays, and both are said."""
    parsed = parse(text)
    assert (parsed.refused, ids(parsed), codes(parsed)) == (True, [], [said])

    def content(data: bytes) -> Content:
        return Content(data, str(hash(data)))

    good = advance(SourceState("hooks.json"), content(b'{"hooks": {%s}}' % BESIDE.encode()), prx.parse)
    kept = advance(good, content(text), prx.parse)
    assert (kept.status, [spec.id for spec in kept.specs]) == ("kept", ["error#0"])
    assert [diagnostic.code for diagnostic in kept.diagnostics] == ["kept_last_good", said]


def test_a_byte_order_mark_is_forgiven() -> None:
    """PRX refuses it; here it is remarked upon and the hooks run."""
    parsed = parse(b"\xef\xbb\xbf" + b'{"hooks": {%s}}' % BESIDE.encode())
    assert (ids(parsed), codes(parsed)) == (["error#0"], ["byte_order_mark"])


def test_a_file_that_may_not_be_read_leaves_the_last_good_set(tmp_path: Path) -> None:
    """A permission that is missing, or a folder in its place, is not the end of its hooks."""
    path = tmp_path / "hooks.json"
    path.write_text('{"hooks": {BESIDE}}'.replace("BESIDE", BESIDE))
    good = advance(SourceState(str(path)), discover.read(str(path), prx.MAX_FILE_BYTES), prx.parse)
    kept = advance(good, Unreadable("unreadable", "the file cannot be read", None), prx.parse)
    assert (kept.status, len(kept.specs)) == ("kept", 1)
    path.unlink()
    path.mkdir()
    kept = advance(kept, discover.read(str(path), prx.MAX_FILE_BYTES), prx.parse)
    assert (kept.status, len(kept.specs), kept.diagnostics[1].code) == ("kept", 1, "not_a_file")


def test_a_missing_file_is_no_hooks(tmp_path: Path) -> None:
    """Deleting the file ends its hooks: it is the one way to say that there shall be none."""
    state = advance(SourceState("x"), discover.read(str(tmp_path / "hooks.json"), 10), prx.parse)
    assert (state.status, state.specs) == ("absent", ())


def _many(actions: int = 1, **fields: Any) -> str:
    return json.dumps({"hooks": {"error": [{"command": "/bin/true", **fields}] * actions}})


LIMITS = [
    ("actions", _many(256), _many(257), 256, "too_many_actions"),
    ("args", _many(args=["x"] * 128), _many(args=["x"] * 129), 0, "too_many"),
    (
        "variables",
        _many(env={f"N{n}": "" for n in range(128)}),
        _many(env={f"N{n}": "" for n in range(129)}),
        0,
        "too_many",
    ),
    ("least timeout", _many(timeout_ms=1), _many(timeout_ms=0), 0, "timeout_range"),
    ("greatest timeout", _many(timeout_ms=300_000), _many(timeout_ms=300_001), 0, "timeout_range"),
    ("size", _many() + " " * (1_048_576 - len(_many())), _many() + " " * 1_048_576, 0, "file_too_large"),
]


@pytest.mark.parametrize(
    "within, beyond, left, said", [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS]
)
def test_limits_are_inclusive_and_said(within: str, beyond: str, left: int, said: str) -> None:
    """At the limit everything runs; one more is refused with its reason, and takes nothing else along."""
    assert parse(within).specs
    assert {code for code in codes(parse(within)) if code != "small_timeout"} == set()
    assert (len(parse(beyond).specs), codes(parse(beyond))) == (left, [said])


# --------------------------------------------------------------------- command, arguments, variables, folders


def action(**fields: Any) -> ParsedFile:
    """A file with this action, and a good one beside it."""
    hooks = {"tool_call": [{"command": "/bin/true", **fields}], "error": [{"command": "/bin/true"}]}
    return parse(json.dumps({"hooks": hooks}))


def spec_of(**fields: Any) -> HookSpec:
    """The action's spec; nothing is wrong with it."""
    parsed = action(**fields)
    assert codes(parsed) == []
    return parsed.specs[0]


@pytest.mark.parametrize("character", [*METACHARACTERS, "\x01", "\x7f"])
def test_a_command_that_holds_a_metacharacter_starts_nothing(character: str) -> None:
    """The page's five, and every other: the action is refused before anything starts, its sibling runs."""
    parsed = action(command=f"/bin/e{character}cho")
    assert (ids(parsed), codes(parsed)) == (["error#0"], ["metacharacter"])


def test_blanks_around_a_command_do_not_count_and_inside_they_belong_to_its_name(tmp_path: Path) -> None:
    """A command is not split: arguments belong into args, and the reason says so."""
    assert spec_of(command=" /bin/true ").command == "/bin/true"
    found = resolve(spec_of(command="echo hello"), str(tmp_path), "/nonexistent")
    assert isinstance(found, Unresolved)
    assert "put its arguments into args" in (found.hint or "")


def test_a_bare_name_is_found_on_the_safe_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither our own PATH nor the workspace is searched for a name; the folder of prxbus is, last."""
    for folder in ("own", "prxbus"):
        (tmp_path / folder).mkdir()
        for name in ("prx-tool", "sh"):
            program = tmp_path / folder / name
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "own"))
    last = str(tmp_path / "prxbus")
    assert isinstance(resolve(spec_of(command="prx-tool"), str(tmp_path / "own"), "/nonexistent"), Unresolved)
    assert resolve(spec_of(command="prx-tool"), str(tmp_path), last) == Resolved(
        f"{last}/prx-tool", str(tmp_path)
    )
    found = resolve(spec_of(command="sh"), str(tmp_path), last)
    assert isinstance(found, Resolved)
    assert found.executable in ("/usr/local/bin/sh", "/usr/bin/sh", "/bin/sh")


def test_a_relative_path_starts_at_the_workspace_whatever_the_cwd(tmp_path: Path) -> None:
    """PRX's own program starts at cwd; the page says the workspace, and so it is."""
    (tmp_path / "sub").mkdir()
    script = tmp_path / "hook.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    found = resolve(spec_of(command="./hook.sh", cwd="sub"), str(tmp_path), "/nonexistent")
    assert found == Resolved(str(script), str(tmp_path / "sub"))


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "/bin/tr\0ue"},
        {"args": ["a\0b"]},
        {"env": {"A\0B": "x"}},
        {"env": {"A": "x\0y"}},
        {"cwd": "a\0b"},
    ],
    ids=["command", "args", "name", "value", "cwd"],
)
def test_nul_anywhere_starts_nothing(fields: dict[str, Any]) -> None:
    """The action is refused; PRX's own program skips the variable and starts the rest."""
    parsed = action(**fields)
    assert ids(parsed) == ["error#0"]
    assert set(codes(parsed)) <= {"nul", "metacharacter"}


def _render(spec: HookSpec, body: bytes = b"{}") -> dict[str, str]:
    view = EventView("tool_call", body, "s", 0, 3, "id")
    return dict(prx.render(spec, view, Place("/w", "/r", "/p", "/b", "/bin/true", "/w")).env)


def test_nothing_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets and loaders of our own environment never reach a hook: it is built from nothing."""
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("LD_PRELOAD", "/evil.so")
    env = _render(spec_of(env={"MINE": "1"}))
    assert {"API_TOKEN", "LD_PRELOAD", "HOME"} & env.keys() == set()
    assert (env["MINE"], env["PATH"]) == ("1", "/usr/local/bin:/usr/bin:/bin:/b")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("spell", [str, str.lower, str.title], ids=["upper", "lower", "title"])
def test_a_blocked_variable_is_left_out_and_the_action_runs(rule: Any, spell: Any) -> None:
    """In any case of letters, the page's six, our own names and every other loader's and interpreter's."""
    name = spell(rule.name + ("X" if rule.prefix else ""))
    parsed = action(env={name: "evil", "MINE": "1"})
    assert (ids(parsed), codes(parsed)) == (["tool_call#0", "error#0"], ["blocked_env"])
    env = _render(parsed.specs[0])
    assert "evil" not in env.values()
    assert env["MINE"] == "1"


@pytest.mark.parametrize("name", ["", "A=B"])
def test_a_variable_that_no_program_can_have_starts_nothing(name: str) -> None:
    """An empty name and one with = are refused before exec would trip over them."""
    parsed = action(env={name: "x"})
    assert (ids(parsed), codes(parsed)) == (["error#0"], ["bad_env_name"])


def test_an_absolute_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    """As in the page's own example."""
    assert resolve(spec_of(cwd="/usr"), str(tmp_path), "/b") == Resolved("/bin/true", "/usr")


@pytest.mark.parametrize("cwd", ["..", "a/../..", "../workspace/a", "/tmp/..", "/tmp/../etc", "./../x"])
def test_a_folder_that_leaves_the_workspace_starts_nothing(cwd: str) -> None:
    """By the letters of its path, whether it exists or not."""
    parsed = action(cwd=cwd)
    assert (ids(parsed), codes(parsed)) == (["error#0"], ["cwd_escapes"])


def test_a_link_that_leads_out_of_the_workspace_starts_nothing(tmp_path: Path) -> None:
    """Links are resolved when the hook is to run, so a later one is found too."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "out").symlink_to(tmp_path)
    (workspace / "within").symlink_to(workspace)
    found = resolve(spec_of(cwd="out"), str(workspace), "/b")
    assert isinstance(found, Unresolved)
    assert found.code == "cwd_escapes"
    assert resolve(spec_of(cwd="within"), str(workspace), "/b") == Resolved("/bin/true", str(workspace))


def test_a_folder_that_is_missing_starts_nothing_and_says_so(tmp_path: Path) -> None:
    """The reason names the folder; when it is there the next event runs."""
    found = resolve(spec_of(cwd="later"), str(tmp_path), "/b")
    assert isinstance(found, Unresolved)
    assert (found.code, "does not exist" in found.message) == ("missing_cwd", True)
    (tmp_path / "later").mkdir()
    assert resolve(spec_of(cwd="later"), str(tmp_path), "/b") == Resolved("/bin/true", f"{tmp_path}/later")
