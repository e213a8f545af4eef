"""Asks under way: whom to ask, whom to wait for, when to stop waiting, what the asker hears.

An ask is forwarded to every decider whose pattern matches. It ends exactly once: when all have answered,
at its deadline, when its asker cancels it or goes away. A decider that dies, leaves or cannot be reached is
noted at once; one that fails closed and died is remembered until it is back, because its silence is a no.

Pure: messages are encoded and answers are not opened here; what they mean is
:mod:`broker.protocol.decisions`'s, how a message reaches a peer the server's. Times are seconds of one
monotonic clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

from ..protocol.control import DECIDER_LANE, KEY_BYTES
from ..protocol.decisions import Failure, Silence
from ..protocol.envelope import split_key, topic_of
from ..protocol.errors import LimitExceeded
from ..protocol.limits import ANSWER_BYTES, ASK_SECONDS, ASKED, ASKS, FRAME_BYTES, PEERS
from ..protocol.messages import encode_message
from .actions import Action, Send
from .bounds import DECIDERS_REMEMBERED, HEARD_BYTES, LANES_KNOWN, LOST_SECONDS, MATCHES_CACHED
from .matching import Interests


class Decider(NamedTuple):
    """A registered decider, or one that is remembered (then ``lane`` is empty and nobody can be asked)."""

    name: str
    priority: int
    failure: Failure
    lane: bytes


class ClosedDecider(NamedTuple):
    """A decider whose silence is a denial, as it is written down for the next broker."""

    name: str
    priority: int
    patterns: tuple[str, ...]


class _Ask:
    """One ask: ``heard`` has a row for each of its deciders, ``left`` of them are still to come."""

    __slots__ = ("deadline", "heard", "lane", "left", "request", "room", "tokens")

    def __init__(self, lane: bytes, request: int, deadline: float) -> None:
        self.lane = lane
        self.request = request
        self.deadline = deadline
        self.heard: list[list[Any]] = []
        self.tokens: list[int] = []
        self.left = 0
        self.room = HEARD_BYTES


class _Asked(NamedTuple):
    """One decider's part in an ask: its row in ``heard``, when it was asked, its key and its lane."""

    ask: _Ask
    row: list[Any]
    began: float
    key: bytes
    lane: bytes


class Asks:
    """The asks of one broker.

    ``changes`` counts how often the deciders have changed. ``counts``: ``asked``, ``answered``,
    ``cancelled``, ``late`` (answers that nobody waited for), and of single deciders ``timeout``, ``died``,
    ``left``, ``unreachable``, ``failed``.
    """

    def __init__(self, limit: int = ASKS) -> None:
        self.counts: dict[str, int] = dict.fromkeys(
            ("asked", "answered", "cancelled", "late", "timeout", "died", "left", "unreachable", "failed"), 0
        )
        self._limit = limit
        self._interests = Interests()
        self._deciders: dict[bytes, Decider] = {}
        self._remembered: dict[str, bytes] = {}  # name -> key, the longest remembered first
        self._patterns: dict[bytes, tuple[str, ...]] = {}
        self.changes = 0
        self._up: dict[bytes, None] = {}  # keys of deciders whose lane is connected
        self._lost: dict[bytes, float] = {}  # keys of deciders whose lane has ended, and till when we wait
        self._found: dict[bytes, tuple[tuple[bytes, Decider], ...]] = {}  # by topic, as it stands in a key
        self._tokens = count(1)
        self._asked: dict[int, _Asked] = {}
        self._open: dict[bytes, dict[int, _Ask]] = {}  # by lane and request; lanes stay until they are cut
        self._lanes: dict[bytes, set[bytes]] = {}  # of an asker, those that are known
        self._of: dict[bytes, set[int]] = {}  # tokens of a decider
        self._deadlines: list[tuple[float, int, _Ask]] = []
        self._number = count()
        self._under_way = 0

    def __len__(self) -> int:
        return self._under_way

    # -- deciders ---------------------------------------------------------------------------

    def enter(self, key: bytes, decider: Decider, patterns: tuple[str, ...]) -> list[Action]:
        """A decider has registered (again), perhaps with other patterns; it is asked once its lane is up.

        Until then one of its name that fails closed is missed as before.
        """
        before = self._deciders.get(key)
        self._put(key, decider, patterns)
        if before is not None and before.failure == decider.failure == "closed":
            self._interests.put(key, patterns)
        return self._begin(key)

    def lane_up(self, lane: bytes, now: float) -> list[Action]:
        """A decider's lane is connected."""
        key = lane[:KEY_BYTES]
        if key not in self._up and len(self._up) >= PEERS:
            self._up.pop(next(iter(self._up)))
        self._up[key] = None
        unanswered = self._unreachable(key, now) if key in self._lost else []  # asked on the lane before
        return unanswered + self._begin(key)

    def _begin(self, key: bytes) -> list[Action]:
        decider = self._deciders.get(key)
        if decider is None or key not in self._up:
            return []
        missed = self._remembered.pop(decider.name, None)
        if missed is not None:
            self._drop(missed)
        self._interests.put(key, self._patterns[key])
        self._found.clear()
        return [Send(decider.lane, encode_message("deciding"))]

    def leave(self, key: bytes, how: Silence, now: float) -> list[Action]:
        """A decider has gone; an unknown one is no error. Who waits for it hears of it."""
        self._up.pop(key, None)
        self._lost.pop(key, None)
        decider = self._deciders.get(key)
        if decider is None:
            return []
        patterns = self._patterns[key]
        self._drop(key)
        if how != "left" and decider.failure == "closed" and not self._has(decider.name):
            self._remember(decider, patterns)
        return [action for token in sorted(self._of.get(key, ())) for action in self._silent(token, how, now)]

    def lane_gone(self, lane: bytes, now: float) -> list[Action]:
        """``lane`` has ended: its asker hears nothing more, or its decider is asked nothing more.

        Who waits for that decider waits a moment longer: most likely we hear what became of it.
        """
        if not is_decider_lane(lane):
            return self._cancel_all(lane)
        key = lane[:KEY_BYTES]
        self._up.pop(key, None)
        decider = self._deciders.get(key)
        if decider is not None and decider.failure == "open":  # the silence of the others is a no
            self._interests.drop(key)
            self._found.clear()
        if key in self._of:
            self._lost.setdefault(key, now + LOST_SECONDS)
        return []

    @property
    def remembered(self) -> tuple[str, ...]:
        """Names of deciders that fail closed and died: what matches them is denied until they are back."""
        return tuple(self._remembered)

    @property
    def closed(self) -> list[ClosedDecider]:
        """Those that fail closed, here or remembered; idle ones are left out."""
        return [
            ClosedDecider(decider.name, decider.priority, self._patterns[key])
            for key, decider in self._deciders.items()
            if decider.failure == "closed" and self._patterns[key]
        ]

    def miss(self, deciders: Iterable[ClosedDecider]) -> None:
        """A broker before has died with these: they are missed until they are back."""
        for name, priority, patterns in deciders:
            self._remember(Decider(name, priority, "closed", b""), patterns)

    # -- asks -------------------------------------------------------------------------------

    def ask(self, lane: bytes, request: int, frame: bytes, timeout_s: float, now: float) -> list[Action]:
        """Forward an ask, an event's frame; without deciders it is answered at once.

        Raises :class:`LimitExceeded`, and :class:`DecodeError` for a frame that begins like no event's.
        """
        if not 0 < timeout_s <= ASK_SECONDS:
            raise LimitExceeded(f"the time for an ask is more than 0 and at most {ASK_SECONDS:g} s")
        if self._under_way >= self._limit:
            raise LimitExceeded(f"{self._limit:,} asks are under way; that is the most")
        found = self._found.get(frame[1 : frame.find(b"\0")]) if b"0" <= frame[:1] <= b"7" else None
        if found is None or len(frame) > FRAME_BYTES:
            found = self._find(split_key(frame)[0].name)
        ask = _Ask(lane, request, now + timeout_s)
        self.counts["asked"] += 1
        actions: list[Action] = []
        left_ms = max(1, int(timeout_s * 1000))
        for index, (key, decider) in enumerate(found):
            row: list[Any] = [decider.name, decider.failure, None, 0, b""]
            ask.heard.append(row)
            if key not in self._up or index >= ASKED:
                row[2] = "unreachable" if decider.lane else "died"
                self.counts[row[2]] += 1
                continue
            token = next(self._tokens)
            self._asked[token] = _Asked(ask, row, now, key, decider.lane)
            self._of.setdefault(key, set()).add(token)
            ask.tokens.append(token)
            ask.left += 1
            actions.append(Send(decider.lane, encode_message("asked", token, frame=frame, left_ms=left_ms)))
        if not ask.left:
            self.counts["answered"] += 1
            return [_answered(ask)]
        asks = self._open.get(lane)
        if asks is None:
            asks = self._know(lane)
        cancelled = self._end(asks[request]) if request in asks else []  # a lane that repeats a number
        asks[request] = ask
        self._under_way += 1
        self._expect(ask)
        return cancelled + actions

    def answer(
        self, lane: bytes, token: int, answers: bytes | list[Any], error: str | None, now: float
    ) -> list[Action]:
        """A decider has answered; ``answers`` packed, or the fields of a claim. ``error``: it failed."""
        asked = self._asked.get(token)
        if asked is None or asked.key != lane[:KEY_BYTES]:
            self.counts["late"] += 1
            return []
        if error is None and isinstance(answers, bytes):
            asked.ask.room -= len(answers)
            if len(answers) > ANSWER_BYTES or asked.ask.room < 0:
                error = "its answer is too large"
        if error is not None:
            return self._silent(token, "failed", now)
        asked.row[3] = round((now - asked.began) * 1e6)
        asked.row[4] = answers
        return self._heard(token)

    def cancel(self, lane: bytes, request: int) -> list[Action]:
        """The asker waits no longer; an ask that is over is no error."""
        ask = self._open.get(lane, {}).get(request)
        if ask is None:
            return []
        self.counts["cancelled"] += 1
        return self._end(ask)

    def asker_gone(self, key: bytes) -> list[Action]:
        """An asker ended: nobody waits for its asks."""
        return [action for lane in sorted(self._lanes.get(key, ())) for action in self._cancel_all(lane)]

    def due(self, now: float) -> list[Action]:
        """The asks whose time is over end with what was heard, those of lost deciders without these."""
        lost = [key for key, due in self._lost.items() if due <= now]
        actions = [action for key in lost for action in self._unreachable(key, now)]
        while self._deadlines and self._deadlines[0][0] <= now:
            ask = heapq.heappop(self._deadlines)[2]
            for token in ask.tokens:
                actions += self._silent(token, "timeout", now)
        return actions

    @property
    def next_due(self) -> float | None:
        """When :meth:`due` may have something to do; it may also be too early, never too late."""
        lost = next(iter(self._lost.values()), None)  # the first was lost first
        if lost is not None and (not self._deadlines or lost < self._deadlines[0][0]):
            return lost
        return self._deadlines[0][0] if self._deadlines else None

    # -- parts ------------------------------------------------------------------------------

    def _put(self, key: bytes, decider: Decider, patterns: tuple[str, ...]) -> None:
        self._interests.drop(key)
        self.changes += 1
        self._deciders[key] = decider
        self._patterns[key] = patterns
        self._found.clear()

    def _drop(self, key: bytes) -> None:
        self.changes += 1
        del self._deciders[key]
        del self._patterns[key]
        self._interests.drop(key)
        self._found.clear()

    def _has(self, name: str) -> bool:
        return any(decider.name == name for decider in self._deciders.values())

    def _remember(self, decider: Decider, patterns: tuple[str, ...]) -> None:
        if len(self._remembered) >= DECIDERS_REMEMBERED:
            self._drop(self._remembered.pop(next(iter(self._remembered))))
        key = b"\0" + decider.name.encode()  # the key of a connection begins with another byte
        self._remembered[decider.name] = key
        self._put(key, decider._replace(lane=b""), patterns)
        self._interests.put(key, patterns)

    def _find(self, name: bytes) -> tuple[tuple[bytes, Decider], ...]:
        """The deciders of the topic ``name`` in declared order: by priority, then by name."""
        keys = self._interests.of(topic_of(name))
        if len(self._found) >= MATCHES_CACHED:
            self._found.clear()
        found = self._found[name] = tuple(
            sorted(
                ((key, self._deciders[key]) for key in keys),
                key=lambda pair: (pair[1].priority, pair[1].name, pair[0]),
            )
        )
        return found

    def _know(self, lane: bytes) -> dict[int, _Ask]:
        """A lane asks for the first time. When there are too many, those without an ask are forgotten."""
        if len(self._open) >= LANES_KNOWN:
            for idle in [each for each, asks in self._open.items() if not asks]:
                self._cut(idle)
        self._lanes.setdefault(lane[:KEY_BYTES], set()).add(lane)
        asks = self._open[lane] = {}
        return asks

    def _cut(self, lane: bytes) -> None:
        """A lane without asks is no longer known."""
        if self._open.pop(lane, None) is not None:
            owner = lane[:KEY_BYTES]
            lanes = self._lanes[owner]
            lanes.discard(lane)
            if not lanes:
                del self._lanes[owner]

    def _expect(self, ask: _Ask) -> None:
        """Remember the deadline. Those of asks that are over go in bulk, so that long ones do not pile up."""
        if len(self._deadlines) > 2 * self._under_way + DECIDERS_REMEMBERED:
            self._deadlines = [entry for entry in self._deadlines if entry[2].left]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (ask.deadline, next(self._number), ask))

    def _unreachable(self, key: bytes, now: float) -> list[Action]:
        """What a decider was asked on a lane that has ended, it does not answer."""
        self._lost.pop(key)
        tokens = sorted(self._of.get(key, ()))
        return [action for token in tokens for action in self._silent(token, "unreachable", now)]

    def _silent(self, token: int, why: Silence, now: float) -> list[Action]:
        """A decider has no answer; nothing happens when it is not waited for."""
        asked = self._asked.get(token)
        if asked is None:
            return []
        asked.row[2] = why
        asked.row[3] = round((now - asked.began) * 1e6)
        self.counts[why] += 1
        return self._heard(token)

    def _heard(self, token: int) -> list[Action]:
        ask = self._forget(token)
        ask.left -= 1
        if ask.left:
            return []
        self._close(ask)
        self.counts["answered"] += 1
        return [_answered(ask)]

    def _end(self, ask: _Ask) -> list[Action]:
        """Nobody waits for ``ask``; its deciders are told."""
        actions: list[Action] = []
        for token in ask.tokens:
            asked = self._asked.get(token)
            if asked is not None:
                self._forget(token)
                actions.append(Send(asked.lane, encode_message("cancelled", token)))
        ask.left = 0
        self._close(ask)
        return actions

    def _cancel_all(self, lane: bytes) -> list[Action]:
        """Nobody waits on ``lane`` any more."""
        asks = list(self._open.get(lane, {}).values())
        self.counts["cancelled"] += len(asks)
        actions = [action for ask in asks for action in self._end(ask)]
        self._cut(lane)
        return actions

    def _forget(self, token: int) -> _Ask:
        asked = self._asked.pop(token)
        tokens = self._of[asked.key]
        tokens.discard(token)
        if not tokens:
            del self._of[asked.key]
        return asked.ask

    def _close(self, ask: _Ask) -> None:
        self._under_way -= 1
        del self._open[ask.lane][ask.request]


def _answered(ask: _Ask) -> Action:
    return Send(ask.lane, encode_message("answered", ask.request, heard=ask.heard))


def is_decider_lane(peer: bytes) -> bool:
    """Whether ``peer`` is a lane on which a decider is asked."""
    return len(peer) == KEY_BYTES + len(DECIDER_LANE) and peer.endswith(DECIDER_LANE)


def lane_of(key: bytes) -> bytes:
    """The lane on which the decider with this ``key`` is asked."""
    return key + DECIDER_LANE
