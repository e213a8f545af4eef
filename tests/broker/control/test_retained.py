"""Retained values: the last one of each topic, bounded, read in pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.control.bounds import VALUES_BYTES
from broker.control.retained import RetainedValues

TOPICS = st.sampled_from(["a.x", "a.y", "b.x", "c"])


def everything(values: RetainedValues, patterns: list[str]) -> list[bytes]:
    """All pages of ``patterns``, one after the other."""
    frames: list[bytes] = []
    after: int | None = 0
    while after is not None:
        page, after = values.page(patterns, after)
        frames += page
    return frames


@given(st.lists(st.tuples(TOPICS, st.binary(max_size=40)), max_size=30))
def test_the_last_value_of_each_topic_is_kept(sets: list[tuple[str, bytes]]) -> None:
    """Within the bounds, reading gives each topic's last frame, in the order in which they were set."""
    values = RetainedValues()
    model: dict[str, bytes] = {}
    for topic, frame in sets:
        values.set(topic, frame)
        model.pop(topic, None)
        model[topic] = frame
    assert everything(values, ["*"]) == list(model.values())
    assert everything(values, ["a.*", "c"]) == [f for t, f in model.items() if t in ("a.x", "a.y", "c")]
    assert values.held == sum(map(len, model.values()))
    assert len(values) == len(model)
    assert values.evicted == 0


@given(st.lists(st.tuples(TOPICS, st.binary(max_size=40)), max_size=30))
def test_bounds_hold_and_the_least_recently_set_goes_first(sets: list[tuple[str, bytes]]) -> None:
    """Neither the topics nor the bytes ever exceed their bound; what is left was set last."""
    values = RetainedValues(topics=2, capacity=60)
    order: list[str] = []
    for topic, frame in sets:
        values.set(topic, frame)
        order = [t for t in order if t != topic] + [topic]
        assert len(values) <= 2
        assert values.held <= 60
        assert list(values._values) == order[len(order) - len(values) :]


def test_what_is_evicted_is_counted() -> None:
    """Each value that goes for want of room is one more evicted; a replaced one is not."""
    values = RetainedValues(topics=1)
    values.set("a", b"1")
    values.set("a", b"2")
    assert values.evicted == 0
    values.set("b", b"3")
    assert values.evicted == 1
    assert everything(values, ["*"]) == [b"3"]


def test_a_value_larger_than_all_room_is_not_kept() -> None:
    """A value that alone exceeds the room goes at once, and the table stays consistent."""
    values = RetainedValues(capacity=10)
    values.set("a", b"x" * 11)
    assert (len(values), values.held, values.evicted) == (0, 0, 1)


def test_many_values_come_in_pages() -> None:
    """Pages stay near their size, and together hold every value once."""
    values = RetainedValues()
    frame = b"x" * 60_000
    for number in range(30):
        values.set(f"t{number}", frame)
    first, following = values.page(["*"], 0)
    assert VALUES_BYTES <= len(first) * len(frame) < VALUES_BYTES + len(frame)
    assert following is not None
    assert len(everything(values, ["*"])) == 30


def test_a_value_set_between_two_pages_is_not_missed() -> None:
    """A value that is set while somebody pages comes on a later page in its new form."""
    values = RetainedValues()
    for number in range(20):
        values.set(f"t{number}", b"x" * 60_000)
    _, after = values.page(["*"], 0)
    assert after is not None
    values.set("t19", b"new")
    values.set("t0", b"newer")
    rest: list[bytes] = []
    while after is not None:
        page, after = values.page(["*"], after)
        rest += page
    assert rest[-2:] == [b"new", b"newer"]
