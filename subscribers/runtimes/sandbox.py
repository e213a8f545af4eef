"""Running a program inside bubblewrap: no network, a system that can only be read, limits.

Decides what a run sees and may use. Refuses to know what it is for. Inside there are

* namespaces of its own for users, processes, the network (without any interface but loopback), IPC and the
  host's name, no capability, and a session of its own, so that no terminal can be reached;
* the whole file system read-only, with /tmp, /var/tmp and /run empty and private, for sockets of other
  programs live there; the workspace writable; what the caller names besides, readable where it is. What a run
  names itself opens none of them: of a program that lies there the file alone can be read, and a working
  directory there is refused, because a run may have rewritten the file that names it;
* limits on each process's address space and each file's size, also of what is kept in memory (/dev/shm and
  the private folders), and on the number of processes.

The number of processes is a limit of the kernel on a user in this namespace. It does not hold for root: a run
of root gets a control group, and where none can be made the sandbox is not available.

What a run leaves behind when it exits ends with it: bubblewrap takes its namespace of processes along. It
ignores SIGTERM itself, and the program does not: so the program has the grace that the signal opens.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ..hooks.diagnostics import quote
from ..hooks.invocation import Invocation
from .cgroup import PLACES, Groups, NoGroups
from .spawn import StartFailed
from .start_failure import missing_interpreter

SYSTEM_PATH: Final = ("/usr/bin", "/bin", "/usr/local/bin")
"""Where the programs of the sandbox are looked for; never in a workspace."""

PRIVATE: Final = ("/tmp", "/var/tmp", "/run")
"""Folders that are empty inside."""

_HIDDEN: Final = (*PRIVATE, "/dev", "/proc")
_ISOLATED: Final = ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
_PROBE_S: Final = 20.0
_OWN_PROCESSES: Final = 2
"""Processes of bubblewrap itself in each run."""

_ENTER: Final = 'trap \'\' TERM; echo $$ >"$0" && exec "$@"'
"""What is executed outside: $0 is where the pid is written, the arguments are bubblewrap's command line."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use: bytes of address space of each process, processes, bytes of each file."""

    memory_bytes: int
    processes: int
    file_bytes: int


class SandboxUnavailable(Exception):
    """The sandbox cannot be used on this machine; the text says why and what to do."""


class Bubblewrap:
    """Encloses invocations; one for a workspace, ``workspace`` absolute. Thread-safe.

    ``readable``: files and folders that every run can read, wherever they are. Raises SandboxUnavailable
    after having tried it once.
    """

    def __init__(
        self,
        workspace: str,
        limits: Limits,
        *,
        readable: Iterable[str] = (),
        path: Sequence[str] = SYSTEM_PATH,
        groups: Sequence[str] = PLACES,
    ) -> None:
        self._workspace = os.path.realpath(workspace)
        if self._workspace == "/":
            raise SandboxUnavailable("the workspace is /, all of which would be writable; name a folder")
        self._limits = limits
        self._readable = tuple(readable)
        self._bwrap = _find("bwrap", "bubblewrap", path)
        self._prlimit = _find("prlimit", "util-linux", path)
        self._env = _find("env", "coreutils", path)
        self._groups = None if os.geteuid() else _groups(groups)
        self._try()

    def enclose(
        self, invocation: Invocation, readable: Iterable[str] = ()
    ) -> tuple[Invocation, Callable[[], None]]:
        """The same run inside, and what to call when it is over. Raises StartFailed and OSError.

        ``readable``: what this run can read besides.
        """
        program = invocation.argv[0]
        reason = missing_interpreter(program)
        if reason is not None:  # inside, the message would come from bubblewrap, with an exit code
            raise StartFailed(reason)
        if self._is_hidden(os.path.realpath(invocation.cwd)):
            raise StartFailed(
                f"its cwd {quote(invocation.cwd)} is private in the sandbox; name a folder of the workspace"
            )
        noted, release = "/dev/null", nothing
        if self._groups is not None:
            group = self._groups.make(self._limits.processes + _OWN_PROCESSES)
            noted, release = f"{group}/cgroup.procs", partial(self._groups.remove, group)
        enter = ("/bin/sh", "-c", _ENTER, noted)
        file = (program,) if os.path.isfile(program) else ()  # nothing but a file: a folder may hold sockets
        inside = self._command((*file, *readable), invocation.cwd)
        return replace(invocation, argv=(*enter, *inside, *invocation.argv)), release

    def close(self) -> None:
        """Give back what the kernel has let go; nothing is enclosed afterwards."""
        if self._groups is not None:
            self._groups.close()

    def _command(self, readable: Sequence[str], cwd: str) -> tuple[str, ...]:
        limits = self._limits
        mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for folder in (*PRIVATE, "/dev/shm"):
            if os.path.isdir(folder) and not os.path.islink(folder):
                mounts += ["--size", str(max(limits.file_bytes, 1)), "--tmpfs", folder]
        mounts += ["--bind", self._workspace, self._workspace]
        for path in (*self._readable, *readable):
            real = os.path.realpath(path)
            if self._is_hidden(real):
                mounts += ["--ro-bind", real, real]
        mounts += ["--remount-ro", "/dev"]  # it is a file system in memory, without a size; its devices stay
        return (
            *(self._bwrap, *_ISOLATED, "--unshare-cgroup-try", "--cap-drop", "ALL", "--new-session"),
            "--die-with-parent",
            *mounts,
            *("--chdir", cwd, "--", self._prlimit),
            *(f"--as={limits.memory_bytes}", f"--fsize={limits.file_bytes}"),
            *(f"--nproc={limits.processes}", "--core=0", "--"),
            *(self._env, "--default-signal=TERM", "--"),
        )

    def _is_hidden(self, real: str) -> bool:
        """Whether the machine's folder or file of this path, without links, is not there inside."""
        return _is_within(real, _HIDDEN) and not _is_within(real, (self._workspace,))

    def _try(self) -> None:
        command = (*self._command((), self._workspace), "/bin/true")
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=_PROBE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxUnavailable(f"bubblewrap cannot be run: {error}") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[:300]
            raise SandboxUnavailable(
                f"bubblewrap does not work here: {said}; user namespaces may be switched off "
                "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)"
            )


def nothing() -> None:
    """Without a group there is nothing to give back."""


def _find(program: str, package: str, path: Sequence[str]) -> str:
    for folder in path:
        candidate = f"{folder}/{program}"
        if os.access(candidate, os.X_OK):
            return candidate
    raise SandboxUnavailable(f"there is no {program} in {':'.join(path)}; install the package {package}")


def _groups(places: Sequence[str]) -> Groups:
    try:
        return Groups(places)
    except NoGroups as error:
        raise SandboxUnavailable(
            f"{error}, and the kernel does not limit the processes of root otherwise; run as another user"
        ) from None


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
