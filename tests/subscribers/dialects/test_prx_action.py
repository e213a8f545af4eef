"""One action: a spec when it is sound, every fault found when it is not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import prx_rules as rules
from subscribers.dialects.findings import Findings
from subscribers.dialects.prx_action import ActionPlace, read_action, unknown_keys
from subscribers.hooks.spec import HookSpec

PLACE = ActionPlace("hooks.json", ("hooks", "tool_call", 2), "tool_call", 2, default_timeout_ms=30_000)

short = st.text(max_size=4)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | short
json_values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(short, scalars, max_size=2)


def read(action: object, place: ActionPlace = PLACE) -> tuple[HookSpec | None, list[str]]:
    """The spec of an action and the codes of what was found."""
    findings = Findings(rules.CODES)
    spec = read_action(action, place, findings)
    return spec, [finding.code for finding in findings.kept]


def sound(action: dict[str, Any]) -> HookSpec:
    """The spec of an action that has nothing wrong."""
    spec, found = read(action)
    assert found == []
    assert spec is not None
    return spec


def test_an_action_needs_only_a_command() -> None:
    """Everything else has the page's default."""
    assert sound({"command": "notify"}) == HookSpec(
        id="tool_call#2",
        dialect="prx",
        path="hooks.json",
        line=None,
        event="tool_call",
        command="notify",
        args=(),
        env={},
        cwd=None,
        timeout_s=30.0,
        grace_s=5.0,
        stdin=False,
    )


def test_every_field_of_the_page_is_read() -> None:
    """Command, args, env, cwd, timeout_ms and stdin_json arrive as written."""
    spec = sound(
        {
            "command": "/path/to/script",
            "args": ["--flag", "value", ""],
            "env": {"CUSTOM_VAR": "value", "EMPTY": ""},
            "cwd": "/working/directory",
            "timeout_ms": 5000,
            "stdin_json": True,
        }
    )
    assert (spec.command, spec.args) == ("/path/to/script", ("--flag", "value", ""))
    assert spec.env == {"CUSTOM_VAR": "value", "EMPTY": ""}
    assert (spec.cwd, spec.timeout_s, spec.stdin) == ("/working/directory", 5.0, True)


def test_null_is_the_same_as_absent() -> None:
    """An optional field may be null, as programs write it that edit such files."""
    nulls = dict.fromkeys(("args", "env", "cwd", "timeout_ms", "stdin_json", "enabled", "id"))
    assert sound({"command": "notify", **nulls}) == sound({"command": "notify"})


def test_the_file_gives_the_default_timeout() -> None:
    """An action without a timeout of its own has the file's."""
    place = ActionPlace("hooks.json", ("hooks", "error", 0), "error", 0, default_timeout_ms=1_200)
    spec, _ = read({"command": "notify"}, place)
    assert spec is not None
    assert spec.timeout_s == 1.2


def test_blanks_around_a_command_do_not_count() -> None:
    """A command is trimmed, and blanks within it belong to it: nothing is split."""
    assert sound({"command": "  /opt/my hooks/run \n"}).command == "/opt/my hooks/run"


def test_what_editing_programs_keep_is_accepted() -> None:
    """Ids and times of an action mean nothing to a run."""
    kept = {"id": "hook_01", "created_at": "2026-03-20T10:00:00Z", "updated_at": None, "enabled": True}
    assert sound({"command": "notify", **kept}) == sound({"command": "notify"})


def test_a_disabled_action_does_not_run_and_says_so() -> None:
    """With enabled false an action stays in the file and is reported as information."""
    assert read({"command": "notify", "enabled": False}) == (None, ["disabled"])


@pytest.mark.parametrize("action", [None, "notify", ["notify"], 1, True])
def test_an_action_is_an_object(action: object) -> None:
    """Anything else in the list is refused."""
    assert read(action) == (None, ["wrong_type"])


@pytest.mark.parametrize(
    "change,code",
    [
        ({"command": None}, "missing_command"),
        ({"command": 1}, "wrong_type"),
        ({"command": ["sh", "-c", "x"]}, "wrong_type"),
        ({"command": ""}, "empty_command"),
        ({"command": " \t\n"}, "empty_command"),
        ({"command": "a; b"}, "metacharacter"),
        ({"command": "a\0b"}, "nul"),
        ({"command": "x" * 131_072}, "too_long"),
        ({"args": "--flag"}, "wrong_type"),
        ({"args": {"0": "--flag"}}, "wrong_type"),
        ({"args": [1]}, "wrong_type"),
        ({"args": [None]}, "wrong_type"),
        ({"args": ["a\0b"]}, "nul"),
        ({"args": ["x"] * 129}, "too_many"),
        ({"env": ["A=1"]}, "wrong_type"),
        ({"env": {"A": 1}}, "wrong_type"),
        ({"env": {"A": None}}, "wrong_type"),
        ({"env": {"A": "x\0"}}, "nul"),
        ({"env": {"A\0": "x"}}, "nul"),
        ({"env": {"": "x"}}, "bad_env_name"),
        ({"env": {"A=B": "x"}}, "bad_env_name"),
        ({"env": {f"V{i}": "x" for i in range(129)}}, "too_many"),
        ({"cwd": 1}, "wrong_type"),
        ({"cwd": "a\0b"}, "nul"),
        ({"cwd": "../x"}, "cwd_escapes"),
        ({"cwd": "/a/../b"}, "cwd_escapes"),
        ({"timeout_ms": -1}, "timeout_range"),
        ({"timeout_ms": 0}, "timeout_range"),
        ({"timeout_ms": 300_001}, "timeout_range"),
        ({"timeout_ms": 0.5}, "wrong_type"),
        ({"timeout_ms": "5000"}, "wrong_type"),
        ({"stdin_json": 1}, "wrong_type"),
        ({"stdin_json": "true"}, "wrong_type"),
        ({"enabled": "no"}, "wrong_type"),
    ],
)
def test_a_fault_refuses_the_action(change: dict[str, Any], code: str) -> None:
    """A faulty field gives one error with its code, and no spec."""
    assert read({"command": "notify", **change}) == (None, [code])


@pytest.mark.parametrize(
    "change,code,same_as",
    [
        ({"cwd": ""}, "empty_cwd", {}),
        ({"cwd": "  "}, "empty_cwd", {}),
        ({"timeout_ms": 5}, "small_timeout", None),
        ({"stdinJson": True}, "unknown_key", {}),
        ({"env": {"path": "/x"}}, "blocked_env", {}),
        ({"env": {"A": "1", "LD_AUDIT": "/x.so"}}, "blocked_env", {"env": {"A": "1"}}),
        ({"env": {"PRXBUS_DEPTH": "0"}}, "blocked_env", {}),
        ({"env": {"ZERO_HOOK_EVENT": "x"}}, "blocked_env", {}),
    ],
)
def test_what_can_be_left_out_does_not_stop_the_action(
    change: dict[str, Any], code: str, same_as: dict[str, Any] | None
) -> None:
    """A remark that is no error leaves the action as if the remarked part were not there."""
    spec, found = read({"command": "notify", **change})
    assert found == [code]
    assert spec is not None
    if same_as is not None:
        assert spec == sound({"command": "notify", **same_as})


def test_limits_are_inclusive() -> None:
    """128 arguments and 128 variables are accepted."""
    action = {"command": "notify", "args": ["x"] * 128, "env": {f"V{i}": "x" for i in range(128)}}
    assert len(sound(action).args) == 128
    assert len(sound(action).env) == 128


def test_every_fault_of_an_action_is_found() -> None:
    """One reading tells all that is wrong, not only the first thing."""
    action = {
        "comand": "x",
        "args": [1, "\0"],
        "env": {"A": 2, "HOME": "/x"},
        "cwd": "..",
        "timeout_ms": 0,
        "stdin_json": 0,
    }
    spec, found = read(action)
    assert spec is None
    wrong_types = ["wrong_type"] * 3  # of an argument, a variable and stdin_json
    others = ["blocked_env", "cwd_escapes", "missing_command", "nul", "timeout_range", "unknown_key"]
    assert sorted(found) == [*others, *wrong_types]


def test_faults_that_come_from_before_do_not_count() -> None:
    """An action is judged by its own faults, not by those that were found earlier."""
    findings = Findings(rules.CODES)
    assert read_action("wrong", PLACE, findings) is None
    assert read_action({"command": "notify"}, PLACE, findings) is not None


def test_the_shape_of_another_system_is_recognised() -> None:
    """An entry with a matcher and hooks of its own gets a hint that says whose it is."""
    findings = Findings(rules.CODES)
    read_action({"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}, PLACE, findings)
    missing = next(finding for finding in findings.kept if finding.code == "missing_command")
    assert "another system" in str(missing.hint)


@pytest.mark.parametrize(
    "key,hint",
    [
        ("timeout", "did you mean timeout_ms, in milliseconds?"),
        ("Command", "did you mean command?"),
        ("zzzz", "the keys here are command, args"),
    ],
)
def test_an_unknown_key_gets_the_nearest_name(key: str, hint: str) -> None:
    """The hint names the key that was probably meant, or all keys when none comes near."""
    findings = Findings(rules.CODES)
    unknown_keys({key: 1, "command": "x"}, PLACE.where, rules.ACTION_KEYS, findings)
    (finding,) = findings.kept
    assert finding.where == (*PLACE.where, key)
    assert finding.at == "key"
    assert str(finding.hint).startswith(hint)


def test_a_flood_of_unknown_keys_is_only_counted() -> None:
    """Beyond the limit of findings no nearest name is searched for, and nothing is kept."""
    findings = Findings(rules.CODES)
    unknown_keys(dict.fromkeys(f"comman{i}" for i in range(1_500)), (), rules.ACTION_KEYS, findings)
    assert (len(findings.kept), findings.left_out) == (1_000, 500)


@given(st.dictionaries(st.sampled_from(rules.ACTION_KEYS) | short, json_values, max_size=5))
def test_any_object_gives_a_spec_or_a_reason(action: dict[str, Any]) -> None:
    """Whatever an action holds, it becomes a spec, or something was found that says why not."""
    spec, found = read(action)
    if spec is None:
        assert found
    else:
        assert spec.command
        assert 0.001 <= spec.timeout_s <= 300
