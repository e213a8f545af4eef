"""A machine for samples: the paths and hosts that they name are really there, and nothing else changes.

bubblewrap puts together a root from this machine's own folders, with ``/opt/hooks``, ``/var/log/prx``,
``/usr/local/bin/notify`` and ``/working/directory`` beside them, and a network of its own in which the hosts
of the samples are this machine: a server with a certificate that curl trusts. Inside, a bus and the shell
service run the sample's file, byte for byte.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
INSIDE = Path(__file__).with_name("inside.py")
HOSTS = ("hooks.slack.com", "alerts.example")
TOOLS = ("bwrap", "jq", "curl", "openssl", "bash")
NOTIFY = b'#!/bin/sh\nprintf "%s\\n" "$@" >> /var/log/prx/notified\n'

_MADE = ("proc", "dev", "opt", "tmp", "run", "path", "working")
"""Top-level folders that are not this machine's."""

Event = tuple[str, dict[str, Any]]


class Played(NamedTuple):
    """What came of it: reports of runs, requests that the server got, and the folder ``/var/log/prx``."""

    runs: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    log: Path

    def text(self, name: str) -> str:
        """A file of ``/var/log/prx``."""
        return (self.log / name).read_text()


class Stage:
    """Plays samples, each in a machine of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key, self._certificate = _certificate(folder)

    def play(self, hooks: bytes, scripts: Mapping[str, bytes], events: Sequence[Event], runs: int) -> Played:
        """Publish the events with this ``hooks.json`` in force; return when so many runs were reported.

        ``scripts`` are files of ``/opt/hooks``; a path with a slash is a path of its own.
        """
        with tempfile.TemporaryDirectory(prefix="pxb", dir="/tmp") as short:
            return self._play(Path(short), hooks, scripts, events, runs)

    def _play(
        self, short: Path, hooks: bytes, scripts: Mapping[str, bytes], events: Sequence[Event], runs: int
    ) -> Played:
        made = Path(tempfile.mkdtemp(dir=self._folder))
        workspace, log, programs = (made / name for name in ("workspace", "log", "programs"))
        for path in (workspace, log, programs):
            path.mkdir()
        (workspace / "hooks.json").write_bytes(hooks)
        binds = ["--bind", str(log), "/var/log/prx", "--dir", "/working/directory", "--dir", "/opt/hooks"]
        named = {"/usr/local/bin/notify": NOTIFY}
        named |= {name if "/" in name else f"/opt/hooks/{name}": text for name, text in scripts.items()}
        for number, (there, text) in enumerate(named.items()):
            program = programs / str(number)
            program.write_bytes(text)
            program.chmod(0o755)
            binds += ["--ro-bind", str(program), there]
        task = made / "task.json"
        task.write_text(
            json.dumps(
                {
                    "workspace": str(workspace),
                    "bus": str(short / "bus"),
                    "events": events,
                    "runs": runs,
                    "key": str(self._key),
                    "certificate": str(self._certificate),
                }
            )
        )
        command = [*self._machine(), *binds, "--", sys.executable, "-P", str(INSIDE), str(task)]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, timeout=100, env=environ, check=False)
        assert done.returncode == 0, done.stderr.decode()
        said = json.loads(done.stdout)
        return Played(said["runs"], said["requests"], log)

    def _machine(self) -> list[str]:
        hosts = self._folder / "hosts"
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *HOSTS)))
        command = [
            "bwrap",
            "--die-with-parent",
            "--unshare-user",
            "--uid",
            "0",
            "--gid",
            "0",
            "--unshare-net",
        ]
        command += ["--unshare-pid", "--cap-add", "CAP_NET_BIND_SERVICE", "--proc", "/proc", "--dev", "/dev"]
        for entry in sorted(os.scandir("/"), key=lambda entry: entry.name):
            if entry.is_symlink():
                command += ["--symlink", os.readlink(entry.path), entry.path]
            elif entry.is_dir() and entry.name not in _MADE:
                command += ["--ro-bind", entry.path, entry.path]
        command += ["--bind", "/tmp", "/tmp", "--tmpfs", "/run", "--tmpfs", "/var/log"]
        command += ["--tmpfs", "/usr/local/bin"]
        for entry in os.scandir("/usr/local/bin"):
            if entry.is_file():
                command += ["--ro-bind", os.path.realpath(entry.path), entry.path]
        command += ["--ro-bind", str(hosts), "/etc/hosts", "--tmpfs", "/etc/ssl"]
        return [*command, "--ro-bind", str(self._certificate), "/etc/ssl/certs/ca-certificates.crt"]


@contextmanager
def stage(require_tool: Callable[[str], str]) -> Iterator[Stage]:
    """A stage; skips where a tool is missing (in CI that fails) or the kernel allows no namespaces."""
    for tool in TOOLS:
        require_tool(tool)
    probe = ("bwrap", "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "--", "true")
    tried = subprocess.run(probe, capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"this kernel does not let bubblewrap work: {tried.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory(prefix="stage", dir="/tmp") as folder:
        yield Stage(Path(folder))


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A fresh key and certificate for the hosts; the certificate is its own authority."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = ",".join(f"DNS:{name}" for name in HOSTS)
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "2", "-subj", "/CN=samples", "-addext", f"subjectAltName={names}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        capture_output=True,
        check=True,
    )
    return key, certificate
