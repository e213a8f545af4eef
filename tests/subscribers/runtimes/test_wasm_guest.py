"""Components at work: what a call can end with, and what it cannot do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from subscribers.runtimes.deadlines import Deadline, Deadlines
from subscribers.runtimes.wasm_component import compile_component
from subscribers.runtimes.wasm_guest import REASON_CHARACTERS, CallLimits, Guest, Wasi
from subscribers.runtimes.wasm_keys import VALUE_BYTES
from tests.integration.waiting import until
from tests.subscribers.runtimes.guests import BOMB, ECHO, LOOP, OK, TRAP, Recorder, component

MAX_MEMORY = 4 << 20


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    """A clock for the guests of a test."""
    watching = Deadlines(stuck_s=0.2)
    yield watching
    watching.close()


Make = Callable[..., Guest]


@pytest.fixture
def make(deadlines: Deadlines) -> Make:
    """Makes a guest from the text of its component."""

    def made(
        text: str, host: Recorder | None = None, *, seconds: float = 30.0, fuel: int | None = None
    ) -> Guest:
        compiled = compile_component(text.encode(), fuel=fuel is not None, cache=None, wasi=False)
        limits = CallLimits(MAX_MEMORY, seconds, fuel)
        return Guest(compiled, host or Recorder(), limits, deadlines)

    return made


def test_success_and_the_plugins_own_error_keep_the_instance(make: Make) -> None:
    """An error is the reason of a failed call, and the next call finds the instance as it was."""
    guest = make(component(f"(if (result i32) (local.get $pl) (then {ECHO}) (else {OK}))"))
    good = guest.call("tool_call", "")
    assert (good.status, good.exit_code, good.reason) == ("ok", None, None)
    bad = guest.call("tool_call", "schön daneben \U0001f600")
    assert (bad.status, bad.reason) == ("failed", "schön daneben \U0001f600")
    assert guest.call("tool_call", "").status == "ok"
    assert guest.instances == 1


def test_after_a_trap_the_next_call_gets_a_fresh_instance(make: Make) -> None:
    """A trap is a failed call; what the instance had in memory is gone with it."""
    counting = f"""(if (i32.eq (local.get $pl) (i32.const 4)) (then {TRAP}))
      (local.set $p (call $number (global.get $calls))) (local.set $pl (i32.const 8)) {ECHO}"""
    guest = make(component(counting))
    assert [guest.call("e", "").reason for _ in range(2)] == ["00000001", "00000002"]
    trapped = guest.call("e", "trap")
    assert trapped.status == "failed"
    assert trapped.reason is not None
    assert trapped.reason.startswith("trap: ")
    assert "unreachable" in trapped.reason
    assert guest.call("e", "").reason == "00000001"
    assert guest.instances == 2


def test_an_endless_loop_ends_at_the_deadline(make: Make) -> None:
    """The call is a timeout that names the limit, on time, and the next one works."""
    guest = make(component(f"(if (local.get $pl) (then {LOOP})) {OK}"), seconds=0.2)
    outcome = guest.call("e", "loop")
    assert outcome.status == "timeout"
    assert outcome.reason == "it ran for 0.2 s (max_execution_time_ms)"
    assert 0.2 <= outcome.duration_s < 5.0
    assert guest.call("e", "").status == "ok"


def test_an_endless_start_ends_at_the_deadline_too(make: Make) -> None:
    """Making an instance counts into the call's time."""
    assert make(component(OK, start="(loop $ever (br $ever))"), seconds=0.2).call("e", "").status == "timeout"


def test_the_deadline_is_each_calls_own(make: Make) -> None:
    """Many calls that together take longer than the limit are all good."""
    spin = f"""(local.set $p (i32.const 3000000))
      (loop $l (local.set $p (i32.sub (local.get $p) (i32.const 1))) (br_if $l (local.get $p))) {OK}"""
    guest = make(component(spin), seconds=1.0)
    began = time.monotonic()
    while time.monotonic() - began < 1.5:
        assert guest.call("e", "").status == "ok"
    assert guest.instances == 1


def test_memory_ends_at_the_limit(make: Make) -> None:
    """A component that takes what it gets has no more than its limit; one that wants more fails."""
    reason = make(component(BOMB)).call("e", "").reason
    assert reason is not None
    assert 0 < int(reason) * 65_536 <= MAX_MEMORY
    too_large = make(component(OK)).call("e", "x" * MAX_MEMORY)
    assert too_large.status == "failed"
    big = component(OK).replace('(memory (export "memory") 1)', '(memory (export "memory") 100)')
    outcome = make(big).call("e", "")
    assert outcome.status == "failed"
    assert "memory" in (outcome.reason or "")


def test_a_second_memory_is_refused(make: Make) -> None:
    """The limit is for all memories together, so there may be one."""
    second = component(OK).replace(
        "(core instance $heap (in",
        "(core module $m (memory 1)) (core instance (instantiate $m)) (core instance $heap (in",
    )
    outcome = make(second).call("e", "")
    assert outcome.status == "failed"
    assert "memor" in (outcome.reason or "")


def test_fuel_is_counted_only_if_set_and_for_each_call(make: Make) -> None:
    """A call that uses up its fuel fails and says so; the next one has all of it again."""
    text = component(f"(if (local.get $pl) (then {LOOP})) {OK}")
    guest = make(text, fuel=200_000)
    for _ in range(3):
        assert guest.call("e", "loop").reason == "it used up its fuel of 200000 (max_fuel)"
        assert [guest.call("e", "").status for _ in range(200)] == ["ok"] * 200


def test_every_host_function_in_the_canonical_abi(make: Make) -> None:
    """What the component sends and gets is what the host gets and gives, results and refusals included."""
    host = Recorder(topic="prx.x")
    host.kept["k"] = bytes(range(256))
    words = "k|full|bad|topic|a.b|{}"
    at = {word: 512 + words.index(word) for word in words.split("|")}

    def text(word: str) -> str:
        return f"(i32.const {at[word]}) (i32.const {len(word)})"

    result = "(i32.const 64)"
    get = f"(call $kv-get {text('k')} {result})"
    value = "(i32.load (i32.const 68)) (i32.load (i32.const 72))"
    both = f"(call $config-get {text('topic')} {result}) (call $log-log (i32.const 4) {value})"
    calls = {
        "log": f"(call $log-log (i32.const 0) {text('topic')}) {OK}",
        "config": f"{both} {OK}",
        "keep": f"{get} (call $kv-set {text('topic')} {value} {result}) {result}",
        "full": f"(call $kv-set {text('full')} {text('k')} {result}) {result}",
        "keys": f"(call $kv-list-keys {text('k')} {result})"
        " (local.set $p (i32.load (i32.load (i32.const 64))))"
        f" (local.set $pl (i32.load offset=4 (i32.load (i32.const 64)))) {ECHO}",
        "delete": f"(call $kv-delete {text('k')} {result}) (local.set $p (call $number"
        f" (i32.load8_u (i32.const 68)))) (local.set $pl (i32.const 8)) {ECHO}",
        "refused": f"(call $kv-delete {text('full')} {result}) {result}",
        "publish": f"(call $events-publish {text('a.b')} {text('{}')} {result}) {result}",
        "badly": f"(call $events-publish {text('bad')} {text('{}')} {result}) {result}",
        "subscribe": f"(call $events-subscribe {text('a.b')} {result}) (local.set $p (call $number"
        f" (i32.wrap_i64 (i64.load (i32.const 72))))) (local.set $pl (i32.const 8)) {ECHO}",
        "unsubscribe": f"(call $events-unsubscribe (i64.const 1) {result}) {result}",
    }
    said = {
        name: make(component(body, data=words), host).call("e", "").reason for name, body in calls.items()
    }
    assert said == {
        "log": None,
        "config": None,
        "keep": None,
        "full": "no room",
        "keys": "k",
        "delete": "00000001",
        "refused": "not now",
        "publish": None,
        "badly": "no topic",
        "subscribe": "00000001",
        "unsubscribe": None,
    }
    assert host.lines == [("trace", "topic"), ("error", "prx.x")]
    assert host.kept == {"topic": bytes(range(256))}
    assert (host.published, host.subscribed) == ([("a.b", "{}")], {})


def test_a_host_that_fails_ends_the_call_and_nothing_else(make: Make) -> None:
    """The reason is in the outcome; nothing is raised here or in another guest's call."""
    store = """(call $kv-set (local.get $p) (local.get $pl) (local.get $p) (local.get $pl) (i32.const 64))
      (i32.const 64)"""
    guest = make(component(store))
    failed = guest.call("e", "broken")
    assert failed.status == "failed"
    assert "the disk is gone" in (failed.reason or "")
    assert guest.call("e", "fine").status == "ok"
    assert make(component(OK)).call("e", "").status == "ok"


def test_one_call_cannot_copy_endlessly_out_of_the_component(make: Make) -> None:
    """A list that would cost the host many times its size ends the call, not the host."""
    store = """(call $kv-set (local.get $p) (i32.const 1) (local.get $p) (local.get $pl) (i32.const 64))
      (i32.const 64)"""
    host = Recorder()
    outcome = make(component(store), host).call("e", "x" * (MAX_MEMORY - 200_000))
    assert outcome.status == "failed"
    assert host.kept == {}
    assert make(component(store), host).call("e", "x" * VALUE_BYTES).status == "ok"
    assert host.kept == {"x": b"x" * VALUE_BYTES}


def test_guests_in_many_threads_do_not_mix(make: Make) -> None:
    """Values of every kind reach the right host, whole, while other threads convert theirs."""
    body = """(call $kv-get (local.get $p) (local.get $pl) (i32.const 64))
      (call $kv-set (local.get $e) (local.get $el)
        (i32.load (i32.const 68)) (i32.load (i32.const 72)) (i32.const 64))
      (i32.const 64)"""
    hosts = [Recorder() for _ in range(6)]
    for number, host in enumerate(hosts):
        host.kept["own"] = bytes([number]) * (3_000 * number)
    guests = [make(component(body), host) for host in hosts]

    def work(number: int) -> set[str | None]:
        said = set()
        for turn in range(150):
            said.add(guests[number].call("copy", "own").reason)
            said.add(guests[number].call("full", "own").reason if turn % 2 else "no room")
        return said

    with ThreadPoolExecutor(len(guests)) as pool:
        assert list(pool.map(work, range(len(guests)))) == [{None, "no room"}] * len(guests)
    for number, host in enumerate(hosts):
        assert host.kept["copy"] == bytes([number]) * (3_000 * number)


def test_a_slow_guest_does_not_hold_up_another(make: Make) -> None:
    """While one spins in its call, calls of another go on at their usual pace."""
    slow, fast = make(component(LOOP), seconds=1.0), make(component(OK))
    fast.call("e", "")
    thread = threading.Thread(target=slow.call, args=("e", ""))
    thread.start()
    calls = 0
    while thread.is_alive():
        assert fast.call("e", "").status == "ok"
        calls += 1
    thread.join()
    assert calls > 100


def test_a_call_can_be_ended_early(make: Make) -> None:
    """An interrupted call is a timeout that says why, and so is one that begins only then."""
    guest = make(component(LOOP))
    threading.Timer(0.1, guest.interrupt).start()
    for _ in range(2):
        outcome = guest.call("e", "loop")
        assert (outcome.status, outcome.reason) == (
            "timeout",
            "it was ended early: the plugin is no longer needed",
        )


class Late(Deadlines):
    """Deadlines that are over, and done with, when :meth:`arm` returns."""

    def arm(
        self, seconds: float, on_due: Callable[[], None], on_stuck: Callable[[], None] | None = None
    ) -> Deadline:
        deadline = super().arm(0.0, on_due, on_stuck)
        until(lambda: deadline.passed, "the deadline")
        on_due()  # again, after the thread's own call: now it is certain that it came before the call began
        return deadline


@pytest.mark.parametrize("text", [component(LOOP), component(OK, start="(loop $ever (br $ever))")])
def test_a_time_that_is_over_before_the_component_begins_ends_the_call(make: Make, text: str) -> None:
    """Whatever took it, a fresh instance or a warm one is not left to run without an end."""
    guest = make(text)
    late = Late(stuck_s=60.0)
    guest._deadlines = late
    for _ in range(2):
        assert guest.call("e", "x").status == "timeout"
    late.close()


def test_a_warm_instance_is_not_left_to_run_without_an_end(make: Make) -> None:
    """A time that is over at once ends its call too."""
    guest = make(component(f"(if (local.get $pl) (then {LOOP})) {OK}"))
    assert guest.call("e", "").status == "ok"
    late = Late(stuck_s=60.0)
    guest._deadlines = late
    assert guest.call("e", "x").status == "timeout"
    late.close()


def test_a_fresh_instance_shares_the_fuel_of_its_call(make: Make) -> None:
    """What making it used up is not given again: the limit is one for the whole call."""
    spin = """(local $n i32) (local.set $n (i32.const 10000))
      (loop $l (local.set $n (i32.sub (local.get $n) (i32.const 1))) (br_if $l (local.get $n)))"""
    body = f"""(local.set $p (i32.const 10000))
      (loop $l (local.set $p (i32.sub (local.get $p) (i32.const 1))) (br_if $l (local.get $p))) {OK}"""
    text = component(body, start=spin)
    assert make(text, fuel=200_000).call("e", "").status == "ok"
    assert "max_fuel" in (make(text, fuel=75_000).call("e", "").reason or "")
    assert make(component(body), fuel=75_000).call("e", "").status == "ok"


def test_a_plugins_error_of_any_size_is_a_short_reason(make: Make) -> None:
    """A plugin can fill neither the bus nor the log with its errors."""
    outcome = make(component(ECHO)).call("e", "x" * 1_000_000)
    assert outcome.reason == "x" * (REASON_CHARACTERS - 3) + "..."


@pytest.mark.parametrize("tables,elements,good", [(8, 50_000, True), (11, 1, False), (1, 60_000, False)])
def test_tables_are_held_to_the_memory_limit_too(make: Make, tables: int, elements: int, good: bool) -> None:
    """All together they take as much again at most; more of them, or larger ones, make no instance."""
    declared = f"(table {elements} funcref)" * tables
    text = component(OK).replace(
        "(core instance $heap (in",
        f"(core module $m {declared}) (core instance (instantiate $m)) (core instance $heap (in",
    )
    outcome = make(text).call("e", "")
    assert (outcome.status == "ok") == good
    assert good or "table" in (outcome.reason or "")


SLEEPER = """(component
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (alias outer 1 $pollable (type $outer))
    (export "pollable" (type $pollable' (eq $outer)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable'))))))
  (core module $heap (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096)))
  (core instance $heap (instantiate $heap))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $after (canon lower (func $clock "subscribe-duration")))
  (core module $plugin
    (import "host" "block" (func $block (param i32)))
    (import "host" "after" (func $after (param i64) (result i32)))
    (import "heap" "memory" (memory 1))
    (func (export "on-event") (param i32 i32 i32) (param $pl i32) (result i32)
      (if (local.get $pl) (then (call $block (call $after (i64.const 1500000000)))))
      (i32.const 16)))
  (core instance $plugin (instantiate $plugin (with "heap" (instance $heap))
    (with "host" (instance (export "block" (func $block)) (export "after" (func $after))))))
  (func $on-event (param "event" string) (param "payload-json" string) (result (result (error string)))
    (canon lift (core func $plugin "on-event") (memory (core memory $heap "memory"))
      (realloc (core func $heap "realloc"))))
  (instance $hooks (export "on-event" (func $on-event)))
  (export "hooks" (instance $hooks)))
"""


@pytest.mark.may_leak("WASI has a runtime of its own, once a process")
def test_a_call_that_sleeps_in_the_host_is_noticed(deadlines: Deadlines) -> None:
    """A function of WASI cannot be interrupted: somebody is told while the call goes on."""
    compiled = compile_component(SLEEPER.encode(), fuel=False, cache=None, wasi=True)
    assert compiled.wants_wasi
    guest = Guest(
        compiled, Recorder(), CallLimits(MAX_MEMORY, 0.1, None), deadlines, wasi=Wasi((), network=False)
    )
    assert guest.call("e", "").status == "ok"
    stuck = threading.Event()
    outcome = guest.call("e", "sleep", stuck.set)
    assert stuck.is_set()
    assert outcome.status == "timeout"
    assert outcome.duration_s >= 1.0
    assert guest.call("e", "").status == "ok"
    assert guest.instances == 2


FOLDERS = """(component
  (import "wasi:filesystem/types@0.2.0" (instance $types
    (export "descriptor" (type $descriptor (sub resource)))))
  (alias export $types "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (alias outer 1 $descriptor (type $outer))
    (export "descriptor" (type $descriptor' (eq $outer)))
    (export "get-directories" (func (result (list (tuple (own $descriptor') string)))))))
  (core module $heap (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (local.get $at)))
  (core instance $heap (instantiate $heap))
  (core func $folders (canon lower (func $preopens "get-directories") (memory (core memory $heap "memory"))
    (realloc (core func $heap "realloc"))))
  (core module $plugin
    (import "host" "folders" (func $folders (param i32)))
    (import "heap" "memory" (memory 1))
    (func (export "on-event") (param i32 i32 i32 i32) (result i32)
      (call $folders (i32.const 64))
      (if (i32.load (i32.const 68)) (then
        (i32.store8 (i32.const 16) (i32.const 1))
        (i32.store (i32.const 20) (i32.load offset=4 (i32.load (i32.const 64))))
        (i32.store (i32.const 24) (i32.load offset=8 (i32.load (i32.const 64))))))
      (i32.const 16)))
  (core instance $plugin (instantiate $plugin (with "heap" (instance $heap))
    (with "host" (instance (export "folders" (func $folders))))))
  (func $on-event (param "event" string) (param "payload-json" string) (result (result (error string)))
    (canon lift (core func $plugin "on-event") (memory (core memory $heap "memory"))
      (realloc (core func $heap "realloc"))))
  (instance $hooks (export "on-event" (func $on-event)))
  (export "hooks" (instance $hooks)))
"""
"""Gives the name of the first folder that it finds open as its error."""


@pytest.mark.may_leak("WASI has a runtime of its own, once a process")
def test_wasi_opens_the_folders_that_were_granted_and_no_other(deadlines: Deadlines, tmp_path: Path) -> None:
    """With folders the component finds them under their own names; without any it finds none."""
    compiled = compile_component(FOLDERS.encode(), fuel=False, cache=None, wasi=True)
    said = []
    for folders in ((), ((str(tmp_path), "data"),)):
        limits = CallLimits(MAX_MEMORY, 30.0, None)
        guest = Guest(compiled, Recorder(), limits, deadlines, wasi=Wasi(folders, network=False))
        said.append(guest.call("e", "").reason)
    assert said == [None, "data"]
