"""Which home LibreFang's hooks are read from, and which of its files are theirs.

A home is named by the user: by an argument or a setting, by ``LIBREFANG_HOME``, or because it is
``~/.librefang``. So its hooks are the user's own and run without being asked about, unlike those of a
workspace that came from somebody else. In it, ``hooks/*/HOOK.yaml`` counts and nothing else; what looks as if
it was meant to count is said. It refuses to know what is in the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ..dialects.librefang import FILE_NAME
from ..hooks.diagnostics import Diagnostic, Severity
from .discover import Signature, signature

HOME_VARIABLE: Final = "LIBREFANG_HOME"
MAX_HOOKS: Final = 1_000
"""Folders that are looked into; more are counted."""
MAX_ENTRIES: Final = 10_000
"""Entries of one folder that are looked at for misspelled names."""

CODES: Final[dict[str, Severity]] = {
    "no_hook_file": "info",
    "misnamed_file": "warning",
    "misplaced_file": "warning",
    "unreadable_folder": "error",
    "too_many_hooks": "error",
}

_MEANT: Final = ("hook.yaml", "hook.yml")


@dataclass(frozen=True, slots=True)
class Listing:
    """The hook files of a home, in the order of their folders' bytes, and what is odd about the rest."""

    files: tuple[str, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()


def find_home(named: str | None, environ: Mapping[str, str]) -> str | None:
    """The home's absolute path, or None when there is none.

    ``named`` is what an argument or a setting says, and counts first; ``~/.librefang`` counts only if it is
    there. Raises FileNotFoundError when a relative path hangs on a folder that was deleted.
    """
    chosen = named or environ.get(HOME_VARIABLE)
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    usual = os.path.expanduser("~/.librefang")
    return usual if os.path.isdir(usual) else None


def hooks_folder(home: str) -> str:
    """Where a home keeps its hooks."""
    return os.path.join(home, "hooks")


def list_hooks(root: str) -> Listing:
    """The hook files below ``root``; links to folders and hidden folders count too.

    Raises OSError when ``root`` cannot be listed; that it does not exist is no error.
    """
    try:
        names = sorted(os.listdir(root), key=os.fsencode)
    except FileNotFoundError:
        return Listing()
    files: list[str] = []
    remarks: list[Diagnostic] = []
    folders = 0
    for name in names:
        path = os.path.join(root, name)
        if not os.path.isdir(path):
            if name.lower() in _MEANT:
                remarks.append(_remark("misplaced_file", path, "this file belongs to no hook", _MOVE))
            continue
        folders += 1
        if folders <= MAX_HOOKS:
            files += _own(path)
            remarks += _oddities(path)
    if folders > MAX_HOOKS:
        message = f"{folders - MAX_HOOKS} folders are not looked into: there are more than {MAX_HOOKS}"
        remarks.append(_remark("too_many_hooks", root, message, "remove some"))
    return Listing(tuple(files), tuple(remarks))


def tree_signature(root: str) -> Signature:
    """What the hooks below ``root`` look like from outside; None when there is no such folder."""
    whole = signature(root)
    if whole is None:
        return None
    try:
        files = list_hooks(root).files
    except OSError as error:
        return (*whole, error.errno or 0)
    return (*whole, *(number for path in files for number in signature(path) or (0,)))


_MOVE: Final = f"put it into a folder of its own, as {FILE_NAME}"


def _own(folder: str) -> list[str]:
    path = os.path.join(folder, FILE_NAME)
    return [path] if os.path.lexists(path) else []


def _oddities(folder: str) -> Iterator[Diagnostic]:
    """Names that were probably meant to be the hook file, or that there is none at all."""
    meant: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(MAX_ENTRIES), entries, strict=False):
                if entry.name.lower() in _MEANT and entry.name != FILE_NAME:
                    meant.append(entry.name)
    except OSError as error:
        message = f"the folder cannot be listed: {error.strerror}"
        yield _remark("unreadable_folder", folder, message, "let this user read it")
        return
    has_file = bool(_own(folder))
    for name in sorted(meant):
        hint = f"only {FILE_NAME} counts: remove it" if has_file else f"rename it to {FILE_NAME}"
        message = f"this file is not read: a hook is described by {FILE_NAME}, in this spelling"
        yield _remark("misnamed_file", os.path.join(folder, name), message, hint)
    if not has_file and not meant:
        yield _remark("no_hook_file", folder, f"there is no {FILE_NAME} here: this is no hook", None)


def _remark(code: str, path: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic(CODES[code], code, path, None, None, None, message, hint)
