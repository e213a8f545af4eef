"""The ``[[transform]]`` tables: what holds, in which order, and what is refused with its place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from subscribers.config.files import load, user_file, workspace_file
from subscribers.config.tables import TABLES
from subscribers.config.transforms import TIMEOUT_S, Table, read
from subscribers.hooks.diagnostics import Diagnostic


def tables(text: str) -> tuple[list[tuple[str, Table]], list[Diagnostic]]:
    """The tables of a file with that text, and what is wrong in it."""
    found, faults = read(tomllib.loads(text), "/etc/prxbus.toml", "/etc")
    assert {(each.path, each.folder) for each in found} <= {("/etc/prxbus.toml", "/etc")}
    return [(each.name, each.table) for each in found], faults


def test_a_table_names_a_command_and_whom_it_is_for() -> None:
    """Everything that a table can say is read; a short one has the defaults and a name of its place."""
    found, faults = tables(
        """
        [[transform]]
        command = ["./redact", "--all"]
        [[transform]]
        command = "python3 'my file.py'"
        tools = ["Bash"]
        agents = ["a1", "a2"]
        timeout = 2
        name = "mine"
        """
    )
    assert faults == []
    assert found == [
        ("prxbus.toml:transform[0]", Table.model_validate({"command": ["./redact", "--all"]})),
        (
            "mine",
            Table(
                command=["python3", "my file.py"],
                tools=["Bash"],
                agents=["a1", "a2"],
                timeout=2.0,
                name="mine",
            ),
        ),
    ]
    assert found[0][1].timeout == TIMEOUT_S


@pytest.mark.parametrize(
    "text, code, field, words",
    [
        ("[transform]\ncommand = 'x'", "not_a_table", "transform", "tables of their own"),
        ("transform = ['x']", "not_a_table", "transform", "tables of their own"),
        ("[[transform]]", "missing", "transform[0].command", "needs a command"),
        ("[[transform]]\ncommand = []", "bad_value", "transform[0].command", "at least 1"),
        ("[[transform]]\ncommand = ''", "bad_value", "transform[0].command", "at least 1"),
        (
            '[[transform]]\ncommand = ["a", \'b\\0\', "\\u0000"]',
            "bad_value",
            "transform[0].command[2]",
            "match",
        ),
        ('[[transform]]\ncommand = "it\'s"', "bad_value", "transform[0].command", "cannot be told apart"),
        ("[[transform]]\ncommand = 5", "bad_value", "transform[0].command", "list"),
        ("[[transform]]\ncommand = 'x'\ntimeout = 0", "bad_value", "transform[0].timeout", "greater than 0"),
        ("[[transform]]\ncommand = 'x'\ntimeout = nan", "bad_value", "transform[0].timeout", "less than"),
        ("[[transform]]\ncommand = 'x'\ntimeout = 301", "bad_value", "transform[0].timeout", "less than"),
        ("[[transform]]\ncommand = 'x'\ntools = 'Bash'", "bad_value", "transform[0].tools", "list"),
        ("[[transform]]\ncommand = 'x'\ntools = ['']", "bad_value", "transform[0].tools[0]", "at least 1"),
        ("[[transform]]\ncommand = 'x'\nname = \"\\n\"", "bad_value", "transform[0].name", "match"),
        ("[[transform]]\ncommand = 'x'\ntool = ['Bash']", "unknown_setting", "transform[0].tool", "no such"),
        ("[[transform]]\ncommand = 'x'\nzzz = 1", "unknown_setting", "transform[0].zzz", "no such"),
    ],
)
def test_a_fault_is_told_with_its_place(text: str, code: str, field: str, words: str) -> None:
    """A table that cannot be meant is left out, with one diagnostic that says where and why."""
    found, (fault,) = tables(text)
    assert found == []
    assert (fault.severity, fault.code, fault.field, fault.path) == ("error", code, field, "/etc/prxbus.toml")
    assert words in fault.message


def test_an_unknown_key_is_told_with_the_nearest_one() -> None:
    """A typing error says what was probably meant, a strange word what there is."""
    _, (near,) = tables("[[transform]]\ncommand = 'x'\ntime_out = 1")
    _, (far,) = tables("[[transform]]\ncommand = 'x'\nzzz = 1")
    assert near.hint == "did you mean timeout?"
    assert far.hint == "there are command, tools, agents, timeout, name"


def test_a_bad_table_does_not_take_the_others_along() -> None:
    """The tables around a faulty one hold, with the places they have in the file."""
    found, faults = tables("[[transform]]\ncommand='a'\n[[transform]]\n[[transform]]\ncommand='c'\n")
    assert [name for name, _ in found] == ["prxbus.toml:transform[0]", "prxbus.toml:transform[2]"]
    assert [fault.field for fault in faults] == ["transform[1].command"]


def test_a_name_stands_for_one_table() -> None:
    """Two tables of a file with the same name could not be told apart in a record: the second is refused."""
    found, (fault,) = tables("[[transform]]\ncommand='a'\nname='n'\n[[transform]]\ncommand='b'\nname='n'\n")
    assert [table.command for _, table in found] == [["a"]]
    assert (fault.code, fault.field) == ("duplicate_name", "transform[1].name")


def test_there_is_an_end_to_the_tables_of_a_file() -> None:
    """What is beyond the bound is not read, and that is said."""
    found, (fault,) = tables("[[transform]]\ncommand = 'x'\n" * (TABLES + 1))
    assert (len(found), fault.code) == (TABLES, "too_many")


def test_the_users_tables_stand_before_the_workspaces(tmp_path: Path) -> None:
    """Both files count, no workspace's comes in front, and each command starts where its file says."""
    environ = {"PRXBUS_CONFIG_DIR": str(tmp_path / "config")}
    workspace = tmp_path / "w"
    own, theirs = Path(user_file(environ)), Path(workspace_file(str(workspace)))
    for path, text in {
        own: "[[transform]]\ncommand='u'\n" * 2,
        theirs: "[[transform]]\ncommand='w'\n",
    }.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    configured = load(environ, {}, str(workspace))
    assert configured.diagnostics == ()
    assert [(t.table.command, t.path, t.folder) for t in configured.transforms] == [
        (["u"], str(own), str(own.parent)),
        (["u"], str(own), str(own.parent)),
        (["w"], str(theirs), str(workspace)),
    ]
    assert [t.path for t in load(environ, {}, None).transforms] == [str(own)] * 2


def test_faults_of_a_table_are_faults_of_the_configuration(tmp_path: Path) -> None:
    """A bad table is among the configuration's diagnostics, and its settings still hold."""
    (tmp_path / "prxbus.toml").write_text("[[transform]]\ncommand = 5\n[hooks]\nruns = 3\n")
    configured = load({"PRXBUS_CONFIG_DIR": str(tmp_path)}, {}, None)
    assert [fault.field for fault in configured.diagnostics] == ["transform[0].command"]
    assert (configured.settings.hooks.runs, configured.transforms) == (3, ())
