"""A decision for programs."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given

from broker.protocol.decision_document import ask_fields, decision_fields, timed_out, value_text
from broker.protocol.decisions import Answer, Heard, merge
from tests.broker.protocol.decision_scene import COMMAND, HEARD, decided, heard


@given(HEARD)
def test_every_decision_is_json(said: Sequence[Heard]) -> None:
    """Bytes and large numbers of handlers do not break it, and nobody who was asked is left out."""
    fields = orjson.loads(orjson.dumps(decision_fields(merge(said, COMMAND))))
    assert [row["decider"] for row in fields["heard"]] == [each.decider for each in said]
    assert fields["denied"] == (fields["verdict"] == "deny")
    assert [len(row["answers"]) for row in fields["heard"]] == [len(each.answers) for each in said]


def test_the_object_for_programs_has_everything() -> None:
    """Each text with its handler; the merged values, and of single answers only that they brought one."""
    first = Answer("a", "allow", "fine", ("use make",), {"command": "ls"}, None, priority=3)
    assert decision_fields(decided(heard(first), heard(name="late", silence="timeout"))) == {
        "verdict": "allow",
        "reason": "fine",
        "by": "a",
        "denied": False,
        "allowed": True,
        "partial": True,
        "contexts": [{"by": "a", "text": "use make"}],
        "system_messages": [],
        "updated_input": {"command": "ls"},
        "changed_by": {"command": "a"},
        "conflicts": [],
        "output": {"by": "a", "value": None},
        "stop": None,
        "heard": [
            {
                "decider": "guard",
                "failure": "open",
                "silence": None,
                "elapsed_ms": 0.4,
                "answers": [
                    {
                        "handler": "a",
                        "verdict": "allow",
                        "reason": "fine",
                        "priority": 3,
                        "contexts": 1,
                        "updated_input": True,
                        "output": True,
                        "stop": False,
                        "system_message": False,
                    }
                ],
            },
            {"decider": "late", "failure": "open", "silence": "timeout", "elapsed_ms": 0.4, "answers": []},
        ],
    }


@pytest.mark.parametrize("value,told", [(b"a\xff", "a\\xff"), ({"k": b"b"}, {"k": "b"}), ({1}, "{1}")])
def test_what_json_cannot_say_is_text(value: object, told: object) -> None:
    """msgpack has bytes, and a handler in this process may have anything."""
    assert decision_fields(decided(heard(Answer("a", output=value))))["output"] == {"by": "a", "value": told}


def test_an_ask_has_its_event_beside_its_decision() -> None:
    """Topic, id and who matches come first; who is late is told in one word, who died is not late."""
    late = decided(heard(silence="timeout"))
    told = ask_fields("a.b", "x:a.b:1", None, late)
    assert list(told)[:4] == ["topic", "id", "matching", "timed_out"]
    assert told == {"topic": "a.b", "id": "x:a.b:1", "matching": None, "timed_out": True} | decision_fields(
        late
    )
    assert not timed_out(decided(heard(silence="died")))


def test_a_stop_is_told_with_who_wants_it() -> None:
    """And a text that a person reads is written as it stands in JSON."""
    told = decision_fields(decided(heard(Answer("a", stop=True, stop_reason="enough"))))
    assert told["stop"] == {"by": "a", "reason": "enough"}
    assert value_text({1: b"x", "y": "é"}) == '{"1":"x","y":"é"}'
