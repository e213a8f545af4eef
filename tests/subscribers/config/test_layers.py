"""Which value holds, where it came from, and what is refused."""

from typing import Any

import pytest

from subscribers.config.layers import (
    TABLES,
    Layer,
    combine,
    from_document,
    from_environment,
    value_of,
)
from subscribers.config.schema import SECTIONS, Settings, keys, reach


def test_defaults_hold_without_layers() -> None:
    """Nothing said: every value is the schema's, with the origin default."""
    configured = combine([])
    assert configured.settings == Settings()
    assert set(configured.origins.values()) == {"default"}
    assert configured.diagnostics == ()


def test_later_layers_win_and_are_named() -> None:
    """File, environment and flag: the last one that speaks of a key holds, and is its origin."""
    layers = [
        from_document({"hooks": {"runs": 5, "queue": 9}, "log": {"level": "debug"}}, "user.toml")[0],
        from_environment(
            {"PRXBUS_HOOKS_QUEUE": "8", "PRXBUS_BUS_CLAIM_SECONDS": "1.5", "PRXBUS_LOG_LEVEL": ""}
        )[0],
        Layer("flag", {"hooks.runs": 4}),
    ]
    configured = combine(layers)
    found = {key: (value_of(configured.settings, key), configured.origins[key]) for key in keys()}
    assert found["hooks.runs"] == (4, "flag")
    assert found["hooks.queue"] == (8, "environment")
    assert found["bus.claim_seconds"] == (1.5, "environment")
    assert found["log.level"] == ("debug", "user.toml")
    assert found["hooks.runs_per_hook"] == (8, "default")


def test_the_documented_runtime_variable_is_a_setting() -> None:
    """PRXBUS_RUNTIME_DIR is bus.runtime_dir; variables with a meaning of their own are no settings."""
    layer, faults = from_environment(
        {"PRXBUS_RUNTIME_DIR": "/run/x", "PRXBUS_DEPTH": "3", "PRXBUS_CAUSE": "x", "HOME": "/h"}
    )
    assert (layer.values, faults) == ({"bus.runtime_dir": "/run/x"}, [])


@pytest.mark.parametrize(
    "document, code, hint",
    [
        ({"hoks": {}}, "unknown_section", "did you mean hooks?"),
        ({"hooks": {"run": 3}}, "unknown_setting", "did you mean hooks.runs?"),
        ({"zzz": {}}, "unknown_section", "there are " + ", ".join([*SECTIONS, *TABLES])),
        ({"hooks": 3}, "not_a_table", None),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_one(
    document: dict[str, Any], code: str, hint: str | None
) -> None:
    """A typing error in a file is told with what was probably meant, and nothing of it holds."""
    layer, (fault,) = from_document(document, "user.toml")
    assert (fault.code, fault.hint, fault.path, layer.values) == (code, hint, "user.toml", {})


def test_an_unknown_variable_is_an_error_with_the_nearest_one() -> None:
    """A variable with our prefix that means nothing is told."""
    _, (fault,) = from_environment({"PRXBUS_HOOK_RUNS": "1"})
    assert (fault.code, fault.hint) == ("unknown_variable", "did you mean PRXBUS_HOOKS_RUNS?")


@pytest.mark.parametrize(
    "key, value",
    [
        ("hooks.runs", 0),
        ("hooks.runs", "many"),
        ("hooks.runs", True),
        ("hooks.drain_seconds", -1.0),
        ("log.level", "loud"),
        ("bus.runtime_dir", ""),
        ("bus.spool_bytes", 5),
    ],
)
def test_a_bad_value_is_told_and_the_layer_below_holds(key: str, value: Any) -> None:
    """A value of the wrong type or size is one diagnostic and changes nothing."""
    configured = combine([Layer("user.toml", {key: value, "hooks.queue": 3})])
    (fault,) = configured.diagnostics
    assert (fault.code, fault.field, fault.path) == ("bad_value", key, "user.toml")
    assert (configured.origins[key], configured.settings.hooks.queue) == ("default", 3)


def test_a_workspace_may_tighten_and_not_loosen() -> None:
    """A workspace's own file may lower limits, never raise them, and cannot move the bus."""
    workspace = Layer(
        "w/.prxbus/config.toml",
        {"hooks.runs": 4, "hooks.queue": 5_000, "bus.runtime_dir": "/evil", "log.level": "error"},
        is_workspace=True,
    )
    configured = combine([Layer("user.toml", {"hooks.queue": 100}), workspace])
    assert configured.settings.hooks.runs == 4
    assert (configured.settings.hooks.queue, configured.settings.bus.runtime_dir) == (100, None)
    assert configured.settings.log.level == "error"
    assert sorted((fault.code, fault.field) for fault in configured.diagnostics) == [
        ("loosens", "hooks.queue"),
        ("not_here", "bus.runtime_dir"),
    ]


@pytest.mark.parametrize(
    "user, workspace, holds, faults",
    [
        ("none", "bubblewrap", "bubblewrap", []),
        ("bubblewrap", "bubblewrap", "bubblewrap", []),
        ("bubblewrap", "none", "bubblewrap", ["loosens"]),
        ("none", "none", "none", []),
    ],
)
def test_a_workspace_may_ask_for_the_sandbox_and_not_leave_it(
    user: str, workspace: str, holds: str, faults: list[str]
) -> None:
    """Of a setting with ordered choices a workspace may take the same or a tighter one."""
    own = Layer("w/.prxbus/config.toml", {"hooks.sandbox": workspace}, is_workspace=True)
    configured = combine([Layer("user.toml", {"hooks.sandbox": user}), own])
    assert configured.settings.hooks.sandbox == holds
    assert [fault.code for fault in configured.diagnostics] == faults


def test_every_setting_says_what_it_is_and_what_a_workspace_may_do() -> None:
    """No setting without a description and a reach."""
    for key in keys():
        section, _, name = key.partition(".")
        assert SECTIONS[section].model_fields[name].description
        assert reach(section, name) in ("free", "lower", "tighten", "never")
