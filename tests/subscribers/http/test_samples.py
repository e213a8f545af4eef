"""The samples are events that an agent could have sent."""

from __future__ import annotations

import pytest

from broker.protocol.catalogue import EVENTS, check
from subscribers.http.samples import PAYLOADS, sample


def test_every_event_of_the_catalogue_has_a_sample() -> None:
    """There is one for each, in the order of the catalogue, and none for anything else."""
    assert list(PAYLOADS) == list(EVENTS)
    assert sample("my_event") == {}


@pytest.mark.parametrize("event", EVENTS)
def test_a_sample_has_fields_of_the_catalogue_with_their_types(event: str) -> None:
    """Each sample passes the publisher's own check, and has no field that is not documented."""
    check(EVENTS[event].topic, sample(event))
    assert set(sample(event)) <= {field.name for field in EVENTS[event].fields}
