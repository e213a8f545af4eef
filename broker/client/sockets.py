"""The ZeroMQ sockets of a client, with every option and its reason.

One context per process serves all clients in it. A forked child gets a context of its own; the
parent's is left alone there.
"""

from __future__ import annotations

import os
from typing import Final

import zmq

from ..protocol.limits import (
    CONTROL_HWM,
    PUBLISHER_HWM,
    SUBSCRIBER_HEARTBEAT_MS,
    SUBSCRIBER_HWM,
    SUBSCRIBER_TTL_MS,
)

LINGER_MS: Final = 1_000
"""How long close and exit wait for what is queued."""

_contexts: dict[int, zmq.Context[zmq.Socket[bytes]]] = {}


def context() -> zmq.Context[zmq.Socket[bytes]]:
    """The context of this process, made at first use and ended at exit."""
    pid = os.getpid()
    found = _contexts.get(pid)
    if found is None:
        found = _contexts[pid] = zmq.Context()
        found.max_sockets = 60_000  # of a limit of 65,535 in libzmq; 1,023 by default
    return found


def publisher_socket(endpoint: str) -> zmq.Socket[bytes]:
    """An XPUB connected to the ingress: it sees the broker's subscriptions, so it can know that it is heard.

    NODROP makes a full queue an error that can be counted. IMMEDIATE stays 0: with 1, what is sent
    while the broker is away vanishes uncounted.
    """
    socket = context().socket(zmq.XPUB)
    socket.linger = LINGER_MS
    socket.sndhwm = PUBLISHER_HWM
    socket.setsockopt(zmq.XPUB_NODROP, 1)
    socket.reconnect_ivl = 100
    socket.connect(endpoint)
    return socket


def subscriber_socket(endpoint: str) -> zmq.Socket[bytes]:
    """A SUB for the egress, not connected to anything it has not subscribed to.

    SNDHWM bounds subscriptions only, and beyond it they are lost without a word: 0. The TTL makes
    the broker let go of a stopped subscriber. No MAXMSGSIZE: on a connecting socket one larger
    frame would end the subscription for good.
    """
    socket = context().socket(zmq.SUB)
    socket.linger = 0
    socket.rcvhwm = SUBSCRIBER_HWM
    socket.sndhwm = 0
    socket.reconnect_ivl = 10
    socket.reconnect_ivl_max = 200
    socket.heartbeat_ivl = SUBSCRIBER_HEARTBEAT_MS
    socket.heartbeat_ttl = SUBSCRIBER_TTL_MS
    socket.heartbeat_timeout = 10_000
    socket.connect(endpoint)
    return socket


def control_socket(endpoint: str, name: bytes | None = None, *, probe: bool = False) -> zmq.Socket[bytes]:
    """A DEALER for the control plane, under ``name`` if it has one.

    IMMEDIATE: hellos do not pile up while no broker is there. ``probe``: it is told of each connection.
    """
    socket = context().socket(zmq.DEALER)
    if name is not None:
        socket.routing_id = name
    if probe:
        socket.probe_router = 1
    socket.linger = LINGER_MS
    socket.sndhwm = CONTROL_HWM
    socket.rcvhwm = CONTROL_HWM
    socket.immediate = True
    socket.reconnect_ivl = 10
    socket.reconnect_ivl_max = 200
    socket.connect(endpoint)
    return socket


def end_context() -> None:
    """Close what is left of this process's context, waiting at most a second for what is queued."""
    found = _contexts.pop(os.getpid(), None)
    if found is not None:
        found.destroy(linger=LINGER_MS)
