"""redis-server with redis-py pipelines: 100 publishes per round trip, which the application must arrange by
itself.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import orjson

from ..pace import Pace, drive
from ..traffic import Traffic
from .redis_plain import RedisPlain, _connect

_BATCH = 100


class RedisPipeline(RedisPlain):
    """As `RedisPlain`, but the publisher hands its events over in batches."""

    name = "redis_pipeline"
    label = "redis-py pipeline(100)"

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """See `Contender.send`."""
        with closing(_connect(address)) as client:
            fields = traffic.fields if traffic.as_dict else {}
            pipeline = client.pipeline(transaction=False)

            def send(payload: bytes, times: int) -> None:
                for begin in range(0, times, _BATCH):
                    for _ in range(min(_BATCH, times - begin)):
                        pipeline.publish(traffic.topic, orjson.dumps(fields) if traffic.as_dict else payload)
                    pipeline.execute()

            drive(pace, send, traffic.payload)
        return {}


CONTENDER = RedisPipeline()
