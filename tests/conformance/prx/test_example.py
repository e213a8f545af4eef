"""The example workspace is what a reader would copy, so it has nothing wrong."""

from pathlib import Path

from subscribers.dialects import prx
from subscribers.sources import discover, resolve

EXAMPLE = Path(__file__).parents[3] / "examples" / "prx"


def test_the_example_is_read_without_a_remark() -> None:
    """Every hook of the example is a spec, and its program and folder exist."""
    path = discover.hook_file(str(EXAMPLE), prx)
    parsed = prx.parse(Path(path).read_bytes(), path)
    assert parsed.diagnostics == ()
    assert {spec.event for spec in parsed.specs} == {
        *("agent_start", "agent_end", "tool_call", "llm_response", "error")
    }
    assert resolve.check(parsed.specs, str(EXAMPLE), "/nonexistent") == ()
