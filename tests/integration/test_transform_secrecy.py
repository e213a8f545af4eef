"""Redaction is real: what a transform takes out of a tool's text is found nowhere afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.client import Event, Subscriber
from broker.places import spool_directory
from tests.integration.transform_scene import Scene, scene, transforms
from tests.integration.waiting import until

MARKER = "xoxb-7f3a-SECRET-91c2"

LEAKY = """
import asyncio, os, subprocess, sys, time, warnings
from subscribers.handlers import transform

@transform
def prints(event, ctx):
    text = event.payload["tool_output"]
    print(text)
    print(text, file=sys.stderr)
    warnings.warn(text)
    os.write(1, text.encode()[:1000])
    os.write(2, text.encode()[-1000:])
    subprocess.run(["sh", "-c", "cat; cat >&2"], input=text.encode())
    return None

@transform
def raises(event, ctx):
    raise ValueError("bad: " + event.payload["tool_output"])

@transform
def raises_a_chain(event, ctx):
    try:
        {}[event.payload["tool_output"]]
    except KeyError as error:
        raise RuntimeError(event.payload["tool_output"]) from error

@transform
async def raises_later(event, ctx):
    task = asyncio.get_running_loop().create_task(other(event.payload["tool_output"]))
    await asyncio.sleep(0)
    await task

async def other(text):
    raise ValueError(text)

@transform
async def forgets_a_task(event, ctx):
    asyncio.get_running_loop().create_task(other(event.payload["tool_output"]))

@transform
def returns_it_wrongly(event, ctx):
    return [event.payload["tool_output"]]

@transform(timeout=0.3)
def hangs(event, ctx):
    text = event.payload["tool_output"]
    time.sleep(1000)

@transform
def redacts(event, ctx):
    return event.payload["tool_output"].replace("MARKER", "[redacted]")
""".replace("MARKER", MARKER)

COMMANDS = """
[[transform]]
name = "noisy"
command = ["/bin/sh", "-c", "tee /dev/stderr; exit 3"]
[[transform]]
name = "garbage"
command = ["/bin/sh", "-c", "tail -c 1000; printf x"]
[[transform]]
name = "wrong shape"
command = ["/bin/sh", "-c", '''sed 's/^/{"result":/; s/$/}/' ''']
[[transform]]
name = "hangs"
timeout = 0.3
command = ["/bin/sh", "-c", "tee /dev/stderr; sleep 1000"]
"""


@pytest.fixture(name="stage")
def _stage() -> Iterator[Scene]:
    with scene() as found:
        yield found


def holders(*folders: Path) -> list[str]:
    """The files below ``folders`` that hold the marker."""
    found = []
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                path = Path(place, name)
                if path.is_file() and MARKER.encode() in path.read_bytes():
                    found.append(str(path))
    return found


def told(events: Subscriber, records: int) -> list[Event]:
    """Everything on the bus up to that many records of transforms."""
    seen: list[Event] = []

    def enough() -> bool:
        seen.extend(events.batch(timeout=0.2))
        return sum(event.topic == "prx.hooks.transform" for event in seen) >= records

    until(enough, "the records")
    seen.extend(events.batch(timeout=0.2))
    return seen


def test_the_raw_text_is_in_no_report_log_or_file(stage: Scene) -> None:
    """Handlers that print, raise, return and hang with the text in their hands spread it nowhere.

    Looked at are every event on the bus, the log, the spool and all other files of the bus, after a small
    result and a large one.
    """
    written = [
        stage.handlers("leaky.py", LEAKY),
        stage.tables(COMMANDS),
    ]
    small, large = f"token={MARKER}\n", f"token={MARKER}\n" + "filler " * 700_000 + MARKER
    with transforms(stage) as service, Subscriber(["*"], name="all", runtime_dir=stage.bus) as events:
        for text in (small, large):
            decision = stage.ask(text, 60.0)
            assert decision.output_by == "leaky.py:redacts"
            assert decision.output == text.replace(MARKER, "[redacted]")
        seen = told(events, 2)
        spool = Path(spool_directory(stage.bus))
        until(lambda: not holders(spool), "the spool to hold nothing of it")
        texts = [event.payload_bytes.decode() for event in seen]
    failed = {event.payload["hook"] for event in seen if event.topic == "prx.hooks.run"}
    assert failed >= {"noisy", "garbage", "wrong shape", "hangs", "leaky.py:raises", "leaky.py:hangs"}
    assert not any(MARKER in text for text in texts)
    assert not any(event.topic == "prx.hooks.dead_letter" for event in seen)
    assert MARKER not in service.log.read_text()
    for path in written:  # these hold it because this test wrote it there
        path.unlink()
    assert holders(Path(stage.bus), spool, stage.workspace.parent) == []
