"""``posix_spawn`` of the C library, called so that other threads of this process go on meanwhile.

``os.posix_spawn`` keeps the interpreter's lock until the child has been executed, half a millisecond in which
nothing else here runs, no other start either. Called through ``ctypes`` the lock is free. Decides how the
call is made; what is started, and with which descriptors, is the caller's.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final

_ROOM: Final = 1_024
"""Bytes for each of the library's opaque objects: 336 at most in glibc, 80 in its actions, less in musl."""

_SET_GROUP: Final = 0x02
_SET_DEFAULTS: Final = 0x04
"""Flags of ``posix_spawnattr_setflags``; the same in glibc and musl."""

RESTORED: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores and programs do not."""

_NEEDED: Final = (
    "posix_spawn",
    "posix_spawnattr_init",
    "posix_spawnattr_setflags",
    "posix_spawnattr_setpgroup",
    "posix_spawnattr_setsigdefault",
    "posix_spawn_file_actions_init",
    "posix_spawn_file_actions_adddup2",
    "posix_spawn_file_actions_destroy",
    "sigemptyset",
    "sigaddset",
)


class Starter:
    """Starts programs. Thread-safe. Raises OSError where the C library has no such functions."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(None)
            functions: dict[str, Any] = {name: getattr(library, name) for name in _NEEDED}
        except (OSError, AttributeError) as error:
            raise OSError(f"the C library cannot start programs for us: {error}") from None
        self._spawn = functions["posix_spawn"]
        self._init = functions["posix_spawn_file_actions_init"]
        self._dup2 = functions["posix_spawn_file_actions_adddup2"]
        self._destroy = functions["posix_spawn_file_actions_destroy"]
        self._attributes = ctypes.create_string_buffer(_ROOM)
        defaults = ctypes.create_string_buffer(_ROOM)
        functions["sigemptyset"](defaults)
        for number in RESTORED:
            functions["sigaddset"](defaults, int(number))
        for name, *arguments in (
            ("posix_spawnattr_init",),
            ("posix_spawnattr_setflags", ctypes.c_short(_SET_GROUP | _SET_DEFAULTS)),
            ("posix_spawnattr_setpgroup", 0),
            ("posix_spawnattr_setsigdefault", defaults),
        ):
            code = functions[name](self._attributes, *arguments)
            if code:
                raise OSError(code, f"{name}: {os.strerror(code)}")

    def start(self, argv: Sequence[bytes], env: Mapping[bytes, bytes], streams: tuple[int, int, int]) -> int:
        """The pid of ``argv``, in a process group of its own, with ``streams`` as its first descriptors.

        Every other descriptor that is inheritable is inherited. Raises OSError with what ``exec`` said, and
        ValueError for what cannot be passed to a program.
        """
        entries = [b"%b=%b" % entry for entry in env.items()]
        for text in (*argv, *entries):
            if b"\0" in text:
                raise ValueError("embedded null byte")
        if not all(env):
            raise ValueError("illegal environment variable name")
        if any(b"=" in name for name in env):
            raise ValueError("illegal environment variable name")
        actions = ctypes.create_string_buffer(_ROOM)
        pid = ctypes.c_int()
        code = self._init(actions)
        if not code:
            for number, descriptor in enumerate(streams):
                code = code or self._dup2(actions, descriptor, number)
            if not code:
                code = self._spawn(
                    ctypes.byref(pid), argv[0], actions, self._attributes, _array(argv), _array(entries)
                )
            self._destroy(actions)
        if code:
            raise OSError(code, os.strerror(code), os.fsdecode(argv[0]))
        return pid.value


def _array(texts: Sequence[bytes]) -> Any:
    """A C array of strings with a null pointer at its end."""
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
