"""What of an agent's hooks could be imported."""

from __future__ import annotations

from typing import Any

import pytest

from subscribers.hooks.import_draft import COMMAND_BYTES, MAX_HANDLERS, FileName, filled, named_files
from tests.subscribers.hooks.import_scene import USER_AROUND, command, drafted, one

SCRIPT = '"$CLAUDE_PROJECT_DIR"/.claude/hooks/a.sh --x'


@pytest.mark.parametrize(
    "handler,code,said",
    [
        (7, "invalid", "the handler is no object"),
        ({}, "unsupported_type", "None is no type of handler"),
        ({"type": "http", "url": "x"}, "unsupported_type", "this is 'http'"),
        ({"type": [1]}, "unsupported_type", "[1] is no type"),
        (command("shim"), "own_entry", "prxbus attach"),
        (command(None), "invalid", "no command"),
        (command(" \n"), "invalid", "no command"),
        (command("x" * (COMMAND_BYTES + 1)), "invalid", "65,536 bytes"),
        (command("a\0b"), "invalid", "NUL"),
        (command("x", shell="powershell"), "unsupported_field", "'powershell'"),
        (command("x", args="y"), "invalid", "`args`"),
        (command("x", args=[1]), "invalid", "`args`"),
        (command("'x"), "invalid", "single quote"),
        (command(".claude/hooks/*"), "wildcard", "'*'"),
        (command("x", args=["~/.claude/hooks/a"]), "dynamic_path", "~"),
        (command("cat <<E\n.claude/hooks/a\nE"), "dynamic_path", "here-document"),
    ],
)
def test_a_handler_that_cannot_be_imported_says_why(handler: Any, code: str, said: str) -> None:
    """Each kind of fault has a code, the place, and a reason; the command is shown where there is one."""
    made = one(handler)
    (skipped,) = made.skipped
    assert made.handlers == ()
    assert (skipped.code, skipped.event, skipped.group, skipped.index) == (code, "PreToolUse", 0, 0)
    assert said in skipped.reason
    text = handler.get("command") if isinstance(handler, dict) else None
    assert skipped.command == text


def test_one_handler_left_out_leaves_the_others() -> None:
    """Good handlers beside bad ones, bad groups and unknown events are kept, in order."""
    made = drafted(
        {
            "Nope": [{"hooks": [command("a"), command("b")]}, 3],
            "state": {"x": {}},
            "Stop": "x",
            "PreToolUse": [
                {"matcher": "A", "hooks": [command(".claude/hooks/*"), command("a")]},
                {"hooks": 1},
                command("no group"),
                {"matcher": "[", "hooks": [command("b")]},
                {},
                {"hooks": [command("c", timeout=3)]},
            ],
        }
    )
    kept = [(each.group, each.index, each.source_command, each.timeout_s) for each in made.handlers]
    assert kept == [(0, 1, "a", 600.0), (5, 0, "c", 3.0)]
    assert [(each.code, each.event, each.group, each.count) for each in made.skipped] == [
        ("unsupported_event", "Nope", None, 2),
        ("invalid", "Stop", None, 1),
        ("wildcard", "PreToolUse", 0, 1),
        ("invalid", "PreToolUse", 1, 1),
        ("invalid", "PreToolUse", 2, 1),
        ("invalid", "PreToolUse", 3, 1),
    ]


def test_an_unknown_event_of_any_shape_is_one_remark() -> None:
    """What an unknown event holds does not matter."""
    assert [each.count for each in drafted({"Nope": 3}).skipped] == [1]


@pytest.mark.parametrize("hooks,skipped", [(None, 0), ({}, 0), ([], 1), ("x", 1)])
def test_hooks_that_are_no_object_are_said_once(hooks: Any, skipped: int) -> None:
    """A source without hooks is empty; one whose hooks are something else says so."""
    made = drafted(hooks)
    assert (made.handlers, len(made.skipped)) == ((), skipped)


def test_what_the_agent_does_not_run_is_left_out() -> None:
    """A single handler that was switched off, and all of them, come with the reason."""
    single = one(command("a"), disabled=frozenset({("PreToolUse", 0, 0)}))
    every = one(command("a"), all_disabled="all of it is off")
    assert [each.code for each in single.skipped + every.skipped] == ["disabled", "all_disabled"]
    assert every.skipped[0].reason == "all of it is off"


def test_too_many_handlers_are_counted() -> None:
    """Beyond the limit handlers are not looked at; how many there were is said."""
    made = drafted({"Stop": [{"hooks": [command("a")] * (MAX_HANDLERS + 3)}]})
    assert len(made.handlers) == MAX_HANDLERS
    assert [(each.code, each.count) for each in made.skipped] == [("too_many_handlers", 3)]


def test_a_command_gets_holes_for_its_files() -> None:
    """Only the word that names the file is replaced, and the path is quoted for the shell."""
    (handler,) = one(command(f"X=.claude/hooks/c {SCRIPT} 'y z'")).handlers
    assert handler.command == ("X=", FileName("files/c"), " ", FileName("files/a.sh"), " --x 'y z'")
    assert filled(handler.command, "/s s", quoted=True) == "X='/s s/files/c' '/s s/files/a.sh' --x 'y z'"
    assert named_files([handler.command]) == {"files/c", "files/a.sh"}
    assert [each.path for each in handler.copied] == ["/p/.claude/hooks/c", "/p/.claude/hooks/a.sh"]


def test_arguments_get_holes_without_quotes() -> None:
    """Without a shell there is nothing to quote for."""
    (handler,) = one(command("python3", args=["--at=.claude/hooks/a", "b"])).handlers
    assert handler.args == (("--at=", FileName("files/a")), ("b",))
    assert filled(handler.args[0], "/s s", quoted=False) == "--at=/s s/files/a"
    assert (handler.command, handler.source_args) == (("python3",), ("--at=.claude/hooks/a", "b"))


def test_notes_tell_what_is_not_as_it_was() -> None:
    """Fields that mean nothing are left out and named; of relative paths only a user's are marked."""
    handler = command(".claude/hooks/a", description="x", timeout=1)
    group = {"hooks": [handler], "if": "y"}
    (user,) = drafted({"Stop": [group]}, USER_AROUND).handlers
    (project,) = drafted({"Stop": [group]}).handlers
    assert [note.partition(":")[0] for note in user.notes] == [
        "left out, because no handler has it",
        "a relative path",
    ]
    assert "'description', 'if'" in user.notes[0]
    assert user.fields == {"type": "command", "command": ".claude/hooks/a", "timeout": 1}
    assert len(project.notes) == 1


def test_what_stays_is_listed_once() -> None:
    """External files are told in the order in which a command names them."""
    (handler,) = one(command("/bin/a /bin/b; /bin/a")).handlers
    assert [each.path for each in handler.external] == ["/bin/a", "/bin/b"]
