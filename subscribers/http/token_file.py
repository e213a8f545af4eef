"""The bearer token: made at the first start, kept in a file that its user alone can read.

It decides where the token comes from and what cannot be one. ``PRXBUS_API_TOKEN`` stands above the file.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ..hooks.withheld import API_TOKEN, HOOK_TOKEN

FILE_NAME: Final = "http-token"
"""The token's file in the runtime directory."""

LEAST_CHARACTERS: Final = 16
_MOST_CHARACTERS: Final = 512


class TokenRefused(Exception):
    """What should hold the token cannot be used; the text says why and what to do."""


HOOK_FILE_NAME: Final = "hook-token"
"""The file of the token that agents' HTTP hooks carry. It outlives a bus: it stands in agents' settings."""


def find_hook_token(directory: str, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """The token of agents' HTTP hooks, and the path of its file in ``directory``: as :func:`find_token`.

    The directory is made where it is missing.
    """
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
    except OSError as error:
        raise TokenRefused(f"the directory {directory!r} cannot be made: {error.strerror}") from None
    return find_token(directory, environ, HOOK_FILE_NAME, HOOK_TOKEN)


def find_token(
    directory: str, environ: Mapping[str, str], name: str = FILE_NAME, variable: str = API_TOKEN
) -> tuple[str, str | None]:
    """The token, and the path of its file; None for the path when the environment gives the token.

    Makes the file ``name`` when there is none. Raises :class:`TokenRefused`.
    """
    given = environ.get(variable)
    if given:
        return _checked(given, variable), None
    path = os.path.join(directory, name)
    with suppress(FileExistsError):
        _make(path)
    return _checked(_read(path), path), path


def _make(path: str) -> None:
    """Make the file whole or not at all, so that another process never reads half a token."""
    temporary = f"{path}.{secrets.token_hex(4)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        try:
            os.link(temporary, path)  # unlike a rename, it leaves a file that is there
        finally:
            os.unlink(temporary)
    except FileExistsError:
        raise
    except OSError as error:
        raise TokenRefused(f"the token file {path!r} cannot be made: {error.strerror}") from None


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, encoding="utf-8", errors="replace") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise TokenRefused(
                    f"the token file {path!r} is not this user's alone; remove it, and a new one is made"
                )
            return file.read(_MOST_CHARACTERS + 2).rstrip("\n")
    except OSError as error:
        raise TokenRefused(f"the token file {path!r} cannot be read: {error.strerror}") from None


def _checked(token: str, where: str) -> str:
    fits = LEAST_CHARACTERS <= len(token) <= _MOST_CHARACTERS
    if not fits or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenRefused(
            f"{where} holds no token: it has {LEAST_CHARACTERS} to {_MOST_CHARACTERS} printable ASCII "
            "characters without blanks"
        )
    return token
