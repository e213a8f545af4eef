"""``prxbus replay``: an agent's recorded payloads once more, through its hook command and over HTTP.

A recording is a file with one payload a line, as the agent wrote it on its hooks' stdin. Decides what is
shown of each event and when a replay has failed; how one is sent is :mod:`subscribers.runner.agent_probe`'s.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import orjson

from broker.cli.exits import DONE, FAILED, CommandError
from broker.cli.options import add_json, duration
from broker.cli.printing import emit, emit_json
from broker.places import runtime_directory

from .hook import SHIM, SOCKET_NAME, python

if TYPE_CHECKING:
    from ..runner.agent_probe import Sent

RECORDING_BYTES: Final = 268_435_456
LINE_BYTES: Final = 67_108_864
WAYS: Final = ("shim", "http", "both")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``replay``."""
    file = parser.add_argument("file", metavar="FILE", help="the recording: one payload a line")
    file.complete = {"bash": "_shtab_compgen_files", "zsh": "_files"}  # type: ignore[attr-defined]
    parser.add_argument(
        "--as", dest="dialect", choices=("claude", "codex"), required=True, help="whose payloads they are"
    )
    parser.add_argument(
        "--cwd", metavar="DIR", help="say that the session was in this directory: commands run there"
    )
    parser.add_argument("--via", choices=WAYS, default="both", help="the way they go (default: both)")
    parser.add_argument(
        "--timeout", type=duration(), default=30.0, metavar="S", help="seconds for each event (default 30)"
    )
    add_json(parser, "a line for each event and way")
    parser.epilog = (
        "Hooks and handlers of the bus see the events as if the agent had sent them. Exit codes: 0 each "
        "event was decided, the same over both ways; 1 one was not, or not the same."
    )


def run(options: argparse.Namespace) -> int:
    """Replay."""
    failed = 0
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        ways = _ways(options, stack)
        for number, line in enumerate(_payloads(options.file), 1):
            payload = line if options.cwd is None else _placed(line, os.path.abspath(options.cwd))
            found = {name: send(payload) for name, send in ways.items()}
            event = _event(payload)
            differ = not _is_one(found.values())
            failed += differ or any(sent.failed for sent in found.values())
            for name, sent in found.items():
                times.setdefault(name, []).append(sent.seconds)
                _show(options, number, event, name, sent, differ=differ)
    if not options.json:
        medians = "; ".join(
            f"{name}: median {statistics.median(taken) * 1e3:.1f} ms" for name, taken in times.items()
        )
        count = max(map(len, times.values()), default=0)
        emit(f"{count} events, {failed} failed; {medians}" if count else "no events")
    return FAILED if failed else DONE


def _ways(options: argparse.Namespace, stack: ExitStack) -> dict[str, Callable[[bytes], Sent]]:
    """The ways by name; the first sends each event first."""
    from ..runner.agent_probe import HttpSender, send_command

    directory = runtime_directory(options.runtime_dir)
    found: dict[str, Callable[[bytes], Sent]] = {}
    if options.via != "http":
        arguments = (options.dialect, os.path.join(directory, SOCKET_NAME), f"{options.timeout:g}", "closed")
        command = (python(), "-I", "-S", SHIM, *arguments)
        environ = {**os.environ, "CLAUDE_PROJECT_DIR": os.getcwd()}
        found["shim"] = lambda payload: send_command(command, payload, environ)
    if options.via != "shim":
        from ..http.token_file import find_hook_token
        from ..runner.agent_http import read_address
        from ..sources.attach_files import state_directory

        address = read_address(directory)
        if address is None:
            raise CommandError("no HTTP API is served here; say --via shim to do without", "no_http")
        token, _ = find_hook_token(state_directory(), os.environ)
        url = f"{address}/hooks/{options.dialect}?timeout={options.timeout:g}&closed=1"
        sender = HttpSender(url, f"Bearer {token}")
        stack.callback(sender.close)
        found["http"] = sender.send
    return found


def _payloads(path: str) -> Iterator[bytes]:
    """The lines of a recording; raises :class:`CommandError`."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > RECORDING_BYTES:
                raise CommandError(f"{path} has more than {RECORDING_BYTES:,} bytes", "too_large")
            while line := file.readline(LINE_BYTES + 1):
                if len(line) > LINE_BYTES:
                    raise CommandError(f"a line of {path} has more than {LINE_BYTES:,} bytes", "too_large")
                if line.strip():
                    yield line.rstrip(b"\r\n")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", "unreadable") from None


def _placed(payload: bytes, directory: str) -> bytes:
    """The payload of a session in another directory; what is no payload as it is."""
    try:
        found = orjson.loads(payload)
    except ValueError:
        return payload
    return orjson.dumps({**found, "cwd": directory}) if isinstance(found, dict) else payload


def _event(payload: bytes) -> str:
    try:
        found = orjson.loads(payload)
    except ValueError:
        return "?"
    return str(found.get("hook_event_name", "?")) if isinstance(found, dict) else "?"


def _is_one(found: Collection[Sent]) -> bool:
    """Whether all ways say the same; a block by exit code has its words on stderr, and means any block."""
    if any(sent.failed is not None for sent in found):
        return all(sent.failed is not None for sent in found)
    said = {_normal(sent.answer) for sent in found}
    by_exit = any(sent.blocked and _normal(sent.answer) == sent.answer for sent in found)
    return len(said) == 1 or (by_exit and b"" not in said)


def _normal(answer: bytes) -> bytes:
    """An answer with its keys in order; what is no JSON as it is."""
    try:
        return orjson.dumps(orjson.loads(answer), option=orjson.OPT_SORT_KEYS)
    except ValueError:
        return answer


def _show(
    options: argparse.Namespace, number: int, event: str, way: str, sent: Sent, *, differ: bool
) -> None:
    shown = sent.answer.decode("utf-8", "replace").strip()
    if options.json:
        emit_json(
            {
                "number": number,
                "event": event,
                "way": way,
                "ms": round(sent.seconds * 1e3, 2),
                "blocked": sent.blocked,
                "answer": shown,
                "failed": sent.failed,
                "differ": differ,
            }
        )
        return
    said = f"failed: {sent.failed}" if sent.failed is not None else shown or "no opinion"
    mark = "  (the ways differ)" if differ else ""
    emit(f"{number:>4} {event:<19} {way:<4} {sent.seconds * 1e3:>7.1f} ms  {said}{mark}")
