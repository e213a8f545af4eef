"""Where the program of a LibreFang hook is on this machine, now.

In this order: the whole ``command`` as a file in the hook's folder; as an absolute path; then, where there
are no ``args``, its first word as a file in the folder, or an absolute path, and the rest as arguments; then
that word on the ``PATH``, with a notice. What is there and cannot be run is not looked for elsewhere. The
answer holds for one run and is asked again for each. It refuses to start anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.spec import HookSpec
from .resolve import SEVERITIES, Resolved, Unresolved

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def resolve(spec: HookSpec, search_path: str | None = None) -> Resolved | Unresolved:
    """Find a spec's program; its folder is that of its file. Raises nothing.

    ``search_path``: the ``PATH`` to look on, by default that of this process, which hooks inherit.
    """
    folder = os.path.dirname(os.path.abspath(spec.path))
    if not os.path.isdir(folder):
        return Unresolved("missing_cwd", "cwd", f"the folder {quote(folder)} is gone", "rescan with SIGHUP")
    if search_path is None:
        search_path = os.environ.get("PATH", _DEFAULT_PATH)
    whole = _path(folder, spec.command)
    if _is_there(whole):
        return _fault(whole) or Resolved(whole, folder)
    words = spec.command.split() if spec.splits_command else [spec.command]
    if len(words) > 1:
        first = _path(folder, words[0])
        if _is_there(first):
            return _fault(first) or Resolved(first, folder, tuple(words[1:]))
    if words and "/" not in words[0]:
        found = _on_path(words[0], search_path)
        if found is not None:
            notice = f"{quote(words[0])} is no file in the hook's folder: {found} from the PATH is used"
            return Resolved(found, folder, tuple(words[1:]), notice)
    return _missing(words or [spec.command], folder)


def check(specs: Iterable[HookSpec], search_path: str | None = None) -> tuple[Diagnostic, ...]:
    """A diagnostic for each file whose hook could not run if its event came now, or runs with a notice."""
    found = []
    for spec in {spec.path: spec for spec in specs}.values():  # the hooks of one file share their command
        answer = resolve(spec, search_path)
        line, column = spec.command_at or (spec.line, None)
        if isinstance(answer, Unresolved):
            severity, place = SEVERITIES[answer.code], (spec.path, line, column, answer.field)
            found.append(Diagnostic(severity, answer.code, *place, answer.message, answer.hint))
        elif answer.notice is not None:
            place = (spec.path, line, column, "command")
            hint = "write its absolute path if that is meant"
            found.append(Diagnostic("info", "command_on_path", *place, answer.notice, hint))
    return tuple(found)


def _path(folder: str, written: str) -> str:
    """Where a command lies that is written so; an absolute path stands for itself."""
    if written.startswith("./"):
        written = written[2:].lstrip("/")
    return os.path.join(folder, written)


def _is_there(path: str) -> bool:
    """Whether there is something to run, or to complain about: anything but a folder."""
    try:
        return os.path.lexists(path) and not os.path.isdir(path)
    except ValueError:  # a name that this file system cannot spell
        return False


def _fault(path: str) -> Unresolved | None:
    shown = quote(path)
    if not os.path.exists(path):
        message = f"{shown} is a link to {quote(os.path.realpath(path))}, which cannot be found"
        return Unresolved("missing_command", "command", message, "correct the link")
    if not os.path.isfile(path):
        return Unresolved("not_executable", "command", f"{shown} is not a file", "name an executable file")
    if not os.access(path, os.X_OK):
        return Unresolved("not_executable", "command", f"{shown} is not executable", "run chmod +x on it")
    return None


def _on_path(word: str, search_path: str) -> str | None:
    for folder in search_path.split(os.pathsep):
        candidate = os.path.join(folder, word)
        if os.path.isabs(candidate) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def _missing(words: list[str], folder: str) -> Unresolved:
    where = f"in {quote(folder)}" if "/" in words[0] else f"in {quote(folder)} or on the PATH"
    if os.path.isabs(words[0]):
        where = "there"
    hint = "create it and run chmod +x on it, or correct the path"
    if os.path.isdir(_path(folder, words[0])):
        hint = "this is a folder: name the executable file in it"
    return Unresolved("missing_command", "command", f"no {quote(words[0])} {where}", hint)
