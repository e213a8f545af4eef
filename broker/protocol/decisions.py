"""What handlers answer to an ask, and the one decision that their answers make.

    answers of several deciders, in their declared order  --merge-->  Decision

The laws, each held by a property test: deny beats ask beats allow beats none, in whatever order they came;
a decision only tightens (nothing that a handler adds makes it milder); the verdict's reason is that of the
first handler, in declared order, that gave it; contexts and messages are joined in order; the original input
is kept, and rewrites are changes of its top-level keys against that original: the same key changed twice,
the later wins and the conflict is listed; nothing heard means no opinion, unless the decider's failure
policy is ``closed``: then silence is a denial.

Pure: it knows no socket and no clock. Who was asked and who is late is :mod:`broker.control.asks`'s affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from .envelope import is_text
from .errors import DecodeError, shown
from .limits import NAME_BYTES, PRIORITY

Verdict: TypeAlias = Literal["none", "allow", "ask", "deny"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
"""From the mildest to the strictest; ``ask`` means that the user is to be asked."""

Failure: TypeAlias = Literal["open", "closed"]
FAILURES: Final[tuple[Failure, ...]] = get_args(Failure)
"""What a decider's silence means: no opinion (``open``, the default) or a denial (``closed``)."""

Silence: TypeAlias = Literal["timeout", "died", "left", "unreachable", "failed"]
SILENCES: Final[tuple[Silence, ...]] = get_args(Silence)
"""Why a decider that was asked has no answer: it was late; its process ended; it said goodbye; the ask could
not be handed to it; it answered that it failed."""

_STRICTNESS: Final[Mapping[str, int]] = {verdict: index for index, verdict in enumerate(VERDICTS)}

_NO_INPUT: Final[Mapping[str, Any]] = MappingProxyType({})
_NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


class _Nothing:
    """The one object that stands for no value at all."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()
"""Stands for an output that nobody replaced; None is a value like any other."""


class Answer(NamedTuple):
    """What one handler says of one event.

    ``handler`` names it, such as ``guards.py:guard``. ``reason`` belongs to the verdict. ``contexts`` are
    texts for the model. ``updated_input`` is the whole input as the handler wants it. ``output`` replaces
    what a tool has put out. ``stop``: the agent is to end its turn, ``stop_reason`` says why.
    ``system_message`` is for the user. ``priority``: its place among all answers, the lower the earlier.
    """

    handler: str
    verdict: Verdict = "none"
    reason: str | None = None
    contexts: tuple[str, ...] = ()
    updated_input: Mapping[str, Any] | None = None
    output: Any = NOTHING
    stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    priority: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it is a verdict, perhaps with a reason, and nothing else."""
        return self[3:9] == _SILENT

    def fields(self) -> list[object]:
        """The answer as it travels: a msgpack array of 10, the output in an array of none or one."""
        return [
            self.handler,
            self.verdict,
            self.reason,
            list(self.contexts),
            None if self.updated_input is None else dict(self.updated_input),
            [] if self.output is NOTHING else [self.output],
            self.stop,
            self.stop_reason,
            self.system_message,
            self.priority,
        ]


_SILENT: Final = ((), None, NOTHING, False, None, None)
"""Contexts to system message of an answer that is a verdict and nothing else."""

_PLAIN: Final[list[object]] = [[], None, [], False, None, None]
"""The fields from contexts to system message of an answer that has none of them."""


def answer_of(fields: object) -> Answer:
    """The answer that arrived as ``fields``; raises :class:`DecodeError` that names what is wrong."""
    if type(fields) is not list or len(fields) != 10:
        raise DecodeError("answer", f"an answer is an array of 10, not {shown(fields)}")
    handler, verdict, reason, contexts, updated, output, stop, stop_reason, message, priority = fields
    if (
        type(handler) is str
        and 0 < len(handler) <= NAME_BYTES
        and verdict in VERDICTS
        and (reason is None or type(reason) is str)
        and type(priority) is int
        and priority == 0
        and stop is False
        and fields[3:9] == _PLAIN
    ):
        return Answer(handler, verdict, reason)
    _require(is_text(handler, 4 * NAME_BYTES) and handler, "handler", handler)
    _require(type(verdict) is str and verdict in _STRICTNESS, "verdict", verdict)
    for name, text in (("reason", reason), ("stop reason", stop_reason), ("system message", message)):
        _require(text is None or type(text) is str, name, text)
    _require(type(contexts) is list and all(type(text) is str for text in contexts), "contexts", contexts)
    _require(updated is None or type(updated) is dict, "updated input", updated)
    _require(type(output) is list and len(output) <= 1, "output", output)
    _require(type(stop) is bool, "stop", stop)
    _require(type(priority) is int and -PRIORITY <= priority <= PRIORITY, "priority", priority)
    return Answer(
        handler,
        verdict,
        reason,
        tuple(contexts),
        updated,
        output[0] if output else NOTHING,
        stop,
        stop_reason,
        message,
        priority,
    )


class Heard(NamedTuple):
    """One decider of an ask, as the broker tells of it, in declared order.

    ``silence`` is None when it answered; ``answers`` may be empty then: it had nothing to say.
    ``elapsed_s`` is the time from forwarding the ask to its answer, or to the moment it was given up.
    """

    decider: str
    failure: Failure
    silence: Silence | None
    elapsed_s: float
    answers: tuple[Answer, ...] = ()


class Said(NamedTuple):
    """One text of a decision and the handler that said it."""

    by: str
    text: str


class Conflict(NamedTuple):
    """A top-level key of the input that several handlers changed; the value of the last one holds."""

    key: str
    by: tuple[str, ...]


class Refusal(NamedTuple):
    """A rewrite that the agent's own validator refused, and why; the input is as if it had not been made."""

    by: str
    reason: str


class Decision(NamedTuple):
    """What the answers to one ask come to.

    ``verdict`` and ``reason`` with ``by``, the handler that gave them (None: nobody did). ``input`` is the
    original, ``updated_input`` the rewritten one or None; ``changed_by`` says for each changed key who did
    it last. ``output`` is :data:`NOTHING` or what replaces the tool's, by ``output_by``. ``heard`` lists
    every decider that was asked, with its own answers and timing. ``partial``: one of them did not answer.
    """

    verdict: Verdict = "none"
    reason: str | None = None
    by: str | None = None
    contexts: tuple[Said, ...] = ()
    input: Mapping[str, Any] = _NO_INPUT
    updated_input: Mapping[str, Any] | None = None
    changed_by: Mapping[str, str] = _NOBODY
    conflicts: tuple[Conflict, ...] = ()
    refused: tuple[Refusal, ...] = ()
    output: Any = NOTHING
    output_by: str | None = None
    stop: bool = False
    stop_reason: str | None = None
    stop_by: str | None = None
    system_messages: tuple[Said, ...] = ()
    heard: tuple[Heard, ...] = ()

    @property
    def denied(self) -> bool:
        """Whether somebody said no."""
        return self.verdict == "deny"

    @property
    def allowed(self) -> bool:
        """Whether nobody said no and nobody wants the user to be asked: also when nobody has an opinion."""
        return self.verdict in ("none", "allow")

    @property
    def replaced(self) -> bool:
        """Whether there is an output in place of the tool's."""
        return self.output is not NOTHING

    @property
    def partial(self) -> bool:
        """Whether a decider that was asked has no answer here."""
        return any(heard.silence is not None for heard in self.heard)

    @property
    def missing(self) -> tuple[Heard, ...]:
        """The deciders that did not answer, each with why."""
        return tuple(heard for heard in self.heard if heard.silence is not None)


Constraints: TypeAlias = Callable[[Mapping[str, Any]], str | None]
"""Judges the original input: a reason to refuse it, for good, or None."""

Revalidate: TypeAlias = Callable[[Mapping[str, Any]], str | None]
"""Judges an input as a handler has rewritten it: a reason to refuse the rewrite, or None."""


def merge(
    heard: Sequence[Heard],
    original: Mapping[str, Any],
    *,
    forbidden: str | None = None,
    revalidate: Revalidate | None = None,
) -> Decision:
    """The decision of an ask about an event whose input is ``original``.

    ``heard`` in declared order. ``forbidden`` is why the agent's own constraints refuse the original: it is
    final. ``revalidate`` is asked for every rewrite on its own, and for what the accepted ones come to.
    """
    answers = _in_order(heard)
    verdict: Verdict
    if len(answers) == 1 and forbidden is None and (only := answers[0]).is_plain:
        if only.verdict == "none":
            return Decision("none", None, None, (), original, heard=tuple(heard))
        return Decision(only.verdict, only.reason, only.handler, (), original, heard=tuple(heard))
    verdict, reason, by = ("deny", forbidden, CONSTRAINTS) if forbidden is not None else _verdict(answers)
    if not answers:
        return Decision(verdict, reason, by, (), original, heard=tuple(heard))
    rewrite = NO_REWRITE
    if any(a.updated_input is not None for a in answers):
        rewrite = _rewrite(answers, original, revalidate)
    output = next((a for a in answers if a.output is not NOTHING), None)
    stop = next((a for a in answers if a.stop), None)
    return Decision(
        verdict=verdict,
        reason=reason,
        by=by,
        contexts=tuple(Said(a.handler, text) for a in answers for text in a.contexts),
        input=original,
        updated_input=rewrite.updated_input,
        changed_by=rewrite.changed_by,
        conflicts=rewrite.conflicts,
        refused=rewrite.refused,
        output=NOTHING if output is None else output.output,
        output_by=None if output is None else output.handler,
        stop=stop is not None,
        stop_reason=None if stop is None else stop.stop_reason,
        stop_by=None if stop is None else stop.handler,
        system_messages=tuple(
            Said(a.handler, a.system_message) for a in answers if a.system_message is not None
        ),
        heard=tuple(heard),
    )


CONSTRAINTS: Final = "constraints"
"""Who refused, when it was the agent's own constraints."""


def _in_order(heard: Sequence[Heard]) -> list[Answer]:
    """All answers by priority, then in the order of their deciders; silence of a closed one is a denial."""
    if len(heard) == 1 and heard[0].silence is None and len(heard[0].answers) <= 1:
        return list(heard[0].answers)
    found: list[Answer] = []
    for each in heard:
        if each.silence is None:
            found.extend(each.answers)
        elif each.failure == "closed":
            found.append(
                Answer(
                    each.decider, "deny", f"{each.decider} did not answer ({each.silence}) and fails closed"
                )
            )
    found.sort(key=lambda answer: answer.priority)
    return found


def _verdict(answers: Iterable[Answer]) -> tuple[Verdict, str | None, str | None]:
    first = None
    for answer in answers:
        if first is None or _STRICTNESS[answer.verdict] > _STRICTNESS[first.verdict]:
            first = answer
    if first is None or first.verdict == "none":
        return "none", None, None
    return first.verdict, first.reason, first.handler


class Rewrite(NamedTuple):
    """What became of the rewrites of an ask; see the fields of :class:`Decision`."""

    updated_input: Mapping[str, Any] | None
    changed_by: Mapping[str, str]
    conflicts: tuple[Conflict, ...]
    refused: tuple[Refusal, ...]


NO_REWRITE: Final = Rewrite(None, _NOBODY, (), ())


def _rewrite(
    answers: Iterable[Answer], original: Mapping[str, Any], revalidate: Revalidate | None
) -> Rewrite:
    """Each rewrite as key changes against the original; of the same key the later one holds."""
    result = dict(original)
    changed: dict[str, list[str]] = {}
    refused: list[Refusal] = []
    for answer in answers:
        updated = answer.updated_input
        if updated is None:
            continue
        keys = [key for key in {**original, **updated} if _differs(key, original, updated)]
        if not keys:
            continue
        attempt = dict(result)
        for key in keys:
            if key in updated:
                attempt[key] = updated[key]
            else:
                attempt.pop(key, None)
        reason = None
        if revalidate is not None:
            reason = revalidate(updated)
            if reason is None and changed:
                reason = revalidate(attempt)
        if reason is not None:
            refused.append(Refusal(answer.handler, reason))
            continue
        result = attempt
        for key in keys:
            changed.setdefault(key, []).append(answer.handler)
    return Rewrite(
        updated_input=result if changed else None,
        changed_by={key: by[-1] for key, by in changed.items()},
        conflicts=tuple(Conflict(key, tuple(by)) for key, by in changed.items() if len(by) > 1),
        refused=tuple(refused),
    )


def _differs(key: str, original: Mapping[str, Any], updated: Mapping[str, Any]) -> bool:
    """Whether ``updated`` says something else of ``key``; a missing key is not the same as null."""
    if (key in original) != (key in updated):
        return True
    return not _same(original[key], updated[key])


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same at every depth, types included: to JSON ``1`` and ``true`` differ."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, Mapping):
            if one.keys() != other.keys():
                return False
            pairs += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


INPUT_FIELDS: Final = ("arguments", "tool_input", "args")
"""Where the catalogue's events carry a tool's input; the first that is an object is the input of an ask."""


def input_of(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The input that an ask about ``payload`` is about: a tool's arguments, else the payload itself."""
    for name in INPUT_FIELDS:
        value = payload.get(name)
        if isinstance(value, Mapping):
            return value
    return payload


def _require(condition: object, name: str, value: object) -> None:
    if not condition:
        raise DecodeError("answer", f"{name} of an answer is {shown(value)}")
