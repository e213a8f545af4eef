"""A command line taken apart: nothing that runs a command hides it from a rule, and no text keeps it busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_condition import Folders, condition
from subscribers.dialects.codex_condition_commands import LONGEST, MOST, _commands, commands

PUSHING = [
    *(
        "git push o",
        "git  push o",
        "git\tpush o",
        "git pu\\\nsh o",
        "git \\\n push o",
        " git push",
        "\ngit push",
    ),
    *("! git push", "if true; then git push o; fi", "if git push; then :; fi", "until git push; do :; done"),
    *("while git push o; do :; done", "for i in a; do git push; done", "if a; then :; else git push; fi"),
    *("{ git push; }", "( git push )", "(git push)", "f() { git push; }; f", "case x in x) git push;; esac"),
    *("a && git push", "a||git push", "a|git push", "a & git push", "cat <(git push)", "a |& git push"),
    *(">f git push", "2>/dev/null git push", "git >f push o", "git push>f", "<f git push 2>&1"),
    *("{fd}>f git push", "X=1 git push", "X='a b' Y+=2 git push", "X[1]=2 git push", "X=1 >f Y=2 git push"),
    *("time git push", "time -p git push", "timeout 5 git push", "nice -n 5 git push", "nohup git push &"),
    *("stdbuf -oL git push o", "command git push", "env X=1 git push", "/usr/bin/env git push"),
    *("sudo -u x git push", "exec git push", "coproc git push", "X=1 sudo -E nice git push", "sudo $X"),
    *("find . -exec git push \\;", "\\git push", "g''it push", "git 'push'", '"git" pu"sh" o'),
    *('git "pu\\\nsh"', "git $X", "git ${X} push", "$X push", "g$X push", "git pus?", "{git,push,o}"),
    *(
        'git "$@"',
        "git push $X",
        "eval 'git push'",
        "xargs git",
        "sudo eval 'git push'",
        "sh",
        "echo x | bash",
    ),
    *("env bash", "bash -c 'git push'", "sudo bash -xc 'git push'", "bash -o posix -c 'git push'", "bash -x"),
    *("watch 'a;git push'", "ls # it's\ngit push\n# it's", "# \\\ngit push", "$'\\'';git push;#'"),
    *("echo \\\\\ngit push", "cat <<E\ngit push\nE", "echo $(git push)", 'echo "$\\\n(git push)"'),
    *("`git push`", "echo 'open", '"${x:-\'}";git push;"\'}"', ";" * (MOST + 1) + "a"),
]
HARMLESS = [
    *("ls", "", " ", "\n", ";;", "X=1", ">f", "git status", "gitk push", "git pushx", "echo git push"),
    *("echo 'git push'", 'echo "a; git push"', "echo a\\; git push", "echo a # ; git push", "echo $HOME"),
    *("ls *.py", "[ -f x ] && ls", 'git commit -m "$M"', "rm ${X}/a", "find . -name '*.git'"),
    *("timeout 60 npm test", "a 2>&1 | tee log", "bash build.sh --check", "sudo bash -eux push.sh"),
    *("bash git push", "python3 -c 'git push'", "echo {}", "for i in a b; do echo $i; done"),
    *("git 'pull' push", "! git pull"),
]


def _holds(rule: str, line: str) -> bool:
    return condition(rule).holds("Bash", {"command": line}, Folders())


def test_a_command_is_found_wherever_it_is_run_from() -> None:
    """A rule is met by a line that runs its command, or of which nobody can say what it runs."""
    for rule in ("Bash(git push *)", "Bash(git  push:*)"):
        assert [line for line in PUSHING if not _holds(rule, line)] == []


def test_a_line_that_runs_something_else_meets_no_rule() -> None:
    """The words of a rule elsewhere than where a command begins are no command."""
    assert [line for line in HARMLESS if _holds("Bash(git push *)", line)] == []


@pytest.mark.parametrize(
    "rule,line,expected",
    [
        ("Bash(sudo *)", "sudo -E rm x", True),
        ("Bash(X=1 rm *)", "X=1 rm y", True),
        ('Bash(echo "a b")', 'echo  "a b"', True),
        ("Bash(echo * > *)", "echo a > b", True),
        ("Bash(echo *)", "echo a > b", True),
        ("Bash(rm)", "rm $X", True),
        ("Bash(rm)", "rm -f $X", False),
        ("Bash(rm *)", "rmdir $X", False),
        ("Bash(* --force)", "git push $X", True),
        ("Bash(git * 'a b')", "git 'x  y'$Z", True),
        ("Bash(npm test)", "timeout 60 npm test", True),
        ("Bash(npm test)", "timeout 60 npm test x", False),
    ],
)
def test_a_command_is_compared_in_every_way_that_it_may_be_read(rule: str, line: str, expected: bool) -> None:
    """As written, as a shell reads it, with what stands before it and without, and as far as it is known."""
    assert _holds(rule, line) is expected


@given(st.text(alphabet="ab '\"\\\n\t$`{}()[]<>&|;#=*?!~-1", max_size=60) | st.text(max_size=60))
def test_any_line_can_be_taken_apart(line: str) -> None:
    """Nothing is raised, and no text of a command has white space that tells nothing."""
    for command in commands(line) or ():
        assert all(text == " ".join(text.split()) for text in command.texts)


_WORDS = st.text(alphabet="abcxyz019./-_:", max_size=8).map(lambda word: f"x{word}")


@given(
    st.lists(st.lists(_WORDS.map(lambda word: f"x{word}"), min_size=1, max_size=5), min_size=1, max_size=5)
)
def test_plain_commands_are_themselves(rows: list[list[str]]) -> None:
    """Commands of plain words, whatever joins them, come out as they went in."""
    lines = [" ".join(row) for row in rows]
    for operator in (" && ", ";", "\n", " | ", "&"):
        found = commands(operator.join(lines))
        assert found is not None
        assert [command.texts for command in found] == [(line,) for line in lines]


UNITS = [
    *(
        "a",
        "a=",
        " ",
        "a ",
        ";a",
        ";",
        '"a"',
        "\\a",
        "''",
        ">a",
        "*",
        "$a",
        "${a",
        "${a}",
        "sudo ",
        "a[",
        "(",
    ),
    *(
        "\\\n",
        "a=1 b\n",
        "1>",
        "#a",
        " #a\n",
        "$'",
        "$'a'",
        "find {} ",
        "bash -x ",
        '"$a',
        "'",
        '"',
        "~",
        "<",
    ),
    *("if ", "[a=", "é", "a b;"),
]


def test_the_work_grows_with_the_line_and_no_faster() -> None:
    """Twice the text takes at most twice the calls, with a margin for what is done once."""
    rule = condition("Bash(*a*a*a*b)")

    def calls(line: str) -> int:
        _commands.cache_clear()
        return _counted(lambda: rule.holds("Bash", {"command": line}, Folders()))

    for unit in UNITS:
        for prefix in ("", "sudo x ", 'a "', "X["):
            text = unit * (100 // len(unit) * 2)
            assert calls(prefix + text + text) <= 2.2 * calls(prefix + text) + 200, (unit, prefix)


def test_a_line_that_is_too_long_costs_nothing() -> None:
    """Five megabytes of one word are judged in a few dozen calls, and meet the rule."""
    line = "a" * 5_000_000
    rule = condition("Bash(git *)")
    assert _counted(lambda: rule.holds("Bash", {"command": line}, Folders())) < 100
    assert commands(line) is None
    assert commands("a" * LONGEST) is not None
    assert commands("a;" * MOST) is not None


def _counted(act: Callable[[], object]) -> int:
    """How many functions, of Python and of C, an act calls."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return calls
