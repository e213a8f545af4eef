"""Components for tests: text with a given body of on-event, and a host that keeps what it was told."""

from __future__ import annotations

from collections.abc import Mapping

from subscribers.runtimes.wasm_imports import Refused

IMPORTS = """
  (import "prx:host/log@0.1.0" (instance $log
    (type $names (enum "trace" "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $names)))
    (export "log" (func (param "level" $level) (param "message" string)))))
  (import "prx:host/config" (instance $config
    (export "get" (func (param "key" string) (result (option string))))
    (export "get-all" (func (result (list (tuple string string)))))))
  (import "prx:host/kv@0.1.0" (instance $kv
    (export "get" (func (param "key" string) (result (option (list u8)))))
    (export "set" (func (param "key" string) (param "value" (list u8)) (result (result (error string)))))
    (export "delete" (func (param "key" string) (result (result bool (error string)))))
    (export "list-keys" (func (param "prefix" string) (result (list string))))))
  (import "prx:host/events@0.1.0" (instance $events
    (export "publish" (func (param "topic" string) (param "payload" string) (result (result (error string)))))
    (export "subscribe" (func (param "pattern" string) (result (result u64 (error string)))))
    (export "unsubscribe" (func (param "id" u64) (result (result (error string)))))))
"""

LOWERED = (
    ("log", "log", "i32 i32 i32"),
    ("config", "get", "i32 i32 i32"),
    ("config", "get-all", "i32"),
    ("kv", "get", "i32 i32 i32"),
    ("kv", "set", "i32 i32 i32 i32 i32"),
    ("kv", "delete", "i32 i32 i32"),
    ("kv", "list-keys", "i32 i32 i32"),
    ("events", "publish", "i32 i32 i32 i32 i32"),
    ("events", "subscribe", "i32 i32 i32"),
    ("events", "unsubscribe", "i64 i32"),
)
"""Every host function with the parameters of its lowered form; the last one is where the result goes."""

ON_EVENT = '(param "event" string) (param "payload-json" string) (result (result (error string)))'

OK = "(i32.store8 (i32.const 16) (i32.const 0)) (i32.const 16)"
"""Success."""

ECHO = """
  (i32.store8 (i32.const 16) (i32.const 1))
  (i32.store (i32.const 20) (local.get $p)) (i32.store (i32.const 24) (local.get $pl)) (i32.const 16)
"""
"""The payload as error."""

TRAP = "unreachable"
LOOP = "(loop $ever (br $ever)) unreachable"

BOMB = (
    """
  (loop $more (if (i32.ne (memory.grow (i32.const 16)) (i32.const -1)) (then (br $more))))
  (local.set $p (call $number (memory.size))) (local.set $pl (i32.const 8))
"""
    + ECHO
)
"""Takes all memory that it gets, and tells in eight digits how many pages of 64 KiB that is."""


def component(body: str, *, exported: str = "hooks", data: str = "", start: str = "") -> str:
    """Text of a component whose on-event is ``body``: an i32, from $e, $el (event), $p, $pl (payload).

    ``data`` is a text at 512. ``start`` runs when an instance is made. Every host function is there as
    ``$interface-function``; results go to 64.
    """
    core = "".join(
        f'(core func ${kind}-{name} (canon lower (func ${kind} "{name}")'
        ' (memory (core memory $heap "memory")) (realloc (core func $heap "realloc"))))\n'
        for kind, name, _ in LOWERED
    )
    wanted = "".join(
        f'(import "host" "{kind}-{name}" (func ${kind}-{name} (param {parameters})))\n'
        for kind, name, parameters in LOWERED
    )
    given = "".join(f'(export "{kind}-{name}" (func ${kind}-{name}))' for kind, name, _ in LOWERED)
    return f"""(component {IMPORTS}
  (core module $heap
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (loop $grow (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))) (then
        (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable)) (br $grow))))
      (local.get $at))
    (func (export "forget") (param i32) (global.set $next (i32.const 4096))))
  (core instance $heap (instantiate $heap))
  {core}
  (core module $plugin
    (import "heap" "memory" (memory 1))
    {wanted}
    (data (i32.const 512) "{data}")
    (func $number (param $n i32) (result i32) (local $at i32)
      (local.set $at (i32.const 40))
      (loop $digit
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
        (local.set $n (i32.div_u (local.get $n) (i32.const 10)))
        (br_if $digit (i32.gt_u (local.get $at) (i32.const 32))))
      (i32.const 32))
    (global $calls (mut i32) (i32.const 0))
    (func $start {start})
    (start $start)
    (func (export "on-event") (param $e i32) (param $el i32) (param $p i32) (param $pl i32) (result i32)
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      {body}))
  (core instance $plugin (instantiate $plugin
    (with "heap" (instance $heap)) (with "host" (instance {given}))))
  (func $on-event {ON_EVENT}
    (canon lift (core func $plugin "on-event") (memory (core memory $heap "memory"))
      (realloc (core func $heap "realloc")) (post-return (core func $heap "forget"))))
  (instance $hooks (export "on-event" (func $on-event)))
  (export "{exported}" (instance $hooks)))
"""


class Recorder:
    """A host that keeps what it is told and gives what it has."""

    def __init__(self, **settings: str) -> None:
        self.lines: list[tuple[str, str]] = []
        self.published: list[tuple[str, str]] = []
        self.subscribed: dict[int, str] = {}
        self.kept: dict[str, bytes] = {}
        self.settings = settings
        self.output = b""

    def log(self, level: str, message: str) -> None:
        self.lines.append((level, message))

    def config(self) -> Mapping[str, str]:
        return self.settings

    def kv_get(self, key: str) -> bytes | None:
        return self.kept.get(key)

    def kv_set(self, key: str, value: bytes) -> None:
        if key == "full":
            raise Refused("no room")
        if key == "broken":
            raise OSError("the disk is gone")
        self.kept[key] = value

    def kv_delete(self, key: str) -> bool:
        if key == "full":
            raise Refused("not now")
        return self.kept.pop(key, None) is not None

    def kv_keys(self, prefix: str) -> list[str]:
        if prefix == "broken":
            raise OSError("the disk is gone")
        return sorted(key for key in self.kept if key.startswith(prefix))

    def publish(self, topic: str, payload: str) -> None:
        if topic == "bad":
            raise Refused("no topic")
        self.published.append((topic, payload))

    def subscribe(self, pattern: str) -> int:
        if pattern == "bad":
            raise Refused("no pattern")
        self.subscribed[len(self.subscribed) + 1] = pattern
        return len(self.subscribed)

    def unsubscribe(self, number: int) -> None:
        if self.subscribed.pop(number, None) is None:
            raise Refused("no such subscription")

    def wrote(self, data: bytes) -> None:
        self.output += data
