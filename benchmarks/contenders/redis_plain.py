"""redis-server with redis-py and hiredis: `publish()` as its documentation shows it, loopback tcp, no
persistence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import orjson
import redis

from ..board import Tally
from ..pace import Pace, drive
from ..roles import wait_until
from ..servers import absent, free_port, listens, program, running
from ..traffic import Traffic
from . import Server


class RedisPlain:
    """Publisher: one `publish()` per event, which waits for the server's answer. Subscriber: `listen()`."""

    name = "redis_plain"
    label = "redis-py publish()"

    def missing(self) -> str | None:
        """redis-server must be on the path."""
        return absent("redis-server")

    @contextmanager
    def serve(self, directory: str) -> Iterator[Server]:
        """See `Contender.serve`."""
        port = free_port()
        argv = [
            program("redis-server") or "",
            "--bind",
            "127.0.0.1",
            "--port",
            str(port),
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        # The default limit (32 MB) cuts a slow subscriber off; a window of large events must not.
        argv += ["--dir", directory, "--client-output-buffer-limit", "pubsub 256mb 256mb 60"]
        with running(argv, log=f"{directory}/redis.log") as child:
            wait_until(lambda: listens(port), "redis-server listens")
            yield Server(f"127.0.0.1:{port}", child.pid)

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """See `Contender.send`."""
        with closing(_connect(address)) as client:
            fields = traffic.fields if traffic.as_dict else {}

            def send(payload: bytes, times: int) -> None:
                for _ in range(times):
                    client.publish(traffic.topic, orjson.dumps(fields) if traffic.as_dict else payload)

            drive(pace, send, traffic.payload)
        return {}

    def count(self, address: str, patterns: Sequence[str], as_dict: bool, tally: Tally) -> dict[str, Any]:
        """See `Contender.count`."""

        def decode(payload: bytes) -> None:
            orjson.loads(payload)

        _listen(address, patterns, decode if as_dict else None, tally)
        return {}

    def each(self, address: str, topic: str, take: Callable[[bytes], None], tally: Tally) -> None:
        """See `Contender.each`."""
        _listen(address, [topic], take, tally)


def _connect(address: str) -> redis.Redis:
    host, _, port = address.partition(":")
    return redis.Redis(host=host, port=int(port))


def _listen(
    address: str, patterns: Sequence[str], take: Callable[[bytes], None] | None, tally: Tally
) -> None:
    client = _connect(address)
    channel: Any = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    plain = [pattern for pattern in patterns if "*" not in pattern]
    globs = [pattern for pattern in patterns if "*" in pattern]
    if plain:
        channel.subscribe(*plain)
    if globs:
        channel.psubscribe(*globs)
    try:
        for message in channel.listen():
            if message is None:
                continue
            if take is not None:
                take(message["data"])
            tally.add(1)
            if tally.done:
                break
    except redis.ConnectionError:
        if not tally.done:  # the server ends before a subscriber that waits for its last event
            raise
    channel.close()
    client.close()


CONTENDER = RedisPlain()
