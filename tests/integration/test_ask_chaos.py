"""Asks among deciders that crash, sleep, talk nonsense and answer twice: each ends once, nothing grows.

``PRXBUS_CHAOS_ASKS`` sets how many there are; 100,000 take some minutes.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.client import aio
from broker.client.tool import Tool
from broker.protocol.errors import RequestTimeout
from broker.testing import running_broker
from tests.integration.waiting import until

ASKS = int(os.environ.get("PRXBUS_CHAOS_ASKS", "2000"))
IN_FLIGHT = 64
TIMEOUT_S = 0.3
TOPIC = "prx.lifecycle.tool_call_start"

DECIDER = """
import math, os, random, sys, threading, time
from broker.client import Answer, Decider
bus, name, seed, end = sys.argv[1:]
rng = random.Random(int(seed))
with Decider(["prx.lifecycle.*"], name=name, failure="open", runtime_dir=bus, wait=20.0) as asks:
    print("ready", flush=True)
    late = []
    while True:
        for ask in asks.batch(timeout=0.2):
            luck = rng.random()
            if luck < 0.002 and end != "stays":
                os._exit(9)                                  # a crash
            if luck < 0.01:
                late.append((time.monotonic() + 0.5, ask))   # answered long after its deadline,
                ask.deadline = math.inf                      # by one whose clock is wrong
            elif luck < 0.02:
                ask.reply([Answer("", "perhaps")])           # nonsense
            elif luck < 0.03:
                ask.fail("bad luck")
            elif luck < 0.04:
                pass                                         # never answered
            else:
                ask.reply([Answer(name, "allow", str(ask.event.payload["arguments"]["n"]))])
                ask.reply([Answer(name, "deny", "said twice")])
        now = time.monotonic()
        for due, ask in [each for each in late if each[0] < now]:
            ask.cancelled = False
            ask.reply([Answer(name, "deny", "too late")])
            late.remove((due, ask))
"""


class Mortal:
    """A decider in a process that is started again whenever it ends."""

    def __init__(self, bus: str, name: str, end: str) -> None:
        self.deaths = 0
        self._command = [sys.executable, "-P", "-c", DECIDER, bus, name]
        self._end = end
        self._stop = False
        self._process = self._start()
        self._thread = threading.Thread(target=self._nurse)
        self._thread.start()

    def stop(self) -> None:
        """End it for good."""
        self._stop = True
        self._process.kill()
        self._thread.join(60)

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*self._command, str(self.deaths), self._end], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def _nurse(self) -> None:
        while True:
            with self._process as process:
                process.wait()
            if self._stop:
                return
            self.deaths += 1
            self._process = self._start()
            if self._stop:  # told so while it was started
                self._process.kill()


@contextmanager
def mortals(bus: str) -> Iterator[list[Mortal]]:
    """Three deciders: two that crash now and then, one that never does."""
    made = [Mortal(bus, name, end) for name, end in (("a", "dies"), ("b", "dies"), ("c", "stays"))]
    try:
        yield made
    finally:
        for each in made:
            each.stop()


def status(bus: str) -> dict[str, Any]:
    """What the broker knows."""
    with Tool("test", runtime_dir=bus, timeout=20.0) as tool:
        found: dict[str, Any] = tool.request("status").body["status"]
        return found


def memory_kib(pid: int) -> int:
    """Resident memory of a process."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0])


async def ask_all(bus: str, count: int, ended: Counter[int], silences: Counter[str]) -> None:
    """Ask ``count`` times with 64 under way; some tasks lose patience before their time."""
    rng = random.Random(count)
    left = iter(range(count))

    async def worker(agents: aio.Publisher) -> None:
        for number in left:
            ask = agents.ask(TOPIC, {"tool": "t", "arguments": {"n": number}}, timeout=TIMEOUT_S)
            if rng.random() < 0.01:
                task = asyncio.ensure_future(ask)
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                ended[number] += 1
                continue
            try:
                decision = await ask
            except RequestTimeout:  # the machine is so busy that the broker itself was late
                ended[number] += 1
                silences["no word"] += 1
                continue
            ended[number] += 1
            assert decision.verdict in ("none", "allow"), decision
            for heard in decision.heard:
                silences[heard.silence or "answered"] += 1
                assert all(answer.reason == str(number) for answer in heard.answers), decision

    async with aio.Publisher("chaos", runtime_dir=bus, on_absent="raise") as agents:
        await asyncio.gather(*(worker(agents) for _ in range(IN_FLIGHT)))


def test_every_ask_ends_exactly_once_whatever_its_deciders_do(runtime_dir: Path) -> None:
    """None is answered twice, with another's answer or not at all, and the broker forgets them all."""
    with running_broker(runtime_dir) as bus, mortals(bus) as deciders:
        ended: Counter[int] = Counter()
        silences: Counter[str] = Counter()
        asyncio.run(ask_all(bus, ASKS // 4, ended, silences))
        pid = status(bus)["broker"]["pid"]
        before = memory_kib(pid)
        ended.clear()
        asyncio.run(ask_all(bus, ASKS, ended, silences))
        assert ended == Counter(range(ASKS))
        assert silences["answered"] > ASKS
        assert all(silences[each] for each in ("timeout", "failed"))
        until(lambda: status(bus)["asks"]["under_way"] == 0, "no ask under way")
        asks = status(bus)["asks"]
        assert asks["asked"] == asks["answered"] + asks["cancelled"]
        until(lambda: status(bus)["asks"]["late"] > 0, "an answer that nobody waited for was counted")
        assert memory_kib(pid) - before < 20_000
        print(f"{ASKS} asks; {dict(silences)}; deaths {[each.deaths for each in deciders]}; {asks}")
