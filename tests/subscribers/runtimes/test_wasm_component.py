"""What is a plugin's component, what is not, and what is said about that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

import wasmtime

from subscribers.runtimes import wasm_types
from subscribers.runtimes.wasm_component import BadComponent, Compiled, compile_component
from subscribers.runtimes.wasm_engine import prepare_cache
from tests.integration.waiting import until
from tests.subscribers.runtimes.guests import OK, component

ROOT = Path(__file__).parents[3]
WIT = ROOT / "subscribers" / "runtimes" / "wit" / "prx-hook.wit"


def compiled(code: bytes | str, *, wasi: bool = False, cache: str | None = None) -> Compiled:
    """The component of this text or these bytes."""
    return compile_component(
        code.encode() if isinstance(code, str) else code, fuel=False, cache=cache, wasi=wasi
    )


@pytest.mark.parametrize(
    "name",
    [
        "hooks",
        "prx:plugin/hook-exports",
        "prx:plugin/hook-exports@0.1.0",
        "prx:plugin/hook-exports@1.2.3",
        "prx:plugin/hooks",
        "acme:audit/hooks@0.3.0",
    ],
)
def test_the_interface_has_one_of_two_names_with_or_without_version(name: str) -> None:
    """The page's name and PRX's own, in any version."""
    assert compiled(component(OK, exported=name)).exported == name


def test_text_and_binary_are_the_same_component() -> None:
    """What wasmtime makes of the text is accepted as bytes."""
    text = component(OK)
    assert compiled(bytes(wasmtime.wat2wasm(text))).imports == compiled(text).imports


HOOKS_OF = """(component (core module $m (memory (export "m") 1) (func (export "f") (param i32 i32 i32 i32)
  (result i32) (i32.const 0)) (func (export "r") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
  (core instance $i (instantiate $m))
  (func $f (param "a" string) (param "b" string) (result RESULT)
    (canon lift (core func $i "f") (memory (core memory $i "m")) (realloc (core func $i "r"))))
  (instance $x (export "NAME" (func $f))) (export "INTERFACE" (instance $x)))"""


def hooks_of(
    interface: str = "hooks", name: str = "on-event", result: str = "(result (error string))"
) -> str:
    """A component with one exported function."""
    return HOOKS_OF.replace("INTERFACE", interface).replace("NAME", name).replace("RESULT", result)


IMPORTING = '(component (import "{}" (instance (export "{}" (func {})))))'


@pytest.mark.parametrize(
    "code,message,hint",
    [
        (b"\0asm\x01\0\0\0", "core module", "wasm-tools component new"),
        ("(module)", "cannot be compiled", None),
        ("(component", "cannot be compiled", None),
        (b"\0asm\x0d\0\x01\0\xff\xff", "cannot be compiled", None),
        (b"\xff\xfe", "neither WebAssembly nor its text", None),
        (b"", "empty", None),
        ("(component)", "exports nothing", "on-event"),
        (hooks_of(interface="tools"), "exports tools", "on-event"),
        (hooks_of(name="on-events"), "no function on-event", None),
        (hooks_of(result="string"), "its on-event is func", None),
        (IMPORTING.format("prx:host/http@0.1.0", "get", ""), "prx:host/http@0.1.0", "log, config, kv"),
        (IMPORTING.format("prx:host/kv@0.1.0", "put", ""), "imports put of prx:host/kv@0.1.0", None),
        (
            IMPORTING.format("prx:host/log", "log", '(param "level" string) (param "message" string)'),
            "as func(level: string, message: string), but it is func(level: enum {trace, debug,",
            None,
        ),
        (IMPORTING.format("wasi:cli/exit@0.2.0", "exit", ""), "WASI is not granted", "--stub-wasi"),
        (
            IMPORTING.format("wasi:cli/exit@0.2.0", "exit", ""),
            "WASI is not granted",
            "the setting wasm.allow",
        ),
        ('(component (import "f" (func)))', "imports f", None),
    ],
)
def test_what_is_no_plugin_is_said_before_it_runs(code: bytes | str, message: str, hint: str | None) -> None:
    """Each kind of mistake has its sentence, and where there is something to do, the hint."""
    with pytest.raises(BadComponent, match=re.escape(message)) as caught:
        compiled(code)
    assert hint is None or hint in (caught.value.hint or "")


def test_http_needs_the_network_and_not_wasi_alone() -> None:
    """Without the network it is refused before it runs, for no call of it could begin."""
    http = IMPORTING.format("wasi:http/outgoing-handler@0.2.0", "handle", "")
    with pytest.raises(BadComponent, match="the network is not granted") as caught:
        compile_component(http.encode(), fuel=False, cache=None, wasi=True)
    assert "the setting wasm.allow" in (caught.value.hint or "")
    with pytest.raises(BadComponent, match="it exports nothing"):
        compile_component(http.encode(), fuel=False, cache=None, wasi=True, network=True)


def test_a_type_that_is_not_in_the_interface_is_named() -> None:
    """Whatever a component imports under our names, the sentence says what it is."""
    kinds = ["bool", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f32", "f64", "char"]
    parameters = " ".join(f'(param "p{index}" {kind})' for index, kind in enumerate(kinds))
    wanted = ", ".join(f"p{index}: {kind}" for index, kind in enumerate(kinds))
    with pytest.raises(BadComponent, match=re.escape(f"as func({wanted}) -> list<tuple<u8, option<u8>>>")):
        compiled(
            IMPORTING.format("prx:host/kv", "get", f"{parameters} (result (list (tuple u8 (option u8))))")
        )
    record = (
        '(component (import "prx:host/kv" (instance (type $r (record (field "a" u8)))'
        ' (export "r" (type $t (eq $r))) (export "get" (func (param "key" $t))))))'
    )
    with pytest.raises(BadComponent, match=re.escape("as func(key: record), but")):
        compiled(record)


def test_the_interface_in_words_is_the_interface_in_the_file() -> None:
    """Every function of the WIT file is in the table with the same type, and no other."""
    text = re.sub(r"//.*", "", WIT.read_text())
    in_file: dict[str, dict[str, str]] = {}
    for name, body in re.findall(r"interface ([a-z-]+) \{\n(.*?)\n\s*\}", text, re.DOTALL):
        enums = {
            kind: f"enum {{{names.strip()}}}" for kind, names in re.findall(r"enum (\S+) \{(.*?)\}", body)
        }
        for function, type_ in re.findall(r"([a-z-]+): (func[^;]*);", body):
            for kind, words in enums.items():
                type_ = type_.replace(f": {kind}", f": {words}")
            in_file.setdefault(name, {})[function] = type_
    assert in_file.pop("hook-exports") == {"on-event": wasm_types.ON_EVENT}
    assert in_file == {name: dict(functions) for name, functions in wasm_types.HOST.items()}
    assert text.count(wasm_types.ON_EVENT) == 2


def test_compiled_code_is_kept(tmp_path: Path) -> None:
    """A component that was compiled once is taken from the cache, as the cache's own count of uses says."""
    cache = prepare_cache(str(tmp_path / "cache"))

    def uses() -> list[str]:
        counts = (tmp_path / "cache" / "code").rglob("*.stats")
        return [line for path in counts for line in path.read_text().splitlines() if "usages" in line]

    compiled(component(OK), cache=cache)
    until(lambda: uses() == ["usages = 1"], "the first use, by whoever stored it")
    assert compiled(component(OK), cache=cache).exported == "hooks"
    until(lambda: uses() == ["usages = 2"], "the second use")


def test_a_cache_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """Compiled code is run as it is, so its folder has to be this user's alone."""
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="this user alone"):
        prepare_cache(str(directory))
