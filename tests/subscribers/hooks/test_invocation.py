"""An invocation describes a process that can exist, or says what is wrong with the description."""

from __future__ import annotations

import math
from typing import Any

import pytest

from subscribers.hooks.invocation import OUTPUT_LIMIT, Invocation


def _invocation(**changes: Any) -> Invocation:
    fields: dict[str, Any] = {
        "argv": ("/bin/true",),
        "env": {"PATH": "/bin", "RUN": "7"},
        "cwd": "/",
        "stdin": None,
        "timeout_s": 1.0,
        "grace_s": 0.0,
    }
    return Invocation(**(fields | changes))


def test_it_keeps_what_it_is_told_and_caps_outputs_by_default() -> None:
    """A valid description is kept as it is, with 64 KiB of each output and no marker."""
    invocation = _invocation(stdin=b"{}")
    assert (invocation.argv, invocation.stdin, invocation.cwd) == (("/bin/true",), b"{}", "/")
    assert invocation.output_limit == OUTPUT_LIMIT == 65_536
    assert invocation.marker is None


def test_a_marker_is_a_variable_of_the_environment() -> None:
    """A marker that the environment sets is accepted."""
    assert _invocation(marker="RUN").marker == "RUN"


@pytest.mark.parametrize(
    "changes,complaint",
    [
        ({"argv": ()}, "absolute path of a program"),
        ({"argv": ("true",)}, "absolute path of a program"),
        ({"cwd": "."}, "cwd must be an absolute path"),
        ({"cwd": ""}, "cwd must be an absolute path"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": -1.0}, "timeout_s"),
        ({"timeout_s": math.inf}, "timeout_s"),
        ({"timeout_s": math.nan}, "timeout_s"),
        ({"grace_s": -0.1}, "grace_s"),
        ({"grace_s": math.inf}, "grace_s"),
        ({"grace_s": math.nan}, "grace_s"),
        ({"output_limit": -1}, "output_limit"),
        ({"marker": "MISSING"}, "'MISSING', which env does not set"),
    ],
)
def test_nonsense_is_refused_by_name(changes: dict[str, Any], complaint: str) -> None:
    """A value that no kernel or clock could honour is an error that names the field."""
    with pytest.raises(ValueError, match=complaint):
        _invocation(**changes)
