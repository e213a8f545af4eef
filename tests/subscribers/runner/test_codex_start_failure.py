"""Exit code 2: the handler's word, or that of a shell or interpreter that never came to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.outcome import Captured, Outcome
from subscribers.runner.codex_start_failure import as_it_was, missing_script

THERE = {"/w/guard.py", "/home/me/hooks/guard.py", "/p/.claude/hooks/g.sh", "/w/sub/guard.py"}
ENV = {"HOME": "/home/me", "CLAUDE_PROJECT_DIR": "/p", "EMPTY": "", "D": "sub"}


def captured(text: str) -> Captured:
    """A stream of which nothing was cut."""
    return Captured(text.encode(), b"", len(text.encode()))


def judged(
    command: str,
    stderr: str = "no",
    *,
    code: int = 2,
    argv: tuple[str, ...] = (),
    stdout: str = "",
    reading: str | None = None,
) -> Outcome:
    """What a run comes to whose command ended with ``code``."""
    outcome = Outcome("failed", code, None, 0.1, captured(stdout), captured(stderr))
    argv = argv or ("/bin/sh", "-c", command)
    return as_it_was(outcome, argv, command, "/w", ENV, THERE.__contains__, lambda: reading)


def words_of_python(path: str) -> str:
    """What Python says of a script that is not there."""
    return f"/usr/bin/python3: can't open file '{path}': [Errno 2] No such file or directory\n"


@pytest.mark.parametrize(
    "command, path, stderr",
    [
        ("python3 gone.py", "/w/gone.py", words_of_python("/w/gone.py")),
        ("python3 gone.py", "/w/gone.py", words_of_python("gone.py")),
        ("python3 ./gone.py", "/w/./gone.py", words_of_python("/real/w/./gone.py")),
        ("python3 ~/h/gone.py --strict", "/home/me/h/gone.py", words_of_python("/home/me/h/gone.py")),
        ('"/usr/bin/python3.11" -u "$HOME/my gone.py"', "/home/me/my gone.py", None),
        ("python3 -I -uB '/x/my \"gone\".py'", '/x/my \\"gone\\".py', words_of_python('/x/my "gone".py')),
        ('python3 "/x/it\'s gone.py"', "/x/it's gone.py", None),
        ("sh gone.sh", "/w/gone.sh", "sh: 0: cannot open gone.sh: No such file\n"),
        ("sh gone.sh", "/w/gone.sh", "sh: 0: Can't open gone.sh\n"),
        ("/bin/sh gone.sh x", "/w/gone.sh", "/bin/sh: can't open 'gone.sh': No such file or directory\n"),
        (
            "\tdash -eu $HOME/gone.sh ",
            "/home/me/gone.sh",
            "dash: 0: cannot open /home/me/gone.sh: No such file",
        ),
        (
            'sh "$CLAUDE_PROJECT_DIR"/.claude/gone.sh',
            "/p/.claude/gone.sh",
            "sh: 0: cannot open /p/.claude/gone.sh: No such file\n",
        ),
        ("perl gone.pl", "/w/gone.pl", 'Can\'t open perl script "gone.pl": No such file or directory\n'),
    ],
)
def test_a_script_that_is_not_there_does_not_block(command: str, path: str, stderr: str | None) -> None:
    """What an interpreter says of a missing script is a start that failed, and the script is named."""
    if stderr is None:
        quotes = '"' if "'" in path else "'"
        stderr = words_of_python("").replace("''", f"{quotes}{path}{quotes}")
    outcome = judged(command, stderr)
    assert (outcome.status, outcome.exit_code) == ("not_started", None)
    assert outcome.reason == f'its script "{path}" is not there'


@pytest.mark.parametrize(
    "stderr, stdout",
    [
        ("no", ""),
        ("", ""),
        ("sh: 0: cannot open gone.sh: No such file\nand so I block", ""),
        ("a remark\nsh: 0: cannot open gone.sh: No such file\n", ""),
        ("sh: 0: cannot open gone.sh: No such file\n\n", ""),
        ("sh: 0: cannot open other.sh: No such file\n", ""),
        ("dash: 0: cannot open gone.sh: No such file\n", ""),
        ("sh: 0: cannot open gone.sh: No such file\n", "I ran"),
        (words_of_python("/w/gone.sh"), ""),
    ],
)
def test_a_script_that_vanished_has_run(stderr: str, stdout: str) -> None:
    """Whatever else was printed, something ran: a script that is gone may have removed itself."""
    assert judged("sh gone.sh", stderr, stdout=stdout).exit_code == 2


@pytest.mark.parametrize(
    "command",
    [
        "sh g.sh; D=hooks; sh $D/g.sh",
        "D=hooks; sh $D/g.sh",
        'DIR=$(git rev-parse --show-toplevel); sh "$DIR/sub/g.sh"',
        "test -f optional.sh && sh optional.sh; sh sub/g.sh",
        "pushd sub >/dev/null; sh g.sh",
        "H=sub; cd $H && sh g.sh",
        "PATH=/tmp/nb:$PATH; sh guard.sh",
        "export D=x && sh $D/y",
        "sh g.{sh,x}",
        "true || sh nothere.sh; sh guard.sh",
        "cp g.sh made.sh; sh made.sh; rm made.sh",
        "python3 x.py || exit 2",
        "PATH=/tmp/nb sh gone.sh",
        "exec sh gone.sh",
        "env sh gone.sh",
        "sh gone.sh 2>&1",
        "sh gone.sh </dev/null",
        "sh gone.sh &",
        "sh\ngone.sh",
        "sh gone.sh\n",
        "! sh gone.sh",
        "sh gone\\.sh",
        "sh g*.sh",
        "sh gon?.sh",
        "sh g[o]ne.sh",
        "sh ~other/gone.sh",
        "sh $D/gone.sh",
        "sh $EMPTY/gone.sh",
        "sh $HOMES/gone.sh",
        "sh ${D}/gone.sh",
        'sh "$D/gone.sh"',
        'sh "$HOME/$D/gone.sh"',
        'sh "$HOME/`pwd`.sh"',
        'sh "$HOME/gone.sh',
        "sh x$HOME/gone.sh",
        "sh 'unbalanced",
        "sh gone.sh # a remark",
        "(sh gone.sh)",
        "python3 guard.py",
        "python3 ~/hooks/guard.py",
        'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/g.sh',
        "python3 -m guard gone.py",
        "python3 -c 'raise SystemExit(2)' gone.py",
        "perl -e 'exit 2' gone.pl",
        "perl -E 'exit 2' gone.pl",
        "node -r guard gone.js",
        "sh -s gone.sh",
        "sh -c gone.sh",
        "./guard gone.sh",
        "sh",
        "python3 -u",
        "sh ''",
        "",
        " ",
    ],
)
@pytest.mark.parametrize("program", ["sh", "/bin/sh", "python3", "perl"])
def test_what_only_a_shell_can_read_blocks(command: str, program: str) -> None:
    """Where the script is there, or nobody can tell what ran, exit code 2 is the handler's word."""
    for script in ("gone.sh", "guard.sh", "g.sh", "x.py", "nothere.sh", "/home/me/gone.sh", "made.sh"):
        for said in (
            f"{program}: 0: cannot open {script}: No such file\n",
            words_of_python(script),
            f'Can\'t open perl script "{script}": No such file or directory\n',
        ):
            assert judged(command, said).exit_code == 2
    assert missing_script(command, ("/bin/true",), "/w", ENV, THERE.__contains__) is None


_WORD = st.sampled_from(["sh", "python3", "gone.sh", "~/x", "$HOME/x", "-u", "'a b'", '"c"', "a/b", " "])
_WORDS = st.lists(_WORD, max_size=5)
_MARKS = st.sampled_from([*";&|<>(){}*?[]!#`\\\n^", "$x", "$(", "${HOME}", "$$", "~x"])


@given(_WORDS, _WORDS, _MARKS)
def test_no_command_with_a_metacharacter_misses_a_script(
    before: list[str], after: list[str], mark: str
) -> None:
    """Of a command that a shell has to work out, nobody says that its script is not there."""
    for joint in ("", " "):
        command = joint.join([" ".join(before), mark, " ".join(after)])
        assert missing_script(command, ("/bin/true",), "/w", ENV, lambda _: False) is None


def test_a_folder_with_a_space_is_split_by_a_shell() -> None:
    """Outside of quotes a variable may become several words, and then nobody can tell."""
    env = {"HOME": "/my home"}
    for command, path in (("sh $HOME/x", None), ('sh "$HOME/x"', "/my home/x"), ("sh ~/x", "/my home/x")):
        said = missing_script(command, ("/bin/sh",), "/w", env, lambda _: False)
        assert said == (None if path is None else f'its script "{path}" is not there')
    assert missing_script("sh ~/x", ("/bin/sh",), "/w", {}, lambda _: False) is None


def test_other_exit_codes_are_left_alone() -> None:
    """Only 2 means something to a dialect and to a shell alike."""
    assert judged("python3 gone.py", words_of_python("gone.py"), code=1).exit_code == 1


def test_a_command_that_its_shell_cannot_read_does_not_block() -> None:
    """What the shell says of the command when it only reads it is no reason to block."""
    said = "/bin/sh: 1: Syntax error: Unterminated quoted string\n"
    outcome = judged("echo 'a", said, reading=said)
    assert outcome.status == "not_started"
    assert outcome.reason == f"its command cannot be read by /bin/sh: {said.strip()}"


@pytest.mark.parametrize(
    "command, stderr, stdout, reading",
    [
        ("sh guard.sh", "/bin/sh: 1: Syntax error: no\n", "", None),
        ("guard; '", "/bin/sh: 1: Syntax error: no\n", "I ran", "/bin/sh: 1: Syntax error: no\n"),
        ("guard; '", "no\n/bin/sh: 1: Syntax error: no\n", "", "/bin/sh: 1: Syntax error: no\n"),
        ("guard\nif; then", "/bin/sh: 2: Syntax error: no\n", "", "/bin/sh: 2: Syntax error: no\n"),
        ("guard >/nowhere/x", "/bin/sh: 1: cannot create /nowhere/x: Directory nonexistent\n", "", None),
        ("guard", "migrations are generated", "", None),
    ],
)
def test_the_words_of_a_handler_block(command: str, stderr: str, stdout: str, reading: str | None) -> None:
    """A guard that ran blocks, also where it speaks as a shell does, or an earlier line of it ran."""
    assert judged(command, stderr, stdout=stdout, reading=reading).exit_code == 2


def test_a_program_without_a_shell_is_judged_by_its_arguments() -> None:
    """A handler with arguments of its own names its script there; nothing in them is for a shell."""
    said = words_of_python("/w/a;b.py")
    assert judged("", said, argv=("/usr/bin/python3", "a;b.py")).status == "not_started"
    assert judged("", words_of_python("guard.py"), argv=("/usr/bin/python3", "guard.py")).exit_code == 2
    shell = "/bin/sh: 1: Syntax error: no\n"
    assert judged("", shell, argv=("/bin/sh", "-c", "'"), reading=shell).exit_code == 2


def test_words_that_are_longer_than_an_interpreters_are_the_handlers() -> None:
    """Nothing is searched for in them, and the exit code blocks."""
    said = ": can't open file '" * 50_000 + 'gone.py": [Errno 2] No such file or directory'
    assert judged("python3 gone.py", said).exit_code == 2


def test_a_command_of_many_quoted_variables_is_read_once() -> None:
    """A piece after a variable is read where it stands."""
    said = "sh: 0: cannot open gone.sh: No such file\n"
    command = "sh gone.sh" + ' "$HOME/a"' * 20_000
    assert judged(command, said).reason == 'its script "/w/gone.sh" is not there'
