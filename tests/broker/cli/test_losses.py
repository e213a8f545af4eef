"""What a subscriber lost, told as it is noticed."""

from __future__ import annotations

from typing import Any

from broker.cli.losses import Losses


def stats(**changed: Any) -> dict[str, Any]:
    """Counters of a subscriber that lost nothing, but for what is ``changed``."""
    return {"missed": 0, "away": 0, "gaps": {}, "refused": {}, **changed}


def test_no_news_is_no_line() -> None:
    """Counters that do not change say nothing."""
    losses = Losses()
    assert list(losses.news(stats())) == []
    assert list(losses.news(stats())) == []


def test_a_gap_is_told_once_by_topic_and_number() -> None:
    """Only what is new since the last look is told."""
    losses = Losses()
    (first,) = losses.news(stats(missed=12, gaps={"prx.x": 12}))
    assert first.text == "missed 12 events of prx.x"
    assert first.fields == {"topic": "prx.x", "count": 12}
    assert list(losses.news(stats(missed=12, gaps={"prx.x": 12}))) == []
    (second,) = losses.news(stats(missed=13, gaps={"prx.x": 13}))
    assert second.text == "missed 1 event of prx.x"


def test_an_event_that_comes_late_is_no_loss() -> None:
    """A gap that closes again is not told, and what is missed later is counted from there."""
    losses = Losses()
    list(losses.news(stats(missed=5, gaps={"prx.x": 5})))
    assert list(losses.news(stats(missed=3, gaps={"prx.x": 3}))) == []
    (again,) = losses.news(stats(missed=4, gaps={"prx.x": 4}))
    assert again.fields["count"] == 1


def test_topics_that_the_report_does_not_name_are_told_together() -> None:
    """The total knows more than the table of topics: the difference is told too."""
    (named, rest) = Losses().news(stats(missed=10, gaps={"prx.x": 4}))
    assert named.fields["count"] == 4
    assert rest.text == "missed 6 events of further topics"


def test_absence_and_garbage_are_told() -> None:
    """A bus that was away, and frames that were no events, each once."""
    losses = Losses()
    news = list(losses.news(stats(away=1, refused={"size": 1, "payload": 2})))
    assert [loss.code for loss in news] == ["away", "refused", "refused"]
    assert news[1].text == "passed over 1 frame that was no event (size)"
    assert news[2].text == "passed over 2 frames that were no event (payload)"
    assert list(losses.news(stats(away=1, refused={"size": 1, "payload": 2}))) == []
