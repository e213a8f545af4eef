"""rolebox's lock file, and the hash in it: which roles were installed, and what their files were.

The hash is SHA-256 over each file's path, a NUL and its bytes, in the order in which JavaScript compares
texts for people; it stands as ``sha256-`` and hexadecimal digits. That order depends on the locale and on a
library, so that it is known for sure only for simple names. Decides which orders may be the one, and refuses
to know where the lock file lies.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ..hooks.diagnostics import quote
from .rolebox_reading import Reading
from .yaml_nodes import BYTE_ORDER_MARK, Node, YamlRefused, read_yaml

FILE_NAME: Final = "rolebox.lock"
FORM: Final = "sha256-"
MAX_BYTES: Final = 1_048_576
MAX_ROLES: Final = 1_000

_DEPTH: Final = 8
_PLAIN: Final = re.compile(r"[a-z0-9./-]*")
_PUNCTUATION: Final = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_RANKS: Final = {
    character: rank for rank, character in enumerate(f"{_PUNCTUATION}0123456789abcdefghijklmnopqrstuvwxyz")
}
"""The order of characters in English, as the Unicode collation has it; case decides only what is equal."""

_FIELDS: Final = ("role", "registry", "version", "integrity")


class Locked(NamedTuple):
    """A role in the lock file."""

    role: str
    registry: str
    version: str
    integrity: str


class NotALock(ValueError):
    """The bytes are no lock file; the text says why."""


def read_lock(content: bytes) -> tuple[Locked, ...]:
    """The roles of a lock file; an entry that lacks something is passed over. Raises :class:`NotALock`."""
    if len(content) > MAX_BYTES:
        raise NotALock(f"it has more than {MAX_BYTES:,} bytes")
    try:
        root = read_yaml(content.removeprefix(BYTE_ORDER_MARK), _DEPTH)
    except YamlRefused as error:
        raise NotALock(f"line {error.line}: {error.message}") from None
    reading = Reading(FILE_NAME)
    entries = reading.entries(root, "") if root is not None and root.kind == "mapping" else {}
    roles = entries.get("roles")
    items = roles.value.items()[:MAX_ROLES] if roles is not None and roles.value.kind == "list" else []
    return tuple(found for item in items if (found := _locked(reading, item)) is not None)


def _locked(reading: Reading, item: Node) -> Locked | None:
    if item.kind != "mapping":
        return None
    entries = reading.entries(item, "")
    texts = [entries[name].value.text for name in _FIELDS if name in entries]
    return Locked(*texts) if len(texts) == len(_FIELDS) and all(texts) else None


def orders(paths: Sequence[str]) -> Iterator[list[str]]:
    """Orders that JavaScript's comparison may have given, the likely one first."""
    if all(_RANKS.keys() >= set(path.lower()) for path in paths):
        yield sorted(paths, key=_in_english)
    yield sorted(paths, key=str.encode)


def is_beyond_doubt(paths: Iterable[str]) -> bool:
    """Whether every comparison gives the same order: small letters, digits, dots, dashes and slashes."""
    return all(_PLAIN.fullmatch(path) for path in paths)


def digest(paths: Iterable[str], chunks: Callable[[str], Iterable[bytes]]) -> str:
    """The hash of files in this order; ``chunks`` gives the bytes of one."""
    found = hashlib.sha256()
    for path in paths:
        found.update(path.encode() + b"\0")
        for chunk in chunks(path):
            found.update(chunk)
    return FORM + found.hexdigest()


def why_not_comparable(integrity: str) -> str | None:
    """Why a hash of the lock file is none that can be compared; None: it can."""
    if re.fullmatch(FORM + "[0-9a-f]{64}", integrity):
        return None
    return f"{quote(integrity)} is not of the form {FORM} with 64 digits"


def _in_english(path: str) -> tuple[list[int], str]:
    """Letters by their place in the alphabet; of paths that differ in case alone, small ones first."""
    return [_RANKS[character] for character in path.lower()], path.swapcase()
