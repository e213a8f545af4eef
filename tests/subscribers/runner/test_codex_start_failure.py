"""Exit code 2: the handler's word, or that of a shell or interpreter that never came to it."""

from __future__ import annotations

import pytest

from subscribers.hooks.outcome import NOTHING, Captured, Outcome
from subscribers.runner.codex_start_failure import as_it_was

THERE = {"/w/guard.py", "/home/me/hooks/guard.py", "/p/.claude/hooks/g.sh", "/w/sub/guard.py"}
ENV = {"HOME": "/home/me", "CLAUDE_PROJECT_DIR": "/p", "EMPTY": ""}


def judged(command: str, stderr: str = "no", code: int = 2, argv: tuple[str, ...] = ()) -> Outcome:
    """What a run comes to whose command ended with ``code``."""
    text = stderr.encode()
    outcome = Outcome("failed", code, None, 0.1, NOTHING, Captured(text, b"", len(text)))
    argv = argv or ("/bin/sh", "-c", command)
    return as_it_was(outcome, argv, command, "/w", ENV, THERE.__contains__)


@pytest.mark.parametrize(
    "command, path",
    [
        ("python3 gone.py", "/w/gone.py"),
        ("python3 ~/hooks/gone.py --strict", "/home/me/hooks/gone.py"),
        ('"/usr/bin/python3.11" -u "$HOME/hooks/my gone.py"', "/home/me/hooks/my gone.py"),
        ('bash "$CLAUDE_PROJECT_DIR"/.claude/hooks/gone.sh', "/p/.claude/hooks/gone.sh"),
        ("A=1 exec sh ${CLAUDE_PROJECT_DIR}/gone.sh", "/p/gone.sh"),
        ("cd sub && python3 gone.py", "/w/sub/gone.py"),
        ("true; perl gone.pl 2>/dev/null", "/w/gone.pl"),
        ("sh -e gone.sh", "/w/gone.sh"),
    ],
)
def test_a_script_that_is_not_there_does_not_block(command: str, path: str) -> None:
    """What an interpreter says of a missing script is a start that failed, and the script is named."""
    outcome = judged(command)
    assert (outcome.status, outcome.exit_code) == ("not_started", None)
    assert outcome.reason == f'its script "{path}" is not there'


@pytest.mark.parametrize(
    "command",
    [
        "python3 guard.py",
        "python3 ~/hooks/guard.py",
        "cd sub; python3 guard.py",
        'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/g.sh',
        "python3 -m guard gone.py",
        "python3 -c 'raise SystemExit(2)' gone.py",
        "perl -e 'exit 2' gone.pl",
        "python3 $(which guard).py",
        "python3 hooks/*.py",
        "cd $(pwd)/x && python3 gone.py",
        "python3 $1",
        "./guard",
        "jq -e . && exit 2",
        "echo 'unbalanced",
        "FOO=1",
        "python3",
        "",
    ],
)
def test_a_block_stays_a_block(command: str) -> None:
    """Where the script is there, or nobody can tell, exit code 2 is the handler's word."""
    assert judged(command).exit_code == 2


def test_other_exit_codes_are_left_alone() -> None:
    """Only 2 means something to a dialect and to a shell alike."""
    assert judged("python3 gone.py", code=1).exit_code == 1


@pytest.mark.parametrize(
    "stderr",
    [
        "/bin/sh: 1: Syntax error: Unterminated quoted string",
        "/bin/sh: -c: line 1: unexpected EOF while looking for matching `''",
        "/bin/sh: line 1: syntax error near unexpected token `fi'",
        "/bin/sh: 1: cannot create /nowhere/x: Directory nonexistent\n",
        "python3: can't open file '/x/gone.py': [Errno 2] No such file or directory",
        'Can\'t open perl script "gone.pl": No such file or directory',
        "sh: 0: cannot open gone.sh: No such file",
    ],
)
def test_the_words_of_a_shell_are_no_reason_to_block(stderr: str) -> None:
    """A command that a shell cannot read, or that starts a script which is not there, has not been heard."""
    outcome = judged("$GUARD", stderr)
    assert outcome.status == "not_started"
    assert outcome.reason == f"its command did not get as far as the handler: {stderr.strip()}"


@pytest.mark.parametrize(
    "stderr", ["migrations are generated", "sh: no", "it says python3: can't open file x"]
)
def test_the_words_of_a_handler_are(stderr: str) -> None:
    """What a handler writes is its reason, also where it speaks of a shell."""
    assert judged("$GUARD", stderr).exit_code == 2


def test_a_program_without_a_shell_is_judged_by_its_arguments() -> None:
    """A handler with arguments of its own names its script there."""
    assert judged("", argv=("/usr/bin/python3", "gone.py")).status == "not_started"
    assert judged("", argv=("/usr/bin/python3", "guard.py")).exit_code == 2
