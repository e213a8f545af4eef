"""The normal form of a hook: a value that nobody changes."""

import dataclasses

import pytest

from subscribers.hooks.spec import HookSpec

SPEC = HookSpec(
    id="tool_call#0",
    dialect="prx",
    path="hooks.json",
    line=4,
    event="tool_call",
    command="/opt/hooks/audit.sh",
    args=("--flag",),
    env={"LOG_DIR": "/var/log"},
    cwd=None,
    timeout_s=5.0,
    grace_s=5.0,
    stdin=True,
)


def test_a_spec_cannot_be_changed() -> None:
    """A hook that is in force stays what it was when it was read."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        SPEC.command = "/bin/other"  # type: ignore[misc]


def test_equal_hooks_are_equal_values() -> None:
    """Two specs are equal exactly when every field is."""
    assert dataclasses.replace(SPEC) == SPEC
    assert dataclasses.replace(SPEC, stdin=False) != SPEC
