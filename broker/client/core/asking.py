"""What an ask and its answers are in bytes, and what becomes of a payload that is published beside an ask.

Decides how a decider's answer is read: what cannot be read counts as a decider that failed, so that one
garbled answer takes no other along. Knows no socket, no clock and no spool: loading a claim is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgpack
import orjson

from ...protocol.control import encode_message
from ...protocol.decisions import (
    FAILURES,
    SILENCES,
    Answer,
    Decision,
    Heard,
    Revalidate,
    answer_of,
    merge,
)
from ...protocol.envelope import Claim, Names, check_payload, event_frame, unpack
from ...protocol.errors import BusError, DecodeError, LimitExceeded, shown
from ...protocol.limits import ANSWERS, ASK_SECONDS, DEPTHS
from ...protocol.topics import LIFECYCLE

if TYPE_CHECKING:
    from .numbering import Stream

MARGIN: Final = 0.05
"""Part of its time that an asker keeps for the way back: what was heard is to arrive before the deadline."""

MARGIN_SECONDS: Final = 0.02
"""The longest that it keeps."""

GRACE_SECONDS: Final = 0.25
"""How long after the deadline the broker's word is still waited for: it says who was late."""

REDACTED: Final = f"{LIFECYCLE}tool_result"
"""The topic whose published copy must not hold what a handler may have taken out."""

_KEPT: Final = ("agent_id", "agent_name", "session_id", "tool", "tool_name", "tool_use_id", "is_error")
"""Fields of a tool's result that are names."""

_NAME_CHARACTERS: Final = 200

Load = Callable[[Claim], bytes]

_pack_plain: Final = msgpack.Packer(use_bin_type=True).pack
"""One for all answers of plain types: making one costs more than packing them."""

KNOWN: Final = 1_024
KNOWN_BYTES: Final = 256
"""Answers that are remembered as they travelled, and the longest: most are like one before."""

_known: dict[bytes, tuple[Answer, ...]] = {}

_requests = count(1)
"""Numbers of asks, of all clients in this process: a late word must not be taken for another ask's."""


class Question:
    """One ask in the making: the event that it is about, and what its answers are merged with.

    ``original`` is the input, ``forbidden`` why the agent's own constraints refuse it. ``content`` is the
    payload as it stands in the frame, ``copy`` what stands in the published copy instead, None for the same;
    ``claim`` is set when the payload lies in the spool, and ``body`` when its copy may be gathered.
    """

    __slots__ = (
        "body", "claim", "content", "copy", "forbidden", "frame", "level", "names", "original", "request",
        "stream", "time_ns",
    )  # fmt: skip

    def __init__(self, stream: Stream, level: int, names: Names, original: Mapping[str, Any]) -> None:
        self.stream = stream
        self.level = level
        self.names = names
        self.original = original
        self.forbidden: str | None = None
        self.content = b""
        self.body: bytes | None = None
        self.copy: bytes | None = None
        self.claim: Claim | None = None
        self.request = next(_requests)
        self.frame = b""
        self.time_ns = 0

    @property
    def open(self) -> bool:
        """Whether there is anybody to ask: not when it is too deep, and not when it is forbidden."""
        return self.level < DEPTHS and self.forbidden is None

    def take_number(self, now_ns: int) -> None:
        """The event takes the next number of its stream."""
        stream = self.stream
        stream.sequence += 1
        if stream.sequence == 1:
            stream.first_time = now_ns

    def numbered(self, now_ns: int) -> bytes:
        """The frame of the event, which has just taken its number."""
        stream = self.stream
        self.time_ns = now_ns
        self.frame = event_frame(stream.heads[self.level], stream.sequence, now_ns, self.names, self.content)
        return self.frame

    def copied(self) -> bytes:
        """The frame that is published, after :meth:`numbered`."""
        if self.copy is None:
            return self.frame
        stream = self.stream
        return event_frame(stream.heads[self.level], stream.sequence, self.time_ns, self.names, self.copy)

    def decide(self, heard: Sequence[Heard], revalidate: Revalidate | None) -> Decision:
        """The decision that ``heard`` comes to."""
        return merge(heard, self.original, forbidden=self.forbidden, revalidate=revalidate)


def check_timeout(timeout: object) -> float:
    """``timeout`` if it is a time in seconds that an ask may take; raises :class:`LimitExceeded`."""
    if not isinstance(timeout, int | float) or not 0 < timeout <= ASK_SECONDS:
        raise LimitExceeded(f"timeout must be more than 0 and at most {ASK_SECONDS:g} s, not {timeout!r}")
    return float(timeout)


def ask_message(request: int, frame: bytes, timeout_s: float) -> bytes:
    """The control message of an ask that may take ``timeout_s`` seconds, counted at the asker."""
    left = timeout_s - min(MARGIN_SECONDS, MARGIN * timeout_s)
    return encode_message("ask", request, frame=frame, timeout_ms=max(1, int(left * 1000)))


def pack_answers(answers: Sequence[Answer]) -> bytes:
    """Answers as they travel; raises ValueError or TypeError for what msgpack cannot say."""
    if len(answers) == 1 and answers[0].is_plain:
        handler, verdict, reason = answers[0][:3]
        if type(handler) is type(verdict) is str and (reason is None or type(reason) is str):
            return bytes(_pack_plain([answers[0].fields()]))
    return bytes(msgpack.packb([answer.fields() for answer in answers], use_bin_type=True))


def read_heard(rows: object, load: Load) -> tuple[Heard, ...]:
    """What the broker tells of an ask's deciders; raises :class:`DecodeError` when it is no list of rows."""
    if type(rows) is not list:
        raise DecodeError("heard", f"an ask is answered by a list, not {shown(rows)}")
    return tuple(_read_row(row, load) for row in rows)


def redacted(payload: Mapping[str, Any]) -> bytes:
    """The payload of a tool's result without the result: names, and size and digest of everything else.

    A field ``output`` becomes ``output_bytes`` and ``output_sha256``, of its text or of its JSON.
    """
    from hashlib import sha256  # loads OpenSSL, which most commands that ask do without

    copy: dict[str, Any] = {}
    for name, value in payload.items():
        if name in _KEPT and (value is None or isinstance(value, bool | str)):
            copy[name] = value[:_NAME_CHARACTERS] if isinstance(value, str) else value
            continue
        text = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else orjson.dumps(value)
        copy[f"{name}_bytes"] = len(text)
        copy[f"{name}_sha256"] = sha256(text).hexdigest()
    return orjson.dumps(copy)


def _read_row(row: object, load: Load) -> Heard:
    if type(row) is not list or len(row) != 5:
        raise DecodeError("heard", f"a row is an array of 5, not {shown(row)}")
    name, failure, silence, elapsed_us, content = row
    if type(name) is not str or failure not in FAILURES or type(elapsed_us) is not int:
        raise DecodeError("heard", f"a row of a decider begins with {shown(name)}, {shown(failure)}")
    elapsed_s = elapsed_us / 1e6
    if silence is not None:
        if silence not in SILENCES:
            raise DecodeError("heard", f"silence {shown(silence)} is not one of {', '.join(SILENCES)}")
        return Heard(name, failure, silence, elapsed_s)
    try:
        return Heard(name, failure, None, elapsed_s, _read_answers(content, load))
    except BusError:
        return Heard(name, failure, "failed", elapsed_s)


def _read_answers(content: object, load: Load) -> tuple[Answer, ...]:
    if type(content) is list:
        claim = check_payload(content)
        assert isinstance(claim, Claim)
        content = load(claim)
    if type(content) is not bytes:
        raise DecodeError("answer", f"answers are bytes or a claim, not {shown(content)}")
    known = _known.get(content)
    if known is not None:
        return known
    fields = unpack(content)
    if type(fields) is not list or len(fields) > ANSWERS:
        raise DecodeError("answer", f"at most {ANSWERS:,} answers in a list, not {shown(fields)}")
    answers = tuple(map(answer_of, fields))
    if len(content) <= KNOWN_BYTES and all(answer.is_plain for answer in answers):  # nobody can change them
        if len(_known) >= KNOWN:
            _known.clear()
        _known[content] = answers
    return answers
