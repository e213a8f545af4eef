"""Payloads that travel by claim check: who may read them, what is verified, and what is too large."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.client import Event, Publisher, Subscriber, payloads
from broker.protocol.errors import ClaimCorrupt, LimitExceeded
from broker.testing import running_broker


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


def claimed(bus: str) -> tuple[Event, Path]:
    """An event that was published with a large payload, and the file that holds it."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        assert agent.publish("prx.x", {"text": "x" * 70_000})
        (event,) = events.batch(timeout=20)
    assert event.claim is not None
    return event, Path(bus, "spool", event.claim.reference)


def test_a_claim_is_a_private_file(bus: str) -> None:
    """The payload lies in a 0600 file of a 0700 directory, and nothing else does."""
    event, path = claimed(bus)
    assert event.payload == {"text": "x" * 70_000}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each for each in path.parent.iterdir() if not each.name.startswith(".")] == [path]


@pytest.mark.parametrize("damage", ["another byte", "a byte less", "a byte more"])
def test_a_claim_that_was_changed_is_refused(bus: str, damage: str) -> None:
    """Size and digest are verified when the payload is asked for; the event itself is there."""
    event, path = claimed(bus)
    whole = path.read_bytes()
    changed = {
        "another byte": whole[:-3] + b"y" + whole[-2:],
        "a byte less": whole[:-1],
        "a byte more": whole + b" ",
    }
    path.write_bytes(changed[damage])
    with pytest.raises(ClaimCorrupt, match="is not the 70,011 bytes that its event announced"):
        _ = event.payload
    assert event.topic == "prx.x"


def test_a_claim_that_is_a_link_is_refused(bus: str, tmp_path: Path) -> None:
    """A link in place of the file is not followed, wherever it leads."""
    event, path = claimed(bus)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(elsewhere)
    with pytest.raises(Exception, match="no longer there: Too many levels of symbolic links"):
        _ = event.payload


def test_beyond_the_largest_claim_is_a_refusal(bus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What not even a claim may hold is refused with both numbers, and leaves no file."""
    monkeypatch.setattr(payloads, "CLAIM_BYTES", 100_000)
    with Publisher("me", runtime_dir=bus) as agent:
        with pytest.raises(LimitExceeded, match="payload of 100,001 bytes of JSON is larger than 100,000"):
            agent.publish("prx.x", b'{"a":"' + b"x" * (100_001 - 8) + b'"}')
        assert agent.stats["published"] == agent.stats["claims"] == 0
    assert [name for name in Path(bus, "spool").iterdir() if not name.name.startswith(".")] == []
