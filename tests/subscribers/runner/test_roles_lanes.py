"""The order of events: one after another in a session, several sessions at once, bounded."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from subscribers.runner.roles_lanes import PER_LANE, WAITING, WAITING_BYTES, Lanes, Place


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40), st.integers(1, 3))
def test_each_lane_keeps_its_order_and_no_more_are_under_way_than_may_be(
    steps: list[tuple[str, bool]], at_once: int
) -> None:
    """Whatever comes and ends when: all are handled, those of one lane in the order in which they came."""
    lanes: Lanes[tuple[str, int]] = Lanes(at_once)
    running: list[tuple[str, int]] = []
    handled: list[tuple[str, int]] = []
    count: Counter[str] = Counter()

    def end() -> None:
        item = running.pop(0)
        handled.append(item)
        following = lanes.leave(item[0])
        if following is not None:
            running.append(following)

    for key, ends in steps:
        item = (key, count[key])
        count[key] += 1
        if lanes.enter(key, item, 1) is Place.START:
            running.append(item)
        assert len(running) == lanes.running <= at_once
        assert len({key for key, _ in running}) == len(running)
        if ends and running:
            end()
    while running:
        end()
    for key in "abc":
        assert [number for each, number in handled if each == key] == list(range(count[key]))
    assert lanes.running == lanes.waiting == lanes.dropped == 0


def test_of_sessions_that_wait_each_has_its_turn() -> None:
    """A session with much to do does not keep the others waiting."""
    lanes: Lanes[str] = Lanes(1)
    assert lanes.enter("a", "a0", 1) is Place.START
    for item in ("a1", "a2", "b1", "c1"):
        assert lanes.enter(item[0], item, 1) is Place.WAIT
    handled = [lanes.leave("a")]
    while handled[-1] is not None:
        handled.append(lanes.leave(handled[-1][0]))
    assert handled == ["b1", "c1", "a1", "a2", None]


def test_what_rests_takes_no_place_and_keeps_its_lane() -> None:
    """Others begin meanwhile; what comes in its lane waits for it to go on and end."""
    lanes: Lanes[str] = Lanes(1)
    assert lanes.enter("a", "a0", 1) is Place.START
    assert lanes.enter("b", "b0", 1) is Place.WAIT
    assert lanes.rest() == "b0"
    assert lanes.leave("b") is None
    assert (lanes.running, lanes.resting) == (0, 1)
    assert lanes.enter("a", "a1", 1) is Place.WAIT
    assert lanes.enter("c", "c0", 1) is Place.START
    assert lanes.rest() is None
    assert lanes.go_on("c", "c0") is Place.START
    assert lanes.go_on("a", "a0") is Place.WAIT
    assert (lanes.running, lanes.resting) == (1, 0)
    assert [lanes.leave("c"), lanes.leave("a"), lanes.leave("a")] == ["a0", "a1", None]
    assert lanes.running == lanes.waiting == 0


def test_what_waits_is_bounded_and_what_finds_no_room_is_counted() -> None:
    """In one lane, in all, and in bytes; a single large one always finds room."""
    lanes: Lanes[int] = Lanes(1)
    lanes.enter("a", 0, 0)
    assert lanes.enter("a", 0, WAITING_BYTES + 1) is Place.WAIT
    assert lanes.enter("b", 0, 1) is Place.NO_ROOM
    lanes = Lanes(1)
    lanes.enter("a", 0, 0)
    assert [lanes.enter("a", 0, 0) for _ in range(PER_LANE + 1)].count(Place.NO_ROOM) == 1
    lanes = Lanes(1)
    lanes.enter("a", 0, 0)
    places = [lanes.enter(f"b{number}", 0, 0) for number in range(WAITING + 3)]
    assert places.count(Place.NO_ROOM) == lanes.dropped == 3
