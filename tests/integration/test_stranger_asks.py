"""A decider and an asker written from the wire document alone meet the broker and our own, both ways."""

from __future__ import annotations

import ast
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client import Decider, Event, Publisher, Subscriber
from broker.client.core.asking import redacted
from broker.client.decider import Ask
from broker.client.sockets import end_context
from broker.protocol.decisions import FAILURES, SILENCES, VERDICTS, Answer, Heard, merge
from broker.protocol.errors import ClosedError
from broker.protocol.limits import ANSWER_BYTES, PAYLOAD_BYTES
from tests.integration import stranger_asks
from tests.integration.stranger_scene import DEADLINE_S, Bus
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(180)

SCRIPT = Path(__file__).with_name("stranger_asks.py")
TOPIC = "prx.lifecycle.tool_call_start"
PATIENT_MS = 60_000

Judge = Callable[[Ask], Iterable[Answer]]


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[Bus]:
    """A running broker."""
    running = Bus(runtime_dir, SCRIPT)
    try:
        yield running
    finally:
        running.close()
        end_context()


@contextmanager
def deciding(bus: Bus, pattern: str, judge: Judge, *, name: str = "ours") -> Iterator[Decider]:
    """Our own decider in a thread."""
    with Decider([pattern], name=name, runtime_dir=bus.directory, wait=DEADLINE_S) as asks:

        def serve() -> None:
            try:
                while not asks.closed:
                    for ask in asks.batch(timeout=0.1):
                        ask.reply(judge(ask))
            except ClosedError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asks
        finally:
            asks.close()
            thread.join()


def one(events: Subscriber) -> Event:
    """The next event."""
    (event,) = events.batch(1, timeout=DEADLINE_S)
    return event


# -- on paper -----------------------------------------------------------------------------------------


def test_the_stranger_knows_nothing_of_ours() -> None:
    """It imports the standard library, zmq and msgpack only."""
    imports = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(ast.parse(SCRIPT.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert {name.partition(".")[0] for name in imports} - sys.stdlib_module_names == {"zmq", "msgpack"}


WORDS = st.sampled_from(["a", "b", "c"])
MAPS = st.dictionaries(WORDS, st.integers(0, 2), max_size=3)
ANSWERS = st.builds(
    Answer,
    handler=WORDS,
    verdict=st.sampled_from(VERDICTS),
    reason=st.none(),
    contexts=st.lists(WORDS, max_size=2).map(tuple),
    updated_input=st.none() | MAPS,
    output=st.integers(0, 2),
    stop=st.booleans(),
    stop_reason=st.none(),
    system_message=st.none(),
    priority=st.integers(-1, 1),
)
HEARD = st.lists(
    st.builds(
        Heard,
        decider=WORDS,
        failure=st.sampled_from(FAILURES),
        silence=st.none() | st.sampled_from(SILENCES),
        elapsed_s=st.just(0.0),
        answers=st.lists(ANSWERS, max_size=3).map(tuple),
    ),
    max_size=4,
)


@given(HEARD, MAPS)
def test_the_stranger_merges_as_we_do(heard: list[Heard], original: dict[str, int]) -> None:
    """Two merges written apart, one of them from the document, agree on every decision."""
    stranger = stranger_asks.Asker.__new__(stranger_asks.Asker)
    stranger.input = original
    theirs = stranger.merge(
        [(h.decider, h.failure, h.silence, [answer.fields() for answer in h.answers]) for h in heard]
    )
    ours = merge(heard, original)
    assert theirs == {
        "verdict": ours.verdict,
        "by": ours.by,
        "contexts": [said.text for said in ours.contexts],
        "input": ours.updated_input,
        "conflicts": sorted(conflict.key for conflict in ours.conflicts),
        "output": [ours.output] if ours.replaced else [],
    }


@given(
    st.dictionaries(
        st.sampled_from([*stranger_asks.KEPT, "output", "other"]),
        st.none() | st.booleans() | st.text(max_size=300) | st.lists(st.integers(0, 9), max_size=3),
    )
)
def test_the_stranger_takes_out_what_we_do(payload: dict[str, Any]) -> None:
    """The copy of a tool's result is the same, whoever makes it."""
    assert json.loads(stranger_asks.redacted(payload)) == json.loads(redacted(payload))


# -- on the bus ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["lane", "same lane", "control", "claim"])
def test_a_stranger_decides_for_our_publisher(bus: Bus, how: str) -> None:
    """Verdict, context, rewritten input and a null output arrive, by whichever way they were sent."""
    decider = bus.stranger("decide", "judge", "10", "open", TOPIC)
    answers = (
        Answer("judge:a", "deny", "not here", ("use make",)),
        Answer("judge:b", updated_input={"command": "ls"}, output=None, stop=True, priority=-1),
    )
    payload = {
        "tool": "Bash",
        "arguments": {"command": "rm"},
        "how": how,
        "answers": [answer.fields() for answer in answers],
    }
    with (
        Publisher("agent/1", runtime_dir=bus.directory, on_absent="block") as ours,
        Subscriber([TOPIC], runtime_dir=bus.directory) as events,
    ):
        decision = ours.ask(TOPIC, payload, timeout=DEADLINE_S, session_id="s1", depth=3)
        event = one(events)
    assert (decision.verdict, decision.reason, decision.by) == ("deny", "not here", "judge:a")
    assert [tuple(said) for said in decision.contexts] == [("judge:a", "use make")]
    assert (decision.updated_input, decision.output, decision.stop_by) == ({"command": "ls"}, None, "judge:b")
    assert [(h.decider, h.silence) for h in decision.heard] == [("judge", None)]
    told = decider.answer()
    assert (told["id"], told["depth"], told["session"]) == (event.id, 3, "s1")
    assert 0 < told["left_ms"] <= DEADLINE_S * 1000


@pytest.mark.parametrize("how,silence", [("garbage", "failed"), ("failed", "failed"), ("silent", "timeout")])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_stranger_that_fails_has_its_policy(bus: Bus, how: str, silence: str, failure: str) -> None:
    """What it declared says whether its silence is a denial."""
    bus.stranger("decide", "judge", "0", failure, "a.*")
    with Publisher("agent/1", runtime_dir=bus.directory, on_absent="block") as ours:
        decision = ours.ask("a.b", {"how": how}, timeout=0.5 if how == "silent" else DEADLINE_S)
    assert [(h.decider, h.failure, h.silence) for h in decision.heard] == [("judge", failure, silence)]
    assert decision.denied == (failure == "closed")


def test_a_large_question_and_a_large_answer_cross(bus: Bus) -> None:
    """A payload above 64 KiB and answers above 128 KiB travel through the spool, both ways."""
    text = "x" * (2 * ANSWER_BYTES)
    answers = [Answer("big", contexts=(text,)).fields()]
    decider = bus.stranger("decide", "judge", "0", "open", "a.b")
    with Publisher("agent/1", runtime_dir=bus.directory, on_absent="block") as ours:
        decision = ours.ask("a.b", {"how": "claim", "answers": answers}, timeout=DEADLINE_S)
    assert [said.text for said in decision.contexts] == [text]
    assert decider.answer()["claimed"]

    def judge(ask: Ask) -> list[Answer]:
        assert ask.event.claim is not None
        return [Answer("echo", contexts=(ask.event.payload["text"],))]

    asker = bus.stranger("ask", "asker/1")
    with deciding(bus, "a.c", judge):
        asker.do(topic="a.c", payload={"text": text}, timeout_ms=PATIENT_MS)
        assert asker.answer()["contexts"] == [text]
    assert len(text) > PAYLOAD_BYTES


@pytest.mark.parametrize("lane", [False, True])
def test_a_stranger_asks_our_decider(bus: Bus, *, lane: bool) -> None:
    """From its control connection or from a lane: the answers come back, and the copy is on the bus."""
    asker = bus.stranger("ask", "asker/1")

    def judge(ask: Ask) -> list[Answer]:
        return [
            Answer("ours:a", "allow", updated_input={"command": "ls"}),
            Answer("ours:b", "ask", contexts=(ask.event.source,), updated_input={"command": "pwd"}),
        ]

    with deciding(bus, TOPIC, judge), Subscriber([TOPIC], runtime_dir=bus.directory) as events:
        payload = {"tool": "Bash", "arguments": {"command": "rm"}}
        identity = asker.do(topic=TOPIC, payload=payload, timeout_ms=PATIENT_MS, lane=lane, session="s1")[
            "id"
        ]
        decision = asker.answer()
        event = one(events)
    assert decision == {
        "heard": [["ours", "open", None]],
        "verdict": "ask",
        "by": "ours:b",
        "contexts": ["asker/1"],
        "input": {"command": "pwd"},
        "conflicts": ["command"],
        "output": [],
    }
    assert (event.id, event.payload, event.session_id) == (identity, payload, "s1")


def test_a_stranger_s_tool_result_is_redacted_for_us(bus: Bus) -> None:
    """Our decider reads it, our subscriber finds size and digest."""
    topic = "prx.lifecycle.tool_result"
    asker = bus.stranger("ask", "asker/1")
    payload = {"tool": "Bash", "output": "my secret"}
    with (
        deciding(bus, topic, lambda ask: [Answer("r", output=ask.event.payload["output"][:2])]),
        Subscriber([topic], runtime_dir=bus.directory) as events,
    ):
        asker.do(topic=topic, payload=payload, timeout_ms=PATIENT_MS)
        assert asker.answer()["output"] == ["my"]
        assert one(events).payload == json.loads(redacted(payload))


def test_strangers_ask_one_another_and_may_take_it_back(bus: Bus) -> None:
    """The order of deciders is that of their priorities; a cancelled ask is told to who holds it."""
    second = bus.stranger("decide", "second", "5", "open", "a.*")
    first = bus.stranger("decide", "first", "-5", "open", "a.b")
    asker = bus.stranger("ask", "asker/1")
    answers = [Answer("x", "allow").fields()]
    asker.do(topic="a.b", payload={"answers": answers}, timeout_ms=PATIENT_MS)
    told = asker.answer()
    assert [row[0] for row in told["heard"]] == ["first", "second"]
    assert told["verdict"] == "allow"
    assert first.answer()["id"] == second.answer()["id"]
    asker.do(topic="a.b", payload={"how": "silent"}, timeout_ms=PATIENT_MS, lane=True)
    tokens = [decider.answer()["token"] for decider in (first, second)]
    asker.tell(cancel=True)
    assert [decider.answer() for decider in (first, second)] == [{"cancelled": token} for token in tokens]


def test_a_stranger_that_is_killed_is_missed_at_once(bus: Bus) -> None:
    """Its process is watched; one that fails closed denies until one of its name is back."""
    with bus.stranger("decide", "judge", "0", "closed", "a.b") as decider:
        asker = bus.stranger("ask", "asker/1")
        asker.do(topic="a.b", payload={"how": "silent"}, timeout_ms=PATIENT_MS)
        decider.answer()
        decider.kill()
    assert asker.answer()["heard"] == [["judge", "closed", "died"]]
    asker.do(topic="a.b", payload={}, timeout_ms=PATIENT_MS)
    told = asker.answer()
    assert (told["verdict"], told["heard"]) == ("deny", [["judge", "closed", "died"]])
    bus.stranger("decide", "judge", "0", "closed", "a.b")
    asker.do(topic="a.b", payload={}, timeout_ms=PATIENT_MS)
    assert asker.answer()["verdict"] == "none"


def test_a_stranger_is_asked_again_after_a_restart(bus: Bus) -> None:
    """It says hello to the new broker, its lane is up again, and it answers."""
    bus.stranger("decide", "judge", "0", "open", "a.b")
    bus.restart()
    asker = bus.stranger("ask", "asker/1")

    def answered() -> bool:
        asker.do(topic="a.b", payload={"answers": [Answer("j", "allow").fields()]}, timeout_ms=PATIENT_MS)
        return bool(asker.answer()["by"] == "j")

    until(answered, "the decider's return", DEADLINE_S)


def test_the_broker_refuses_an_ask_with_its_number(bus: Bus) -> None:
    """Too much time is more than a limit admits, and the asker learns it by its number."""
    asker = bus.stranger("ask", "asker/1")
    asker.do(topic="a.b", payload={}, timeout_ms=3_600_001)
    assert asker.answer()["error"]["code"] == "limit_exceeded"
