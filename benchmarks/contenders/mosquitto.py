"""mosquitto with paho-mqtt: QoS 0, the network thread of paho on both ends, loopback tcp without Nagle."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from ..board import Tally
from ..pace import Pace, drive
from ..roles import wait_until
from ..servers import absent, free_port, listens, program, running
from ..traffic import Traffic
from . import Server

_SETTINGS = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence false
set_tcp_nodelay true
max_queued_messages 100000
log_type error
"""


class Mosquitto:
    """Publisher: `publish(qos=0)`. Subscriber: `on_message`."""

    name = "mosquitto"
    label = "paho-mqtt QoS 0"

    def missing(self) -> str | None:
        """Mosquitto must be on the path (Debian's package puts it into /usr/sbin)."""
        return absent("mosquitto")

    @contextmanager
    def serve(self, directory: str) -> Iterator[Server]:
        """See `Contender.serve`."""
        port = free_port()
        settings = _SETTINGS.format(port=port)
        if os.geteuid() == 0:
            settings += "user root\n"  # else it changes to a user that cannot read the directory
        path = Path(directory, "mosquitto.conf")
        path.write_text(settings)
        with running(
            [program("mosquitto") or "", "-c", str(path)], log=f"{directory}/mosquitto.log"
        ) as child:
            wait_until(lambda: listens(port), "mosquitto listens")
            yield Server(f"127.0.0.1:{port}", child.pid)

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """See `Contender.send`."""
        client = _connect(address)
        client.loop_start()
        topic, publish = _mqtt(traffic.topic), client.publish
        fields = traffic.fields if traffic.as_dict else {}

        def send(payload: bytes, times: int) -> None:
            for _ in range(times):
                publish(topic, orjson.dumps(fields) if traffic.as_dict else payload)

        drive(pace, send, traffic.payload)
        client.disconnect()
        client.loop_stop()
        return {}

    def count(self, address: str, patterns: Sequence[str], as_dict: bool, tally: Tally) -> dict[str, Any]:
        """See `Contender.count`."""

        def on_bytes(_client: Client, _user: object, message: MQTTMessage) -> None:
            message.payload  # noqa: B018 - the payload is there, as the application would take it
            tally.add(1)

        def on_dict(_client: Client, _user: object, message: MQTTMessage) -> None:
            orjson.loads(message.payload)
            tally.add(1)

        _receive(address, patterns, on_dict if as_dict else on_bytes, tally)
        return {}

    def each(self, address: str, topic: str, take: Callable[[bytes], None], tally: Tally) -> None:
        """See `Contender.each`."""

        def on_message(_client: Client, _user: object, message: MQTTMessage) -> None:
            take(bytes(message.payload))
            tally.add(1)

        _receive(address, [topic], on_message, tally)


def _receive(
    address: str,
    patterns: Sequence[str],
    callback: Callable[[Client, object, MQTTMessage], None],
    tally: Tally,
) -> None:
    client = _connect(address)
    client.on_message = callback
    for begin in range(0, len(patterns), 50):
        client.subscribe([(_mqtt(pattern), 0) for pattern in patterns[begin : begin + 50]])
    client.loop_start()
    while not tally.done:
        time.sleep(0.02)
    client.disconnect()
    client.loop_stop()


def _connect(address: str) -> Client:
    host, _, port = address.partition(":")
    client = Client(CallbackAPIVersion.VERSION2)
    client.on_socket_open = _without_nagle
    client.connect(host, int(port))
    return client


def _without_nagle(_client: Client, _user: object, connection: Any) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _mqtt(pattern: str) -> str:
    """The same topic in MQTT's grammar: slashes, and a hash for the star at the end."""
    return pattern.replace(".", "/").replace("*", "#")


CONTENDER = Mosquitto()
