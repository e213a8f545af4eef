"""The name that was probably meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.nearest import nearest

KNOWN = ("command", "args", "env", "cwd", "timeout_ms", "stdin_json")


@pytest.mark.parametrize(
    "name,meant",
    [
        ("timeoutMs", "timeout_ms"),
        ("TIMEOUT-MS", "timeout_ms"),
        ("timeout", "timeout_ms"),
        ("stdinJson", "stdin_json"),
        ("comand", "command"),
        ("arguments", "args"),
        ("matcher", None),
        ("", None),
        ("x" * 1_000_000, None),
    ],
)
def test_spelling_decides(name: str, meant: str | None) -> None:
    """Case, dashes and underscores do not count; what is spelled too differently has no nearest name."""
    assert nearest(name, KNOWN) == meant


@given(st.sampled_from(KNOWN))
def test_a_known_name_is_nearest_to_itself(name: str) -> None:
    """Nothing is nearer to a name than the name."""
    assert nearest(name, KNOWN) == name
