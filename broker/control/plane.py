"""The control plane: what each message, the passing of time and the end of a process lead to.

``handle`` takes a message, ``tick`` the time, ``gone`` the end of a peer, ``injected`` and ``measured``
what came of an action; each returns actions. Any bytes lead to actions, never to an exception.
Which messages there are is :mod:`broker.protocol.control`'s to say, how an action is performed the
server's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ..protocol.beacons import decode_beacon
from ..protocol.control import KEY_BYTES
from ..protocol.decisions import Silence
from ..protocol.errors import BusError, DecodeError, LimitExceeded, QueueFull
from ..protocol.events import decode_event
from ..protocol.messages import decode_message, encode_message
from ..protocol.topics import INBOX_PREFIX, parse_patterns
from .actions import Action, Forget, Inject, Measure, Send, Watch
from .asks import Asks, Decider, is_decider_lane, lane_of
from .bounds import INBOX_CHARACTERS, STATUS_WAITERS, STATUS_WAITERS_EACH
from .echoes import Echoes
from .peers import Lost, Peer, Roster
from .rates import Forwarded, Rates
from .refusals import Refusals, explain, read_head
from .reports import pack_report
from .retained import RetainedValues
from .status import list_peers

_INBOX = re.compile(rf"[A-Za-z0-9_-]{{1,{INBOX_CHARACTERS}}}")


class Unregistered(BusError):
    """A report from a peer that has not said hello to this broker: it should."""

    code = "unknown_peer"


class Draining(BusError):
    """The broker is about to stop and takes nothing in any more."""

    code = "draining"


class Received(NamedTuple):
    """One well-formed message and where it came from."""

    peer: bytes
    kind: str
    request: int
    body: dict[str, Any]
    now: float
    pid: int | None


class ControlPlane:
    """One broker's side of every control conversation.

    ``epoch`` (16 bytes) is new at each start. ``limits`` is told to every client that says hello.
    ``about`` is what status says of the broker beside that. Times are seconds of one
    monotonic clock. The server keeps three things current: ``spool`` is what status says of the spool,
    ``process`` what it says of the broker's process, ``dropped`` counts answers for which a peer had no room.
    """

    def __init__(
        self,
        *,
        epoch: bytes,
        release: str,
        pid: int,
        now: float,
        limits: Mapping[str, int | float],
        about: Mapping[str, Any],
    ) -> None:
        self.roster = Roster()
        self.retained = RetainedValues()
        self.refusals = Refusals()
        self.echoes = Echoes()
        self.asks = Asks()
        self.rates = Rates()
        self.spool: Mapping[str, Any] = {}
        self.process: Mapping[str, Any] = {}
        self.draining = False
        self.dropped = 0
        self._epoch = epoch
        self._release = release
        self._pid = pid
        self._began = now
        self._limits = dict(limits)
        self._about = dict(about)
        self._waiting: list[tuple[bytes, int]] = []
        self._batches = True  # as the publishers were last told
        self._kinds: Final[Mapping[str, Callable[[Received], list[Action]]]] = {
            "hello": self._hello,
            "probe": self._probe,
            "publish": self._publish,
            "beacon": self._beacon,
            "retained": self._values,
            "report": self._report,
            "status": self._status,
            "ask": self._ask,
            "answer": self._answer,
            "cancel": self._cancel,
            "bye": self._bye,
        }

    # -- what happens ---------------------------------------------------------------------

    def handle(self, peer: bytes, data: bytes, now: float, pid: int | None = None) -> list[Action]:
        """A message came from ``peer``; ``pid`` is its process as the kernel knows it, 0 if foreign."""
        if not data and len(peer) > KEY_BYTES:  # a lane has come up; of one for asks that means nothing yet
            return self.asks.lane_up(peer, now) if is_decider_lane(peer) else []
        self.roster.heard(peer[:KEY_BYTES], now)  # a lane speaks for its peer
        try:
            message = decode_message(data)
        except DecodeError as error:
            version, request = read_head(data)
            return self.refuse(peer, request, explain(error, version))
        try:
            handler = self._kinds.get(message.kind)
            if handler is None:
                raise DecodeError("kind", f"{message.kind!r} is what the broker says, not what it is told")
            return handler(Received(peer, *message, now, pid))
        except BusError as error:
            return self.refuse(peer, message.request, error)

    def refuse(self, peer: bytes, request: int, error: BusError) -> list[Action]:
        """Count ``error`` and tell ``peer``."""
        self.refusals.count(error)
        return [Send(peer, encode_message("error", request, code=error.code, message=str(error)))]

    def tick(self, now: float) -> list[Action]:
        """Time has passed: forget peers that have been silent for too long, repeat what is to be repeated."""
        gone = [action for peer in self.roster.silent(now) for action in self.gone(peer, now, "silent")]
        return [*gone, *(Inject(frame, b"") for frame in self.echoes.due(now))]

    def gone(self, peer: bytes, now: float, how: str = "died") -> list[Action]:
        """``peer`` ended without a goodbye, as ``how`` says, or a lane is cut; an unknown one is no error."""
        if len(peer) > KEY_BYTES:
            return self.asks.lane_gone(peer, now)
        before = self.roster.remove(peer)
        if before is None:
            return []
        if before.role == "publisher":
            self.roster.lost.append(Lost(peer, before, how, now))
        return [Forget(peer), *self._let_go(peer, "died", now)]

    @property
    def next_due(self) -> float | None:
        """When :meth:`due` may have something to do next."""
        return self.asks.next_due

    def due(self, now: float) -> list[Action]:
        """Asks whose time is over end."""
        return self.asks.due(now)

    def injected(self, inject: Inject, sent: bool) -> list[Action]:
        """What came of an action: the frame is in the data plane, or there was no room for it."""
        if not sent:
            error = QueueFull("the broker's own queue into the data plane is full; try again")
            if not inject.request:
                self.refusals.count(error)
                return []
            return self.refuse(inject.peer, inject.request, error)
        if inject.topic is None:
            return []
        if inject.retain:
            self.retained.set(inject.topic, inject.frame)
        if not inject.request:
            return []
        matching = self.roster.interests.count(inject.topic)
        return [Send(inject.peer, encode_message("published", inject.request, matching=matching))]

    def measured(self, totals: Forwarded, now: float) -> list[Action]:
        """The proxy's counters; whoever waits for the status gets it."""
        self.rates.observe(totals, now)
        if not self._waiting:
            return []
        status = self.status(now)
        waiting, self._waiting = self._waiting, []
        return [Send(peer, encode_message("status_is", request, status=status)) for peer, request in waiting]

    def hold(self) -> list[Action]:
        """The broker is about to stop: every client is asked to send nothing until it is welcomed again."""
        self.draining = True
        data = encode_message("hold")
        return [Send(key, data) for key, _ in self.roster]

    def status(self, now: float) -> dict[str, Any]:
        """Everything the broker knows about itself and its peers."""
        forwarded = self.rates.latest or Forwarded()
        return {
            "broker": {
                "pid": self._pid,
                "epoch": self._epoch.hex(),
                "release": self._release,
                "uptime_s": round(now - self._began, 3),
                "draining": self.draining,
                **self._about,
                **self.process,
                "limits": self._limits,
            },
            "rates": self.rates.per_second(),
            "forwarded": forwarded._asdict(),
            "retained": {
                "topics": len(self.retained),
                "bytes": self.retained.held,
                "evicted": self.retained.evicted,
            },
            "refused": dict(self.refusals.counts),
            "answers_dropped": self.dropped,
            "asks": {
                "under_way": len(self.asks),
                **self.asks.counts,
                "closed_and_dead": list(self.asks.remembered),
            },
            "spool": dict(self.spool),
            "registered": len(self.roster),
            **list_peers(self.roster, now),
        }

    def summary(self) -> dict[str, Any]:
        """The status in a few numbers, for the log."""
        totals = self.rates.latest or Forwarded()
        refused = sum(self.refusals.counts.values())
        return {"registered": len(self.roster), "refused": refused, **totals._asdict()}

    # -- one method per kind of message ---------------------------------------------------

    def _hello(self, message: Received) -> list[Action]:
        registered = Peer(message.body, message.pid or None, message.now)
        self.roster.add(message.peer, registered)
        welcome = encode_message(
            "welcome",
            message.request,
            epoch=self._epoch,
            release=self._release,
            pid=self._pid,
            limits=self._limits,
            batches=self.roster.batches,
        )
        actions: list[Action] = [Send(message.peer, welcome)]
        if registered.role == "decider":
            decider = Decider(registered.name, registered.priority, registered.failure, lane_of(message.peer))
            actions += self.asks.enter(message.peer, decider, registered.patterns)
        if self.draining:
            actions.append(Send(message.peer, encode_message("hold")))
        if message.pid:
            actions.append(Watch(message.peer, message.pid))
        return actions + self._tell_batches()

    def _probe(self, message: Received) -> list[Action]:
        inbox = message.body["inbox"]
        if not _INBOX.fullmatch(inbox):
            raise DecodeError(
                "probe", f"inbox {inbox[:80]!r} is not 1 to {INBOX_CHARACTERS} of A-Z a-z 0-9 _ -"
            )
        return [Inject(b"0" + INBOX_PREFIX + inbox.encode() + b"\0", message.peer)]

    def _publish(self, message: Received) -> list[Action]:
        event = decode_event(message.body["frame"])
        self._refuse_while_draining()
        return [
            Inject(message.body["frame"], message.peer, message.request, event.topic, message.body["retain"])
        ]

    def _beacon(self, message: Received) -> list[Action]:
        frame = message.body["frame"]
        if decode_beacon(frame).closing:
            self.echoes.add(frame, message.now)
            if self.roster.is_publisher(message.peer):
                return []  # it has said it itself, behind its last events
        return [Inject(frame, message.peer)]

    def _values(self, message: Received) -> list[Action]:
        patterns = parse_patterns(message.body["patterns"])
        frames, following = self.retained.page((p.text for p in patterns), message.body["after"])
        return [Send(message.peer, encode_message("values", message.request, frames=frames, next=following))]

    def _report(self, message: Received) -> list[Action]:
        if not self.roster.keep(message.peer, pack_report(message.body["counters"]), message.now):
            raise Unregistered("this broker does not know you (it may be a new one); say hello")
        return []

    def _status(self, message: Received) -> list[Action]:
        own = sum(peer == message.peer for peer, _ in self._waiting)
        if len(self._waiting) >= STATUS_WAITERS or own >= STATUS_WAITERS_EACH:
            raise LimitExceeded(
                f"{len(self._waiting)} requests for the status wait already, {own} of them yours; try again"
            )
        self._waiting.append((message.peer, message.request))
        return [Measure()]

    def _bye(self, message: Received) -> list[Action]:
        self.roster.found(message.peer)  # its last words may come after its end was noticed
        if self.roster.remove(message.peer) is None:
            return []
        return [Forget(message.peer), *self._let_go(message.peer, "left", message.now)]

    def _ask(self, message: Received) -> list[Action]:
        """Asks come from a lane of a registered peer, so that its end is noticed."""
        self._refuse_while_draining()
        if message.peer[:KEY_BYTES] not in self.roster:
            raise Unregistered("an ask comes from a peer that has said hello to this broker, or a lane of it")
        seconds = message.body["timeout_ms"] / 1000
        return self.asks.ask(message.peer, message.request, message.body["frame"], seconds, message.now)

    def _answer(self, message: Received) -> list[Action]:
        body = message.body
        return self.asks.answer(message.peer, message.request, body["answers"], body["error"], message.now)

    def _cancel(self, message: Received) -> list[Action]:
        return self.asks.cancel(message.peer, message.request)

    def _let_go(self, peer: bytes, how: Silence, now: float) -> list[Action]:
        """What hung on a peer that is no longer registered."""
        return [*self.asks.leave(peer, how, now), *self.asks.asker_gone(peer), *self._tell_batches()]

    # -- parts ----------------------------------------------------------------------------

    def _refuse_while_draining(self) -> None:
        if self.draining:
            raise Draining("the bus is about to stop; try again when it is back")

    def _tell_batches(self) -> list[Action]:
        batches = self.roster.batches
        if batches == self._batches:
            return []
        self._batches = batches
        data = encode_message("batches", batches=batches)
        return [Send(key, data) for key, peer in self.roster if peer.role == "publisher"]
