"""What a program that holds hook modules and the process that started it say to each other.

A **host** is a program that loads modules and calls their handlers: ``node_host.mjs`` for JavaScript,
``python_module_host.py`` for Python. Its **parent** starts it with ``--channel N`` as the last two arguments:
``N`` is the number of an inherited descriptor, one end of a pair of connected Unix stream sockets. Standard
input is ``/dev/null``; standard output and error are the parent's standard error, for people: nothing of the
protocol is written there, and what a module prints must not get into the channel.

A **frame** is four bytes, the length of what follows as an unsigned big-endian number, and that many bytes:
one JSON object in UTF-8. It is at most :data:`FRAME_BYTES` long. Unknown members and unknown kinds of frames
are ignored. A frame that is longer, or is no JSON object, ends the connection; only what comes of a call may
be nested too deep to be read, which is an error of that call: a ``done`` begins with ``is`` and ``n``.

To the host, ``do``:

``load``        ``{"do":"load","hooks":[{"id","name","path","digest","config","role"}, ...]}``
                Load these, **in this order**, beside what is loaded already. ``path`` is absolute; ``config``
                is any JSON value and absent where role.yaml gives none. Each is its own instance of its
                module, also when two name one file. ``onLoad`` runs once, and when it throws, the hook is
                loaded all the same. An id that is loaded already is replaced: the new instance is loaded
                first; if that succeeds the old one gets no further calls and is disposed, if not the old one
                stays as it is. The host says ``loading`` and then, whatever happens meanwhile, either
                ``loaded`` or ``refused`` for each, in order for each id.
``unload``      ``{"do":"unload","hooks":[id, ...]}``
                No further calls; ``onDispose`` once each, when its calls under way are over; then
                ``unloaded``. An id that is not loaded is ``unloaded``, too.
``call``        ``{"do":"call","n":7,"hook":id,"handler":"onToolBefore","session":text|null,
                "agent":text|null,"timeout_ms":5000,"depth":1,"cause":text|null,"input":{...}}``
                Call one handler, and say ``done`` or ``lost`` with this ``n``, once. ``n`` is never used
                twice for one host. ``timeout_ms`` (a number above 0) counts from when the frame was read.
                What the handler publishes, itself or by a program that it starts, has this ``depth`` at
                least, and ``cause`` is the id of the event that has led to it: programs find both as
                ``PRXBUS_DEPTH`` and ``PRXBUS_CAUSE``.
``ping``        ``{"do":"ping"}``
                Say ``pong`` at once, whatever handlers do.
``end``         ``{"do":"end","ms":2000}``
                Dispose everything within so many milliseconds, and exit with 0. The end of the stream means
                ``end`` with 500 ms. A host that is still there after its time is killed.

From the host, ``is``:

``ready``       ``{"is":"ready","version":"v20.20.2"}``
                First, when it can take frames; the version is of the language. At most 20 s after its start.
``loading``     ``{"is":"loading","hook":id}``
                This one's code begins to run. When the host ends now, this hook is to blame.
``loaded``      ``{"is":"loaded","hook":id,"handlers":["onToolAfter", ...],"problem":null|text,
                "detail":null|text}``
                ``handlers`` are the documented names of those that the module has (``onToolAfter`` for
                ``on_tool_after``), also ``onLoad`` and ``onDispose``. ``problem``: ``onLoad threw: ...``,
                with its trace in ``detail``. Said when ``onLoad`` is over, or its time is.
``refused``     ``{"is":"refused","hook":id,"error":text,"detail":text|null}``
                It cannot be loaded: ``error`` is one line, ``detail`` the trace, which begins at the user's
                own line. It is not tried again until it is in another ``load``.
``unloaded``    ``{"is":"unloaded","hook":id,"problem":null|text,"detail":null|text}``
                ``problem``: ``onDispose threw: ...``
``done``        ``{"is":"done","n":7,"status":"ok"|"failed"|"timeout"|"absent","edit":...,
                "inject":[text, ...],"error":text,"detail":text}``
                What came of a call; ``status`` may be left out for ``ok``. ``edit`` only when the handler
                changed something: the object ``args`` after ``onToolBefore``, the list of texts ``system``
                after ``onSystemTransform``. ``inject`` only when there is something: what ``inject`` was
                given until now. ``error`` (one line) and ``detail`` (the trace) stand beside every other
                status. ``timeout`` is said at the deadline, whether or not the handler ever ends.
``inject``      ``{"is":"inject","hook":id,"session":text|null,"text":text}``
                What ``inject`` was given outside of a call, or after its ``done``.
``log``         ``{"is":"log","hook":id,"level":"debug"|"info"|"warn"|"error","message":text,
                "fields":{...}}``
                What the hook logs, and what is noticed of it: a rejected promise, an exception in a thread.
                At most 50 a second for a hook; how many were left out is one record more.
``quarantined`` ``{"is":"quarantined","hook":id,"reason":text}``
                It holds up, ended or exhausted what it shares with others, and nobody else can have: it is
                not loaded any more, and not disposed. Its calls, and later ones, are ``lost``.
``lost``        ``{"is":"lost","n":7,"started":true|false,"reason":text}``
                The thread of a call is gone, or not to be used any more. ``started``: the handler may have
                begun. The parent makes a call that has not again, once, while its time lasts; so the host
                says first what else follows from the loss (``quarantined``). For one that has begun and whose
                hook is not quarantined the parent notes a strike; at the second one it quarantines the hook
                itself, and says ``unload``. The other hooks of a lost thread are loaded again by the host,
                without a word: ``onLoad`` runs again, and calls wait for it.
``pong``        ``{"is":"pong"}``
``replace``     ``{"is":"replace","reason":text}``
                This process can no longer be trusted to serve well (a thread of it cannot be ended, its
                memory is used up). The parent starts another, has it load everything, turns to it, and tells
                this one to ``end``. Until then it serves as well as it can; calls that it had better not
                begin any more are ``lost`` with ``started`` false.

**Inputs and edits.** The handler gets the context and ``input``. After it has ended, ``args`` (or ``system``)
is what it returned (an object with a member ``args``; a list, or an object with a member ``system``), else
what stands in the input now, whether edited in place or put there anew. It is an edit if its JSON differs
from that of what was given, regardless of the order of members. ``args`` that is no object, ``system`` that
is no list of texts, and what cannot be JSON are an error of this hook (``failed``), and no edit. Other
handlers return nothing of interest.

**The board.** A host that runs user code in the process that holds the channel is also given ``--board M``:
a descriptor of shared memory (``python_board.py``) on which it notes each handler that has begun: number,
hook and deadline. One byte behind it (``module_process.py``) tells it to begin nothing any more. So the
parent knows what had begun in a process that ended, or stands still with the interpreter's lock held.

**Who is to blame when the whole host ends.** If exactly one call had begun, its hook is quarantined; if
several had, each gets a strike. A hook that was ``loading`` counts like one whose handler had begun, and is
refused. The host is started again at once, and after pauses that double when it ends again and again.

Decides the form of a frame, how many bytes may wait to be sent, and that a sender never waits. Refuses to
know what follows from a message.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from ..hooks.module_hook import ModuleCall, ModuleHook

FRAME_BYTES: Final = 67_108_864
"""Longest frame (64 MiB), without the four bytes of its length."""

BACKLOG_BYTES: Final = 134_217_728
"""Bytes (128 MiB) that may wait for a reader that does not read."""

CHUNK: Final = 262_144
_LENGTH: Final = 4

TOO_DEEP: Final = "what it left is nested too deep to be read"
_DONE: Final = re.compile(rb'\{"is":"done","n":(\d{1,18}),')


class FrameTooLong(ValueError):
    """A message that does not fit into a frame."""


class ChannelBroken(Exception):
    """The other end is gone, or does not speak this."""


def frame(message: Mapping[str, Any]) -> bytes:
    """A message as it travels. Raises TypeError for what is not JSON and :class:`FrameTooLong`."""
    try:
        return framed(orjson.dumps(message))
    except orjson.JSONEncodeError:  # a lone surrogate, as the name of a file may have it
        return framed(json.dumps(message).encode())


def hook_as_told(hook: ModuleHook) -> dict[str, Any]:
    """A hook as ``load`` names it."""
    told = {
        "id": hook.id,
        "name": hook.name,
        "path": hook.path,
        "digest": hook.digest,
        "role": hook.role,
    }
    return told if hook.config is None else told | {"config": json.loads(hook.config)}


def call_frame(number: int, hook_id: str, call: ModuleCall) -> bytes:
    """A call as it travels; its input is taken over as it is. Raises :class:`FrameTooLong`."""
    head = orjson.dumps(
        {
            "do": "call",
            "n": number,
            "hook": hook_id,
            "handler": call.handler,
            "session": call.session_id,
            "agent": call.agent,
            "timeout_ms": call.timeout_s * 1_000,
            "depth": call.depth,
            "cause": call.cause,
        }
    )
    return framed(b'%b,"input":%b}' % (head[:-1], call.input))


def framed(body: bytes) -> bytes:
    """A JSON object, as bytes, as it travels. Raises :class:`FrameTooLong`."""
    if len(body) > FRAME_BYTES:
        raise FrameTooLong(f"{len(body):,} bytes; at most {FRAME_BYTES:,} can be handed over")
    return len(body).to_bytes(_LENGTH, "big") + body


class Frames:
    """Puts frames together from what arrives in pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are complete now, in order. Raises :class:`ChannelBroken`."""
        if not self._rest and len(data) == _LENGTH + int.from_bytes(data[:_LENGTH], "big"):
            return [_message(data[_LENGTH:])]  # the usual case: one, whole
        rest = self._rest
        rest += data
        found: list[dict[str, Any]] = []
        start = 0
        while len(rest) - start >= _LENGTH:
            size = int.from_bytes(rest[start : start + _LENGTH], "big")
            if size > FRAME_BYTES:
                raise ChannelBroken(f"a frame of {size:,} bytes was announced")
            end = start + _LENGTH + size
            if len(rest) < end:
                break
            found.append(_message(bytes(rest[start + _LENGTH : end])))
            start = end
        del rest[:start]
        return found


def _message(body: bytes) -> dict[str, Any]:
    try:
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            message = json.loads(body)  # which knows lone surrogates
    except (ValueError, RecursionError) as error:
        done = _DONE.match(body)
        if done is not None and isinstance(error, RecursionError):
            return {"is": "done", "n": int(done[1]), "status": "failed", "error": TOO_DEEP}
        raise ChannelBroken(f"a frame is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise ChannelBroken("a frame is not a JSON object")
    return message


class ModuleChannel:
    """One end. Sending is thread-safe and never waits; for receiving there is one thread at a time."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(True)
        self._socket = end
        self._frames = Frames()
        self._buffer = bytearray(CHUNK)
        self._view = memoryview(self._buffer)
        self._lock = threading.Lock()
        self._backlog: deque[bytes] = deque()
        self._waiting = 0
        self._drainer: threading.Thread | None = None

    def fileno(self) -> int:
        """The descriptor."""
        return self._socket.fileno()

    def send(self, framed: bytes) -> bool:
        """Send a frame, or keep it until it can be; False when the other end is gone or reads nothing."""
        with self._lock:
            if not self._backlog:
                try:
                    sent = self._socket.send(framed, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    return False
                if sent == len(framed):
                    return True
                framed = framed[sent:]
            elif self._waiting + len(framed) > BACKLOG_BYTES:
                return False
            self._backlog.append(framed)
            self._waiting += len(framed)
            if self._drainer is None:
                self._drainer = threading.Thread(target=self._drain, name="module channel", daemon=True)
                self._drainer.start()
        return True

    def receive(self) -> list[dict[str, Any]]:
        """Wait for messages and return them. Raises :class:`ChannelBroken`, also when the stream ends."""
        while True:
            try:
                size = self._socket.recv_into(
                    self._buffer
                )  # a fresh buffer each time would cost 30 us a call
            except OSError as error:
                raise ChannelBroken(str(error)) from None
            if not size:
                raise ChannelBroken("the other end is gone")
            found = self._frames.feed(bytes(self._view[:size]))
            if found:
                return found

    def shut(self) -> None:
        """End the stream both ways: whoever waits in :meth:`receive` or sends is told. Idempotent."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def is_open(self) -> bool:
        """Whether the descriptor is still one of a socket: code of somebody else's may have closed it."""
        try:
            return stat.S_ISSOCK(os.fstat(self._socket.fileno()).st_mode)
        except OSError:
            return False

    def abandon(self) -> None:
        """Let go of the descriptor in a copy of this process, without a word to anybody."""
        self._socket.close()

    def close(self) -> None:
        """Let go of the descriptor, when nobody receives any more."""
        self.shut()
        with self._lock:
            drainer = self._drainer
        if drainer is not None:
            drainer.join()
        self._socket.close()

    def _drain(self) -> None:
        """Send what waits, until there is nothing left, or nobody to read it."""
        while True:
            with self._lock:
                if not self._backlog:
                    self._drainer = None
                    return
                waiting = self._backlog[0]
            try:
                self._socket.sendall(waiting)
            except OSError:
                with self._lock:
                    self._backlog.clear()
                    self._waiting = 0
                    self._drainer = None
                return
            with self._lock:
                self._backlog.popleft()
                self._waiting -= len(waiting)
