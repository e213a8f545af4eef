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


def test_a_key_tells_hooks_apart_and_the_events_of_one_hook_not() -> None:
    """Actions of one file, and hooks of two files, differ; a hook with a name is one, whatever starts it."""
    named = dataclasses.replace(SPEC, name="n")
    others = [dataclasses.replace(SPEC, id="tool_call#1"), dataclasses.replace(SPEC, path="/v/hooks.json")]
    assert len({spec.key for spec in (SPEC, named, *others)}) == 4
    assert named.key == dataclasses.replace(named, id="agent_end#0", event="agent_end").key
