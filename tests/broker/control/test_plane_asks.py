"""Asks through the control plane: who may ask, who is asked, and what comes in one message."""

from __future__ import annotations

from typing import Any

import pytest

from broker.control.actions import Action, Forget, Send
from broker.control.plane import ControlPlane
from broker.control.rates import Forwarded
from broker.protocol.control import (
    DECIDER_LANE,
    decode_message,
    encode_message,
)
from broker.protocol.envelope import encode_event

GUARD = b"g" * 16
AGENT = b"a" * 16
LANE = AGENT + b"\x10"
FRAME = encode_event("a.b", b"p" * 16, 1, 5, b"{}")


def hello(role: str, **changes: Any) -> bytes:
    """A hello as bytes."""
    body = {
        "role": role,
        "name": role,
        "pid": 7,
        "release": "0.1.0",
        "patterns": ["a.*"] if role == "decider" else [],
        "batches": True,
        "publisher": b"p" * 16 if role == "publisher" else None,
        **changes,
    }
    return encode_message("hello", 0, **body)


def told(actions: list[Action]) -> list[tuple[bytes, str, int, dict[str, Any]]]:
    """Whom ``actions`` tell what."""
    return [(a.peer, *decode_message(a.data)) for a in actions if isinstance(a, Send)]


def asking(**decider: Any) -> ControlPlane:
    """A plane with an agent and a decider that is asked."""
    plane = ControlPlane(epoch=b"e" * 16, release="0.1.0", pid=5, now=0.0, limits={}, about={})
    plane.handle(AGENT, hello("publisher"), 0.0)
    plane.handle(GUARD, hello("decider", **decider), 0.0)
    assert [kind for _, kind, _, _ in told(plane.handle(GUARD + DECIDER_LANE, b"", 0.0))] == ["deciding"]
    return plane


def ask(plane: ControlPlane, peer: bytes = LANE, request: int = 9, now: float = 0.0) -> list[Any]:
    """Ask from ``peer``."""
    return told(plane.handle(peer, encode_message("ask", request, frame=FRAME, timeout_ms=2_000), now))


def test_an_ask_goes_round() -> None:
    """From a lane to the decider's lane, and its answer back to the lane."""
    plane = asking()
    ((peer, kind, token, body),) = ask(plane)
    assert (peer, kind, body) == (GUARD + DECIDER_LANE, "asked", {"frame": FRAME, "left_ms": 2_000})
    answer = encode_message("answer", token, answers=b"\x90", error=None)
    ((peer, kind, request, body),) = told(plane.handle(GUARD + b"\x02", answer, 0.5))
    assert (peer, kind, request) == (LANE, "answered", 9)
    assert body == {"heard": [["decider", "open", None, 500_000, b"\x90"]]}


def test_a_peer_may_ask_on_its_own_connection() -> None:
    """A command needs no lane beside the connection that it has."""
    assert ask(asking(), AGENT)[0][1] == "asked"


def test_who_has_not_said_hello_may_not_ask() -> None:
    """Nobody would notice that it goes away."""
    ((_, kind, request, body),) = ask(asking(), b"x" * 16 + b"\x10")
    assert (kind, request, body["code"]) == ("error", 9, "unknown_peer")


def test_a_draining_broker_takes_no_asks() -> None:
    """They are for the next one."""
    plane = asking()
    plane.hold()
    assert ask(plane)[0][3]["code"] == "draining"


def test_the_deadline_is_the_plane_s() -> None:
    """It says when it wants to be woken, and what is due then."""
    plane = asking()
    assert plane.next_due is None
    ask(plane)
    assert plane.next_due == 2.0
    ((_, kind, _, body),) = told(plane.due(2.0))
    assert (kind, body["heard"][0][2]) == ("answered", "timeout")


@pytest.mark.parametrize(
    "how, silence", [("died", "died"), ("silent", "died"), ("disconnected", "died"), ("bye", "left")]
)
def test_the_end_of_a_decider_ends_its_asks(how: str, silence: str) -> None:
    """Whatever it died of; a goodbye is told apart."""
    plane = asking()
    ask(plane)
    actions = plane.handle(GUARD, encode_message("bye"), 0.0) if how == "bye" else plane.gone(GUARD, 0.0, how)
    assert Forget(GUARD) in actions
    ((_, kind, _, body),) = told(actions)
    assert (kind, body["heard"][0][2]) == ("answered", silence)


def test_the_end_of_an_asker_or_its_lane_cancels() -> None:
    """Deciders hear that nobody waits."""
    for gone in (AGENT, LANE):
        plane = asking()
        ask(plane)
        assert [kind for _, kind, _, _ in told(plane.gone(gone, 0.0))] == ["cancelled"]
    plane = asking()
    ask(plane)
    assert [k for _, k, _, _ in told(plane.handle(LANE, encode_message("cancel", 9), 0.0))] == ["cancelled"]


def test_a_decider_s_lane_that_is_cut_is_no_end_of_the_decider() -> None:
    """What it was asked ends; it is still registered."""
    plane = asking()
    ask(plane)
    assert told(plane.gone(GUARD + DECIDER_LANE, 0.0)) == []
    ((_, kind, _, body),) = told(plane.due(0.5))
    assert (kind, body["heard"][0][2]) == ("answered", "unreachable")
    assert GUARD in plane.roster


def test_a_lane_speaks_for_its_peer() -> None:
    """Who asks is not silent: its registration does not run out."""
    plane = asking()
    plane.handle(LANE, encode_message("cancel", 1), 100.0)
    assert [peer for peer, *_ in told(plane.tick(101.0))] == []
    assert AGENT in plane.roster
    assert GUARD not in plane.roster


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"priority": "high"}, "priority 'high'"),
        ({"priority": 1_000_001}, "priority 1000001"),
        ({"failure": "ajar"}, "failure 'ajar' is not one of open, closed"),
        ({"patterns": ["a..b"]}, "a..b"),
    ],
)
def test_a_decider_says_what_it_is(changes: dict[str, Any], words: str) -> None:
    """Priority, failure policy and patterns are checked at its hello."""
    plane = ControlPlane(epoch=b"e" * 16, release="0.1.0", pid=5, now=0.0, limits={}, about={})
    ((_, kind, _, body),) = told(plane.handle(GUARD, hello("decider", **changes), 0.0))
    assert kind == "error"
    assert words in body["message"]


def test_a_decider_may_ask_to_be_asked_nothing() -> None:
    """No patterns are fine for it, and for no subscriber."""
    plane = asking()
    kinds = [kind for _, kind, _, _ in told(plane.handle(GUARD, hello("decider", patterns=[]), 0.0))]
    assert kinds == ["welcome", "deciding"]
    assert ask(plane)[0][1] == "answered"
    ((_, kind, _, _),) = told(plane.handle(b"s" * 16, hello("subscriber"), 0.0))
    assert kind == "error"


def test_status_tells_of_deciders_and_asks() -> None:
    """Who decides what, how urgently, and how asks have ended."""
    plane = asking(priority=3, failure="closed")
    ask(plane)
    plane.due(2.0)
    plane.gone(GUARD, 3.0)
    plane.handle(b"h" * 16, hello("decider", name="other", priority=1), 3.0)
    plane.measured(Forwarded(), 3.0)
    status = plane.status(4.0)
    assert status["asks"]["under_way"] == 0
    assert status["asks"]["timeout"] == status["asks"]["answered"] == 1
    assert status["asks"]["closed_and_dead"] == ["decider"]
    (row,) = status["deciders"]
    assert (row["name"], row["priority"], row["failure"], row["patterns"]) == ("other", 1, "open", ["a.*"])


def test_a_lane_for_asks_that_comes_up_is_no_message() -> None:
    """Nothing is refused and nothing is said: it only has a name now."""
    plane = asking()
    assert plane.handle(LANE, b"", 0.0) == []
    assert not plane.refusals.counts
