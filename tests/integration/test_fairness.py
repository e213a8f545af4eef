"""Publishers beside one another: the broker takes from all of them in turn."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

from broker.client import Publisher, Subscriber
from broker.testing import running_broker
from tests.integration.waiting import until

POLITE = 200


def test_a_flooding_publisher_does_not_keep_another_from_being_heard(runtime_dir: Path) -> None:
    """Beside one that never stops, every event of a second publisher arrives, and none is dropped."""
    over = threading.Event()

    def flood(bus: str) -> None:
        with Publisher("flood", runtime_dir=bus, on_full="block", on_absent="block") as agent:
            while not over.is_set():
                agent.publish("prx.flood", b"{}")

    with running_broker(runtime_dir) as bus, Subscriber(["prx.*"], runtime_dir=bus) as events:
        loud = threading.Thread(target=flood, args=(bus,))
        loud.start()
        try:
            heard: Counter[str] = Counter()

            def hear() -> bool:
                heard.update(event.source for event in events.batch(timeout=0.1))
                return heard["flood"] > 2_000

            until(hear, "the flood has begun")
            with Publisher("polite", runtime_dir=bus, on_absent="block") as agent:
                for number in range(POLITE):
                    assert agent.publish("prx.polite", {"n": number})
                    heard.update(event.source for event in events.batch(timeout=0.1))
                until(lambda: hear() and heard["polite"] >= POLITE, "every polite event")
                assert agent.stats["dropped_full"] == 0
        finally:
            over.set()
            loud.join(20)
        assert heard["polite"] == POLITE
