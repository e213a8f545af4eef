"""A plugin's manifest: what it says, and what is said about one that is wrong."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import prx_plugin
from subscribers.dialects import prx_plugin_rules as rules
from subscribers.dialects.findings import MAX_DIAGNOSTICS
from subscribers.dialects.prx_plugin import Manifest, ParsedManifest, parse
from subscribers.dialects.toml_text import MAX_KEY_PARTS

HOOK = '[[capabilities]]\ntype = "hook"\nevents = ["tool_call"]\n'
PLUGIN = '[plugin]\nname = "audit"\nversion = "1.0"\n'
KNOWN = ("session_start", "tool_result")


def read(text: str) -> ParsedManifest:
    """The manifest of this text, and what is said about it."""
    return parse(text.encode(), "plugin.toml", KNOWN)


def good(text: str) -> Manifest:
    """The manifest of a text that can be run."""
    parsed = read(text)
    assert parsed.manifest is not None, parsed.diagnostics
    return parsed.manifest


def said(text: str) -> list[tuple[str, str | None]]:
    """Code and field of everything that is said about a text."""
    return [(diagnostic.code, diagnostic.field) for diagnostic in read(text).diagnostics]


def test_a_manifest_of_the_pages_shape_is_read_without_a_word() -> None:
    """Several hook blocks without names: the union of their events, and the documented defaults."""
    text = (
        PLUGIN
        + 'description = "tells everything"\n'
        + HOOK
        + '[[capabilities]]\ntype = "hook"\nevents = ["prx.lifecycle.*"]\n'
    )
    parsed = read(text)
    assert parsed.diagnostics == ()
    manifest = parsed.manifest
    assert manifest is not None
    assert (manifest.name, manifest.version, manifest.description) == ("audit", "1.0", "tells everything")
    assert manifest.events.match("anything_else")
    assert manifest.wasm == "plugin.wasm"
    assert (manifest.max_memory_mb, manifest.max_execution_time_ms, manifest.max_fuel) == (64, 30_000, None)
    assert (manifest.max_kv_storage_mb, manifest.required, manifest.optional) == (10, (), ())
    assert (manifest.folders, manifest.config) == ((), {})


def test_every_key_has_its_effect() -> None:
    """What a manifest sets is what the plugin gets, permissions that everybody has left out."""
    manifest = good(
        PLUGIN
        + 'wasm = "build/audit.wat"\napi_version = "1"\nauthor = "me"\nlicense = "MIT"\n'
        + '[[capabilities]]\ntype = "hook"\nname = "x"\ndescription = "d"\npriority = 1\n'
        + 'events = ["tool_call", "prx.lifecycle.error", "agent-start"]\n'
        + "[resources]\nmax_memory_mb = 8\nmax_execution_time_ms = 250\nmax_fuel = 1000\n"
        + "max_kv_storage_mb = 1\nmax_http_requests_per_call = 3\npool_size = 2\n"
        + '[permissions]\nrequired = ["log", "kv", "filesystem"]\noptional = ["network"]\n'
        + 'filesystem_allowlist = ["data", "logs/audit"]\n'
        + '[config]\nchannel = "ops"\nlevel = 3\nrate = 0.5\nloud = true\nquiet = false\n'
    )
    assert manifest.wasm == "build/audit.wat"
    assert manifest.events.names == {"tool_call", "error", "agent_start"}
    assert not manifest.events.match("agent_end")
    assert (manifest.max_memory_mb, manifest.max_execution_time_ms, manifest.max_fuel) == (8, 250, 1000)
    assert manifest.max_kv_storage_mb == 1
    assert (manifest.required, manifest.optional) == (("filesystem",), ("network",))
    assert manifest.folders == ("data", "logs/audit")
    assert manifest.config == {
        "channel": "ops",
        "level": "3",
        "rate": "0.5",
        "loud": "true",
        "quiet": "false",
    }


@pytest.mark.parametrize(
    "text,code,field",
    [
        (HOOK, "missing_name", "plugin"),
        ("[plugin]\nname = 1\nversion = '1'\n" + HOOK, "wrong_type", "plugin.name"),
        ("[plugin]\nname = ''\nversion = '1'\n" + HOOK, "bad_name", "plugin.name"),
        ("[plugin]\nname = '../x'\nversion = '1'\n" + HOOK, "bad_name", "plugin.name"),
        (PLUGIN + "wasm = '../x.wasm'\n" + HOOK, "bad_wasm_path", "plugin.wasm"),
        (PLUGIN + "wasm = '/x.wasm'\n" + HOOK, "bad_wasm_path", "plugin.wasm"),
        (PLUGIN + "wasm = 'a\\u0000b'\n".replace("'", '"') + HOOK, "bad_wasm_path", "plugin.wasm"),
        (PLUGIN + "wasm = true\n" + HOOK, "wrong_type", "plugin.wasm"),
        ("plugin = 3\n" + HOOK, "wrong_type", "plugin"),
        (PLUGIN, "no_hook", "capabilities"),
        ("capabilities = 1\n" + PLUGIN, "wrong_type", "capabilities"),
        ("capabilities = [1]\n" + PLUGIN, "wrong_type", "capabilities[0]"),
        (PLUGIN + "[[capabilities]]\nevents = ['error']\n", "missing_type", "capabilities[0]"),
        (PLUGIN + "[[capabilities]]\ntype = 1\nevents = ['error']\n", "wrong_type", "capabilities[0].type"),
        (PLUGIN + "[[capabilities]]\ntype = 'hook'\n", "missing_events", "capabilities[0]"),
        (
            PLUGIN + "[[capabilities]]\ntype = 'hook'\nevents = 'error'\n",
            "wrong_type",
            "capabilities[0].events",
        ),
        (
            PLUGIN + HOOK + "[permissions]\nrequired = ['sudo']\n",
            "unknown_permission",
            "permissions.required[0]",
        ),
    ],
)
def test_a_manifest_from_which_nothing_can_run_is_refused(text: str, code: str, field: str) -> None:
    """Name, component, hook and required permissions must be there; the diagnostic names the place."""
    parsed = read(text)
    assert parsed.manifest is None
    assert (code, field) in said(text)


@pytest.mark.parametrize(
    "addition,code,field",
    [
        ("[resources]\nmax_memory_mb = 0\n", "out_of_range", "resources.max_memory_mb"),
        ("[resources]\nmax_memory_mb = 64.0\n", "wrong_type", "resources.max_memory_mb"),
        ("[resources]\nmax_memory_mb = true\n", "wrong_type", "resources.max_memory_mb"),
        ("[resources]\nmax_execution_time_ms = 300001\n", "out_of_range", "resources.max_execution_time_ms"),
        ("[resources]\nmax_fuel = 0\n", "out_of_range", "resources.max_fuel"),
        ("[resources]\nmax_feul = 5\n", "unknown_key", "resources.max_feul"),
        ("[resources]\nmax_kv_storage_mb = 2024-01-01\n", "wrong_type", "resources.max_kv_storage_mb"),
        ("[zzzzzz]\n", "unknown_key", "zzzzzz"),
        ("[permissions]\nrequired = 'wasi'\n", "wrong_type", "permissions.required"),
        ("[permissions]\nrequired = [1]\n", "wrong_type", "permissions.required[0]"),
        ("[permissions]\noptional = ['wasm']\n", "unknown_permission", "permissions.optional[0]"),
        ("[permissions]\noptional = ['zzzzzzzz']\n", "unknown_permission", "permissions.optional[0]"),
        (
            "[permissions]\nfilesystem_allowlist = ['../up']\n",
            "bad_folder",
            "permissions.filesystem_allowlist[0]",
        ),
        ("[permissions]\nhttp_allowlist = ['https://x']\n", "not_enforced", "permissions.http_allowlist"),
        ("[config]\nx = [1]\n", "wrong_type", "config.x"),
        ("[[capabilities]]\ntype = 'tool'\n", "other_capability", "capabilities[1].type"),
        ("[[capabilities]]\ntype = 'hooks'\n", "other_capability", "capabilities[1].type"),
        (
            "[[capabilities]]\ntype = 'hook'\nevents = ['tool_cal']\n",
            "unknown_event",
            "capabilities[1].events[0]",
        ),
        ("[[capabilities]]\ntype = 'hook'\nevent = ['error']\n", "unknown_key", "capabilities[1].event"),
    ],
)
def test_a_fault_in_one_place_leaves_the_rest_in_force(addition: str, code: str, field: str) -> None:
    """The plugin runs on what is good, with the default for what is not."""
    text = PLUGIN + HOOK + addition
    manifest = good(text)
    assert (code, field) in said(text)
    assert manifest.events.match("tool_call")
    assert (manifest.max_memory_mb, manifest.max_execution_time_ms, manifest.max_fuel) == (64, 30_000, None)


def test_a_missing_version_and_another_interface_are_remarks() -> None:
    """Neither keeps a plugin from running."""
    assert said("[plugin]\nname = 'a'\n" + HOOK) == [("missing_version", "plugin")]
    assert said(PLUGIN + "api_version = '2'\n" + HOOK) == [("api_version", "plugin.api_version")]
    assert ("wrong_type", "plugin.version") in said("[plugin]\nname = 'a'\nversion = 1\n" + HOOK)


@pytest.mark.parametrize(
    "text,line,column",
    [
        ("[plugin\n", 1, 8),
        ("a = 1\nb = \n", 2, 5),
        ("x = '''", None, None),
    ],
)
def test_a_text_that_is_no_toml_is_refused_with_its_place(
    text: str, line: int | None, column: int | None
) -> None:
    """The parser's line and column become the diagnostic's own."""
    (diagnostic,) = read(text).diagnostics
    assert (diagnostic.code, diagnostic.line, diagnostic.column) == ("not_toml", line, column)
    assert "at line" not in diagnostic.message


@pytest.mark.parametrize(
    "number", ["0x1" + "0" * 9_000, "0o1" + "0" * 9_000, "0b1" + "0" * 90_000, f"{2**63}"]
)
@pytest.mark.parametrize(
    "table,key,code",
    [
        ("plugin", "api_version", "api_version"),
        ("plugin", "name", "wrong_type"),
        ("config", "x", "wrong_type"),
        ("permissions", "required", "wrong_type"),
        *(("resources", limit.name, "out_of_range") for limit in rules.LIMITS),
    ],
)
def test_a_number_of_any_length_is_one_remark(table: str, key: str, code: str, number: str) -> None:
    """Beyond 64 bits a whole number has no value here, in whatever base it is written."""
    tables = {"plugin": {"name": "'audit'", "version": "'1'"}}
    tables.setdefault(table, {})[key] = number
    text = "".join(
        f"[{name}]\n" + "".join(f"{entry} = {value}\n" for entry, value in content.items())
        for name, content in tables.items()
    )
    assert said(text + HOOK) == [(code, f"{table}.{key}")]


@pytest.mark.parametrize("part", ["a", "'a'", '"a"', "'a.b'"])
@pytest.mark.parametrize("dot", [".", " . ", "\t."])
@pytest.mark.parametrize("shape", ["{} = 1\n", "[{}]\nx = 1\n", "[[{}]]\n", "x = {{ {} = 1 }}\n"])
def test_a_key_of_endless_parts_is_refused_before_it_is_parsed(part: str, dot: str, shape: str) -> None:
    """The parser's memory grows with the square of a key's parts."""
    most = dot.join([part] * MAX_KEY_PARTS)
    assert {code for code, _ in said(shape.format(most))} >= {"missing_name", "unknown_key"}
    (diagnostic,) = read(shape.format(f"{most}{dot}{part}")).diagnostics
    assert diagnostic.code == "not_toml"
    assert "more than 32 parts" in diagnostic.message


@pytest.mark.parametrize("quotes", ["'{}'", '"{}"', '"""\n{}"""', "'''{}\n'''", '"\\"{}"'])
def test_dots_in_strings_and_comments_are_no_keys(quotes: str) -> None:
    """What looks like a long key there is text."""
    dots = "a." * 100
    assert good(f"# {dots}\n" + PLUGIN + HOOK + f"[config]\nx = {quotes.format(dots)}\n").config
    assert read(PLUGIN + f"{dots}a = 1\n" + HOOK).manifest is None


def test_bytes_that_are_no_text_and_texts_without_end_are_refused() -> None:
    """Bad UTF-8, too many bytes, bottomless nesting and endless numbers are refused, never raised."""
    for text in (b"\xff", b"x = " + b"[" * 9_000, b"x = " + b"9" * 9_000):
        parsed = parse(text, "p")
        assert parsed.manifest is None
        assert parsed.diagnostics[0].code == "not_toml"
    (diagnostic,) = parse(b"#" * (rules.MAX_FILE_BYTES + 1), "p").diagnostics
    assert diagnostic.code == "file_too_large"


def test_a_byte_order_mark_is_ignored_and_remarked_upon() -> None:
    """An editor's mark does not cost the plugin."""
    parsed = parse(b"\xef\xbb\xbf" + (PLUGIN + HOOK).encode(), "p")
    assert parsed.manifest is not None
    assert [diagnostic.code for diagnostic in parsed.diagnostics] == ["byte_order_mark"]


def test_everything_that_may_be_repeated_has_an_end() -> None:
    """Blocks, patterns, folders and values beyond their number are left out, and it is said."""
    blocks = PLUGIN + HOOK * (rules.MAX_CAPABILITIES + 1)
    assert ("too_many", "capabilities") in said(blocks)
    patterns = ", ".join(["'tool_call'"] * rules.MAX_PATTERNS)
    many = PLUGIN + f"[[capabilities]]\ntype = 'hook'\nevents = [{patterns}, 'error']\n"
    assert not good(many).events.match("error")
    assert ("too_many", f"capabilities[0].events[{rules.MAX_PATTERNS}]") in said(many)
    folders = ", ".join(f"'f{index}'" for index in range(rules.MAX_FOLDERS + 1))
    wide = PLUGIN + HOOK + f"[permissions]\nfilesystem_allowlist = [{folders}]\n"
    assert len(good(wide).folders) == rules.MAX_FOLDERS
    values = "".join(f"k{index} = 1\n" for index in range(rules.MAX_CONFIG + 1))
    assert len(good(PLUGIN + HOOK + "[config]\n" + values).config) == rules.MAX_CONFIG
    long = PLUGIN + HOOK + f"[config]\nk = '{'x' * (rules.MAX_CONFIG_BYTES + 1)}'\n"
    assert (good(long).config, said(long)) == ({}, [("too_long", "config.k")])


def test_without_a_list_of_its_own_the_catalogue_says_which_events_there_are() -> None:
    """A caller that names no events gets the catalogue's."""
    text = PLUGIN + "[[capabilities]]\ntype = 'hook'\nevents = ['pre_compact']\n"
    manifest = parse(text.encode(), "p").manifest
    assert manifest is not None
    assert manifest.events.names == {"pre_compact"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=10,
    ),
    st.sampled_from(["plugin", "capabilities", "permissions", "resources", "config"]),
)
def test_no_value_anywhere_raises(value: Any, table: str) -> None:
    """Whatever stands in a table, the outcome is a manifest or diagnostics."""
    text = f"{table} = {_toml(value)}\n"
    tomllib.loads(text)
    parsed = read(text)
    assert parsed.manifest is None
    assert parsed.diagnostics


def _toml(value: Any) -> str:
    """A value in TOML, as far as TOML has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08x}" for char in value) + '"'
    return {None: "1.5", True: "true", False: "false"}.get(value, str(value))


def test_hints_are_searched_for_only_while_findings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest full of mistakes costs as many searches as there are findings kept, and no more."""
    asked: list[str] = []
    monkeypatch.setattr(prx_plugin, "nearest", lambda name, known: asked.append(name))
    wrong = [f"wrong{number}" for number in range(MAX_DIAGNOSTICS + 100)]
    keys = "".join(f"{name} = 1\n" for name in wrong)
    parsed = read(keys + PLUGIN + HOOK + f"[permissions]\nrequired = {wrong}\noptional = {wrong}\n")
    assert len(parsed.diagnostics) == MAX_DIAGNOSTICS + 1
    assert len(asked) == MAX_DIAGNOSTICS
