"""What a handler is given beside the event: its log, its answers, the bus, its deadline.

Decides how an answer is put together and what a returned value means: None, or an answer; nothing else, so
that ``return True`` cannot be mistaken for a permission. Refuses to know the bus: publishing is lent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict, Unpack

from broker.logs import Logger, get_logger
from broker.protocol.decisions import NOTHING, Answer, Verdict
from broker.protocol.errors import shown

from .registration import HandlerError, Registration


class Publish(Protocol):
    """How a handler's events reach the bus: one level deeper than the event being handled."""

    def __call__(self, topic: str, payload: Mapping[str, Any], /, *, session_id: str | None) -> bool:
        """Hand an event to the bus; whether it was taken."""


class More(TypedDict, total=False):
    """What may be added to any answer.

    ``context``: a text for the model, or several. ``updated_input``: the whole input as it should be.
    ``output``: in place of the tool's. ``stop``: why the agent is to end its turn. ``message``: for the user.
    """

    context: str | Sequence[str]
    updated_input: Mapping[str, Any]
    output: Any
    stop: str
    message: str


class Context:
    """Given to a handler for one call. ``name`` is the handler's in reports and answers.

    ``deadline`` is in seconds of ``time.monotonic()``: what comes later is of no use.
    """

    __slots__ = ("_log", "_publish", "_registration", "_session_id", "deadline", "name")

    def __init__(
        self,
        registration: Registration,
        name: str,
        deadline: float,
        publish: Publish,
        session_id: str | None = None,
    ) -> None:
        self.name = name
        self.deadline = deadline
        self._registration = registration
        self._publish = publish
        self._session_id = session_id
        self._log: Logger | None = None

    @property
    def log(self) -> Logger:
        """Writes to the log of prxbus, under the handler's name."""
        if self._log is None:
            self._log = get_logger("subscribers.handlers", handler=self.name)
        return self._log

    def publish(self, topic: str, payload: Mapping[str, Any], *, session_id: str | None = None) -> bool:
        """Publish an event that was caused by this one, one level deeper; whether the bus took it.

        It belongs to the same session unless another is named. Beyond depth 7 it is dropped and counted.
        Raises what :meth:`broker.client.Publisher.publish` raises.
        """
        return self._publish(topic, payload, session_id=session_id or self._session_id)

    # -- answers ------------------------------------------------------------------------------

    def allow(self, reason: str | None = None, **more: Unpack[More]) -> Answer:
        """It may go on."""
        return self._answer("allow", reason, more)

    def deny(self, reason: str, **more: Unpack[More]) -> Answer:
        """It must not; ``reason`` is for the model and the user."""
        return self._answer("deny", reason, more)

    def ask(self, reason: str, **more: Unpack[More]) -> Answer:
        """The user is to be asked."""
        return self._answer("ask", reason, more)

    def context(self, text: str, **more: Unpack[More]) -> Answer:
        """No opinion, and a text for the model."""
        answer = self._answer("none", None, more)
        return answer._replace(contexts=(_text("context", text), *answer.contexts))

    def rewrite(self, new_input: Mapping[str, Any], **more: Unpack[More]) -> Answer:
        """No opinion, and the whole input as it should be."""
        return self._answer("none", None, {**more, "updated_input": new_input})

    def replace_output(self, value: Any, **more: Unpack[More]) -> Answer:
        """No opinion, and what the tool has put out as it should be read."""
        return self._answer("none", None, {**more, "output": value})

    def stop(self, reason: str, **more: Unpack[More]) -> Answer:
        """No opinion on this, but the agent is to end its turn."""
        return self._answer("none", None, {**more, "stop": reason})

    def message(self, text: str, **more: Unpack[More]) -> Answer:
        """No opinion, and a text for the user."""
        return self._answer("none", None, {**more, "message": text})

    def _answer(self, verdict: Verdict, reason: str | None, more: More) -> Answer:
        strange = sorted(set(more) - More.__optional_keys__)
        if strange:
            known = ", ".join(sorted(More.__optional_keys__))
            raise HandlerError(f"an answer has no {strange[0]!r}; it may have {known}")
        updated = more.get("updated_input")
        if updated is not None and not isinstance(updated, Mapping):
            raise HandlerError(f"a rewritten input is a dict, not {shown(updated)}")
        stop = more.get("stop")
        message = more.get("message")
        return Answer(
            handler=self.name,
            verdict=verdict,
            reason=None if reason is None else _text("reason", reason),
            contexts=_texts(more.get("context", ())),
            updated_input=updated,
            output=more.get("output", NOTHING),
            stop=stop is not None,
            stop_reason=None if stop is None else _text("stop", stop),
            system_message=None if message is None else _text("message", message),
            priority=self._registration.priority,
        )


def answer_in(returned: object, registration: Registration) -> Answer | None:
    """The answer that a ``decide`` handler returned, or None for no opinion; raises :class:`HandlerError`."""
    if returned is None or isinstance(returned, Answer):
        return returned
    raise HandlerError(
        f"{registration.name} returned {shown(returned)}; it may return None, or an answer such as "
        "ctx.allow(), ctx.deny(reason) or ctx.context(text)"
    )


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise HandlerError(f"the {what} of an answer is a text, not {shown(value)}")
    return value


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence):
        raise HandlerError(f"the context of an answer is a text or a list of them, not {shown(value)}")
    return tuple(_text("context", text) for text in value)
