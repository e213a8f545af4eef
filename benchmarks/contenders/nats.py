"""nats-server with nats-py: callback subscription (its fastest style), core NATS at most once, loopback
tcp.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg

from ..board import Tally
from ..pace import Pace, drive_async
from ..roles import wait_until
from ..servers import absent, program, running
from ..traffic import Traffic
from . import Server


class Nats:
    """Publisher: `await client.publish()`. Subscriber: `subscribe(cb=...)`."""

    name = "nats"
    label = "nats-py"

    def missing(self) -> str | None:
        """nats-server must be on the path (Debian's package puts it into /usr/sbin)."""
        return absent("nats-server")

    @contextmanager
    def serve(self, directory: str) -> Iterator[Server]:
        """The server chooses a free port itself and writes it to a file."""
        argv = [program("nats-server") or "", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", directory]
        with running(argv, log=f"{directory}/nats.log") as child:
            wait_until(lambda: _address(directory), "nats-server wrote its port")
            yield Server(_address(directory) or "", child.pid)

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """See `Contender.send`."""
        asyncio.run(_send(address, traffic, pace))
        return {}

    def count(self, address: str, patterns: Sequence[str], as_dict: bool, tally: Tally) -> dict[str, Any]:
        """See `Contender.count`."""

        async def on_bytes(message: Msg) -> None:
            message.data  # noqa: B018 - the payload is there, as the application would take it
            tally.add(1)

        async def on_dict(message: Msg) -> None:
            orjson.loads(message.data)
            tally.add(1)

        errors = asyncio.run(_receive(address, patterns, on_dict if as_dict else on_bytes, tally))
        return {"errors": errors} if errors else {}

    def each(self, address: str, topic: str, take: Callable[[bytes], None], tally: Tally) -> None:
        """See `Contender.each`."""

        async def on_message(message: Msg) -> None:
            take(message.data)
            tally.add(1)

        asyncio.run(_receive(address, [topic], on_message, tally))


async def _send(address: str, traffic: Traffic, pace: Pace) -> None:
    client = await nats.connect(address)
    fields = traffic.fields if traffic.as_dict else {}
    topic, publish, encode = traffic.topic, client.publish, orjson.dumps

    async def send_bytes(payload: bytes, times: int) -> None:
        for _ in range(times):
            await publish(topic, payload)
        await _let_flush()

    async def send_dict(_payload: bytes, times: int) -> None:
        for _ in range(times):
            await publish(topic, encode(fields))
        await _let_flush()

    await drive_async(pace, send_dict if traffic.as_dict else send_bytes, traffic.payload)
    await client.drain()


async def _let_flush() -> None:
    """Two turns of the loop: the first wakes nats-py's flusher, which writes in the second."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def _receive(
    address: str, patterns: Sequence[str], callback: Callable[[Msg], Awaitable[None]], tally: Tally
) -> dict[str, int]:
    errors: dict[str, int] = {}

    async def on_error(error: Exception) -> None:
        errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1

    client: Client = await nats.connect(address, error_cb=on_error)
    for pattern in patterns:
        await client.subscribe(pattern, cb=callback, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await client.flush()
    while not tally.done:  # noqa: ASYNC110 - the end is told through shared memory
        await asyncio.sleep(0.02)
    await client.close()
    return errors


def _address(directory: str) -> str | None:
    for path in Path(directory).glob("*.ports"):
        try:
            urls: list[str] = json.loads(path.read_text())["nats"]
        except ValueError:  # half written; the next look finds it whole
            continue
        return urls[0]
    return None


CONTENDER = Nats()
