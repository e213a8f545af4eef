"""A decision as the one JSON object that programs read: printed by ``prxbus ask``, answered over HTTP.

Decides its keys, their order, and what becomes of values that JSON cannot say. It refuses to know how the
decision came about and who reads it. Pure.
"""

from __future__ import annotations

from typing import Any

import orjson

from .decisions import NOTHING, Answer, Decision, Heard


def ask_fields(topic: str, id: str | None, matching: int | None, decision: Decision) -> dict[str, Any]:
    """A decision with the ask that it answers.

    ``id`` of its event, None when it was too deep; ``matching`` subscribers of the event's published copy,
    None where there is none, or where nobody waited to hear of it.
    """
    return {
        "topic": topic,
        "id": id,
        "matching": matching,
        "timed_out": timed_out(decision),
        **decision_fields(decision),
    }


def decision_fields(decision: Decision) -> dict[str, Any]:
    """The decision as plain values; values of handlers that JSON cannot say are texts."""
    return {
        "verdict": decision.verdict,
        "reason": decision.reason,
        "by": decision.by,
        "denied": decision.denied,
        "allowed": decision.allowed,
        "partial": decision.partial,
        "contexts": [said._asdict() for said in decision.contexts],
        "system_messages": [said._asdict() for said in decision.system_messages],
        "updated_input": _plain(decision.updated_input),
        "changed_by": dict(decision.changed_by),
        "conflicts": [conflict._asdict() for conflict in decision.conflicts],
        "output": {"by": decision.output_by, "value": _plain(decision.output)} if decision.replaced else None,
        "stop": {"by": decision.stop_by, "reason": decision.stop_reason} if decision.stop else None,
        "heard": [_heard_fields(heard) for heard in decision.heard],
    }


def timed_out(decision: Decision) -> bool:
    """Whether a decider was late."""
    return any(heard.silence == "timeout" for heard in decision.missing)


def value_text(value: Any) -> str:
    """A value of a handler as JSON text."""
    return orjson.dumps(value, default=_as_text, option=orjson.OPT_NON_STR_KEYS).decode()


def _heard_fields(heard: Heard) -> dict[str, Any]:
    return {
        "decider": heard.decider,
        "failure": heard.failure,
        "silence": heard.silence,
        "elapsed_ms": round(heard.elapsed_s * 1e3, 3),
        "answers": [_answer_fields(answer) for answer in heard.answers],
    }


def _answer_fields(answer: Answer) -> dict[str, Any]:
    """One answer; of the values that it brings only that it brings them, because the merged ones are told."""
    return {
        "handler": answer.handler,
        "verdict": answer.verdict,
        "reason": answer.reason,
        "priority": answer.priority,
        "contexts": len(answer.contexts),
        "updated_input": answer.updated_input is not None,
        "output": answer.output is not NOTHING,
        "stop": answer.stop,
        "system_message": answer.system_message is not None,
    }


def _plain(value: Any) -> Any:
    """``value`` as JSON can say it."""
    return None if value is None else orjson.loads(value_text(value))


def _as_text(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
