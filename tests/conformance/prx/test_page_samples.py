"""The page's own hook files, their bytes unchanged, mean what the page says.

The page is not ours to ship: it is read from the directory that $PRXBUS_PAGES names.
"""

from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx
from tests.conformance.prx import page


@pytest.fixture(scope="module")
def samples(pages: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Every hook file on the PRX page: its bytes and its value."""
    return page.hook_files(page.find(pages))


def test_the_page_has_its_samples(samples: list[tuple[bytes, dict[str, Any]]]) -> None:
    """The structure, the full example and the four worked examples are found."""
    assert len(samples) == 6


def test_every_sample_is_read_without_a_remark(samples: list[tuple[bytes, dict[str, Any]]]) -> None:
    """Each sample means every action it lists; only the placeholder in angle brackets is no event."""
    for text, value in samples:
        parsed = prx.parse(text, "hooks.json")
        listed = [
            (event, action.get("command"), tuple(action.get("args", ())), action.get("env", {}))
            for event, actions in value["hooks"].items()
            if event != "<event_name>"
            for action in actions
        ]
        assert [(s.event, s.command, s.args, s.env) for s in parsed.specs] == listed
        told = [diagnostic.field for diagnostic in parsed.diagnostics]
        assert told == (['hooks["<event_name>"]'] if "<event_name>" in value["hooks"] else [])


def test_the_structure_sample_is_read_with_a_real_event(samples: list[tuple[bytes, dict[str, Any]]]) -> None:
    """With an event in place of the placeholder the basic structure has every field as documented."""
    text = next(text for text, value in samples if "<event_name>" in value["hooks"])
    (spec,) = prx.parse(text.replace(b"<event_name>", b"tool_call"), "hooks.json").specs
    assert (spec.command, spec.args) == ("/path/to/script", ("--flag", "value"))
    assert (spec.env, spec.cwd) == ({"CUSTOM_VAR": "value"}, "/working/directory")
    assert (spec.timeout_s, spec.stdin) == (5.0, True)
