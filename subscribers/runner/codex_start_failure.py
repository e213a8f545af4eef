"""Whether an exit code 2 is the handler's word, or that of a shell or interpreter that never came to it.

Exit code 2 blocks, and it is also what ``python3``, ``perl`` and ``sh`` say of a script that is not there,
and a shell of a command that it cannot read. A guard whose script was renamed must be told as broken, not
read as a block whose reason is an error message. Decides that from the command, the folder and the error
output. It refuses to run anything; whether a file exists comes in as a function.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from os.path import basename, expanduser, join
from typing import Final

from ..hooks.diagnostics import quote
from ..hooks.outcome import Outcome

DOUBTFUL: Final = 2
"""The only exit code that means something to a dialect and is also a shell's own."""

INTERPRETER: Final = re.compile(r"(?:ba|da|z|k)?sh|(?:python|pypy|perl|ruby|node|php|lua)[0-9.]*")
"""Programs whose first argument, unless it is an option, is the script that they run."""

_SEPARATOR: Final = re.compile(r"[;&|()<>\n]+")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_WRAPPERS: Final = frozenset({"exec", "env", "nice", "nohup", "command", "time"})
_OWN_WORDS: Final = re.compile(
    r"(?P<python>\S*python\S*: can't open file .*)"
    r"|(?P<perl>Can't open perl script .*)"
    r"|(?P<shell>\S*\bsh: 0: cannot open .*)"
)


def as_it_was(
    outcome: Outcome,
    argv: tuple[str, ...],
    command: str,
    cwd: str,
    env: Mapping[str, str],
    exists: Callable[[str], bool],
) -> Outcome:
    """The outcome of a run, or one that says that the handler was never started, and why.

    ``argv`` is what was run; ``command`` the text that its shell was given, empty where there was none.
    """
    if outcome.exit_code != DOUBTFUL:
        return outcome
    said = outcome.stderr.text().strip()
    why = missing_script(command, argv, cwd, env, exists) or _own_words(said, argv[0])
    return outcome if why is None else replace(outcome, status="not_started", exit_code=None, reason=why)


def _own_words(said: str, shell: str) -> str | None:
    """What a shell or interpreter says in its first line; None where the words are the handler's."""
    first = said.partition("\n")[0]
    if re.match(rf"{re.escape(shell)}: (?:-c: )?(?:line )?\d+: ", first) or _OWN_WORDS.fullmatch(first):
        return f"its command did not get as far as the handler: {first[:500]}"
    return None


def missing_script(
    command: str, argv: tuple[str, ...], cwd: str, env: Mapping[str, str], exists: Callable[[str], bool]
) -> str | None:
    """That a command's script is not there; None where nothing is missing, or nobody can say.

    Parameters are as for :func:`as_it_was`.
    """
    for words in _commands(command) if command else iter([list(argv)]):
        if words[0] == "cd" and len(words) > 1:
            folder = _expanded(words[1], env)
            if folder is None:
                return None  # from here on nobody knows where it is
            cwd = join(cwd, folder)
            continue
        script = _script(words)
        path = None if script is None else _expanded(script, env)
        if path is not None and not exists(join(cwd, path)):
            return f"its script {quote(join(cwd, path))} is not there"
    return None


def _commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell's text, as words; none where the words cannot be told apart."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        tokens = list(lexer)
    except ValueError:
        return
    for token in [*tokens, ";"]:
        if _SEPARATOR.fullmatch(token):
            if words := _without_prefix(words):
                yield words
            words = []
        else:
            words.append(token)


def _without_prefix(words: list[str]) -> list[str]:
    """The words from the program on."""
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in _WRAPPERS):
        words = words[1:]
    return words


def _script(words: list[str]) -> str | None:
    if INTERPRETER.fullmatch(basename(words[0])) is None:
        return None
    arguments = words[1:]
    while arguments and arguments[0] in ("-u", "-E", "-s", "-B", "-I", "-e", "-x", "-P", "--"):
        arguments = arguments[1:]
    if words[1:2] == ["-e"] and not basename(words[0]).endswith("sh"):
        return None  # a program in the command itself
    return None if not arguments or arguments[0].startswith("-") else arguments[0]


def _expanded(text: str, env: Mapping[str, str]) -> str | None:
    """A word with its variables and home directory put in; None for what only a shell can tell."""
    if any(mark in text for mark in ("$(", "`", "*", "?", "[")):
        return None
    found = _VARIABLE.sub(lambda match: env.get(match[1] or match[2], ""), text)
    if "$" in found:
        return None
    if found == "~" or found.startswith("~/"):
        return env["HOME"] + found[1:] if env.get("HOME") else expanduser(found)
    return found
