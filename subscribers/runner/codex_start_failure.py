"""Whether an exit code 2 is the handler's word, or that of a shell or interpreter that never came to it.

Exit code 2 blocks, and it is also what ``python3``, ``perl`` and ``sh`` say of a script that is not there,
and a shell of a command that it cannot read. A guard that ran must block, whatever it wrote, so a run counts
as not started only where nothing else can have happened; in doubt exit code 2 is a block. Decides that from
the command, the folder and the output. It refuses to run or open anything: whether a file exists, and what a
shell says of a command that it only reads, come in as functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from os.path import basename, join
from typing import Final

from ..hooks.diagnostics import quote
from ..hooks.outcome import Outcome

DOUBTFUL: Final = 2
"""The only exit code that means something to a dialect and is also a shell's own.

``bash`` and ``zsh`` end with 127 where a script is not there, ``node`` and ``ruby`` with 1: no block.
"""

INTERPRETER: Final = re.compile(r"(?:ba|da|z|k)?sh|(?:python|pypy|perl|ruby|node|php|lua)[0-9.]*")
"""Programs whose first argument, unless it is an option, is the script that they run."""

SHELLS: Final = frozenset({"sh", "bash", "dash", "ksh"})
"""Shells that read a command without running it when told ``-n``."""

_OWN_WORDS: Final = """
    ! . : [ [[ ]] { } alias autoload bg bind break builtin caller case cd command compgen complete
    compopt continue coproc declare dirs disown do done echo elif else emulate enable esac eval exec
    exit export false fc fg fi for function getopts hash help history if in jobs kill let local
    logout mapfile noglob popd print printf pushd pwd read readarray readonly rehash repeat return
    select set setopt shift shopt source suspend test then time times trap true type typeset ulimit
    umask unalias unset unsetopt until wait whence where which while
"""
_SHELLS_OWN: Final = frozenset(_OWN_WORDS.split())
"""Words that a shell knows without a program: POSIX's, and those of ``bash``, ``ksh`` and ``zsh``."""

_OPTIONS: Final = tuple(
    (re.compile(name), re.compile(options))
    for name, options in ((r".*sh$", r"-[eux]+"), (r"py", r"-[uEBIsSO]+"), (r"", r"(?!)"))
)
"""Options before a script that take no value, by kind of interpreter; no other one is understood."""
_PLAIN: Final = re.compile(r"[\w@%+:,./=-]+")
_SINGLE: Final = re.compile(r"'([^']*)'")
_DOUBLE: Final = re.compile(r'"([^"$`\\!]*)"')
_REST: Final = re.compile(r'([^"$`\\!]*)"')
_KNOWN: Final = re.compile(r'(?P<quote>"?)\$(?P<name>HOME|CLAUDE_PROJECT_DIR)(?=/|"/)')
_SPLIT: Final = re.compile(r"[\s*?\[\]\\]")

_PYTHON: Final = re.compile(
    r"[^\n]*: can't open file (?P<q>['\"])(?P<path>.*)(?P=q): \[Errno 2\] No such file or directory",
    re.DOTALL,
)

_LONGEST_SAID: Final = 8_192
"""Characters that an interpreter says of a script at most: two paths, and a few words."""

Reading = Callable[[], str | None]
"""What a shell writes of its command when it only reads it; None where it can read it, or nobody can tell."""


def as_it_was(
    outcome: Outcome,
    argv: tuple[str, ...],
    command: str,
    cwd: str,
    env: Mapping[str, str],
    exists: Callable[[str], bool],
    reading: Reading,
) -> Outcome:
    """The outcome of a run, or one that says that the handler was never started, and why.

    ``argv`` is what was run; ``command`` the text that its shell was given, empty where there was none.
    """
    printed = outcome.stdout.total or outcome.stderr.truncated
    if outcome.exit_code != DOUBTFUL or printed:
        return outcome
    said = outcome.stderr.text()
    why = _never_found(said, command, argv, cwd, env, exists) or _never_read(said, command, argv, reading)
    return outcome if why is None else replace(outcome, status="not_started", exit_code=None, reason=why)


def _never_found(
    said: str,
    command: str,
    argv: tuple[str, ...],
    cwd: str,
    env: Mapping[str, str],
    exists: Callable[[str], bool],
) -> str | None:
    words = _words(command, env) if command else argv
    script = None if words is None else _script(words)
    if words is None or script is None or not _is_own_word(said.removesuffix("\n"), words[0], script):
        return None
    return missing_script(command, argv, cwd, env, exists)


def _is_own_word(said: str, program: str, script: str) -> bool:
    """Whether that is all that an interpreter says of a script that is not there."""
    if len(said) > _LONGEST_SAID:
        return False
    name = basename(program)
    if name.startswith(("python", "pypy")):
        found = _PYTHON.fullmatch(said)
        if found is None:
            return False
        return found["path"] == script or (script[:1] != "/" and found["path"].endswith(f"/{script}"))
    if name.startswith("perl"):
        return said == f'Can\'t open perl script "{script}": No such file or directory'
    return said in (
        f"{program}: 0: cannot open {script}: No such file",
        f"{program}: 0: Can't open {script}",
        f"{program}: can't open '{script}': No such file or directory",
    )


def _never_read(said: str, command: str, argv: tuple[str, ...], reading: Reading) -> str | None:
    """That a shell could not read its command; of more than one line it may have run the first ones."""
    shell = argv[0]
    if not command or "\n" in command.strip() or basename(shell) not in SHELLS:
        return None
    if not said.startswith(f"{shell}: ") or said != reading():
        return None
    return f"its command cannot be read by {shell}: {said.strip()[:500]}"


def missing_script(
    command: str, argv: tuple[str, ...], cwd: str, env: Mapping[str, str], exists: Callable[[str], bool]
) -> str | None:
    """That the script which is all of a command is not there; None where it is, or only a shell can tell.

    Parameters are as for :func:`as_it_was`.
    """
    words = _words(command, env) if command else argv
    script = None if words is None else _script(words)
    if script is None or exists(join(cwd, script)):
        return None
    return f"its script {quote(join(cwd, script))} is not there"


def missing_program(
    command: str,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    is_program: Callable[[str, str | None], bool],
) -> str | None:
    """That the program which a command runs is not there; None where it is, or only a run can tell.

    A relative path is looked for in the folder of a session, which may be any. ``is_program`` says it
    of an absolute path, or of a name and the ``PATH`` that it is looked for on. Other parameters are as for
    :func:`as_it_was`.
    """
    words = _words(command, env) if command else argv
    if words is None or (command and (words[0] in _SHELLS_OWN or "=" in words[0])):
        return None
    name = words[0]
    if "/" not in name:
        return None if is_program(name, env.get("PATH")) else f"no such program: {quote(name)} is on no PATH"
    if not name.startswith("/"):
        return None
    return None if is_program(name, None) else f"no such program: {quote(name)}"


def _script(words: tuple[str, ...]) -> str | None:
    """The script that an interpreter is told to run."""
    if INTERPRETER.fullmatch(basename(words[0])) is None:
        return None
    options = next(each for name, each in _OPTIONS if name.match(basename(words[0])))
    for word in words[1:]:
        if not word.startswith("-"):
            return word or None
        if options.fullmatch(word) is None:
            return None
    return None


def _words(command: str, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The words of one simple command without anything that a shell would have to work out; else None."""
    words = []
    at, command = 0, command.strip(" \t")
    while at < len(command):
        pieces = []
        for piece, end in _pieces(command, at, env):
            if piece is None:
                return None
            pieces.append(piece)
            at = end
        words.append("".join(pieces))
        while command[at : at + 1] in (" ", "\t"):
            at += 1
    return tuple(words) or None


def _pieces(command: str, at: int, env: Mapping[str, str]) -> Iterator[tuple[str | None, int]]:
    """The pieces of the word at ``at``, with where each ends; None for one that only a shell can read."""
    if command.startswith("~/", at):
        yield env.get("HOME") or None, at + 1
        at += 1
    elif known := _KNOWN.match(command, at):
        value, is_bare = env.get(known["name"], ""), not known["quote"]
        yield None if not value or (is_bare and _SPLIT.search(value)) else value, known.end()
        at = known.end()
        if not is_bare:  # the rest of the quoted piece
            rest = _REST.match(command, at)
            yield (None, at) if rest is None else (rest[1], at := rest.end())
    while at < len(command) and command[at] not in " \t":
        found = _PLAIN.match(command, at) or _SINGLE.match(command, at) or _DOUBLE.match(command, at)
        if found is None:
            yield None, at
            return
        at = found.end()
        yield found[found.lastindex or 0], at
