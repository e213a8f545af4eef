"""What may be made a handler, and which events are its business."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.handlers import HandlerError, Registration, decide, on, transform
from subscribers.handlers.registration import MAX_TIMEOUT, TIMEOUTS, collected


def made(decorator: Callable[[Any], Any], function: Any) -> Registration:
    """The registration that ``decorator`` makes of ``function``."""
    with collected() as found:
        assert decorator(function) is function
    (registration,) = found
    return registration


def plain(event: Any, ctx: Any) -> None:
    """A handler that does nothing."""


async def later(event: Any, ctx: Any) -> None:
    """An asynchronous one."""


class Callme:
    """An object that is called as a handler."""

    async def __call__(self, event: Any, ctx: Any) -> None:
        """Do nothing."""


def test_a_decorated_function_is_registered_as_it_is() -> None:
    """Kind, name, place, patterns, filters and times are registered, and the function is unchanged."""
    registration = made(on("tool_call", "my.topic.*", tools=["Bash"], agents=("a",), timeout=2), plain)
    assert (registration.kind, registration.name, registration.function) == ("on", "plain", plain)
    assert registration.path == __file__
    assert registration.line == plain.__code__.co_firstlineno
    assert [pattern.text for pattern in registration.patterns] == ["prx.lifecycle.tool_call", "my.topic.*"]
    assert (registration.tools, registration.agents, registration.timeout_s) == (("Bash",), ("a",), 2.0)
    assert (registration.filters, registration.is_async) == (True, False)


def test_a_guard_has_order_and_policy() -> None:
    """Priority and failure policy of a decide handler are kept; it is open unless it says otherwise."""
    closed = made(decide("x", priority=-3, failure="closed"), later)
    assert (closed.priority, closed.failure, closed.is_async) == (-3, "closed", True)
    assert (made(decide("x"), plain).failure, made(decide("x"), plain).timeout_s) == (
        "open",
        TIMEOUTS["decide"],
    )


def test_a_transform_needs_no_parentheses() -> None:
    """Bare and with arguments, it asks for tools' results."""
    for decorator in (transform, transform(tools=["Bash"])):
        registration = made(decorator, plain)
        assert registration.kind == "transform"
        assert registration.wants_topic("prx.lifecycle.tool_result")


def test_an_object_with_a_call_is_a_handler() -> None:
    """An instance whose call is asynchronous is registered under its class's name."""
    registration = made(on("x"), Callme())
    assert (registration.name, registration.is_async) == ("Callme", True)
    assert registration.path == __file__


def test_outside_of_a_load_a_decorator_changes_nothing() -> None:
    """Where nobody collects, as in a user's own test, the function is just a function."""
    assert on("tool_call")(plain) is plain


def test_a_star_means_lifecycle_events() -> None:
    """A bare star is no way to hear reports of one's own runs."""
    registration = made(on("*"), plain)
    assert registration.wants_topic("prx.lifecycle.error")
    assert not registration.wants_topic("prx.hooks.run")


@pytest.mark.parametrize(
    "make,says",
    [
        (on, 'write @on("tool_call")'),
        (lambda: on(plain), 'write @on("tool_call")'),  # type: ignore[arg-type]
        (lambda: on("tool*"), "'*' stands for a whole segment"),
        (lambda: on(*(f"a.{n}" for n in range(1_001))), "1,001 patterns"),
        (lambda: on(""), "an empty pattern"),
        (lambda: on(3), "a pattern is a string, not int"),  # type: ignore[arg-type]
        (lambda: on("x", tools="Bash"), "tools is a list of names"),
        (lambda: on("x", tools=3), "tools is a list of names"),  # type: ignore[arg-type]
        (lambda: on("x", agents=[]), "agents is empty"),
        (lambda: on("x", tools=[""]), "which is not a name"),
        (lambda: on("x", timeout=0), "timeout is a number of seconds"),
        (lambda: on("x", timeout=True), "timeout is a number of seconds"),
        (lambda: on("x", timeout=MAX_TIMEOUT + 1), "at most 3600"),
        (lambda: decide("x", priority=1.5), "priority is a whole number"),  # type: ignore[arg-type]
        (lambda: decide("x", priority=True), "priority is a whole number"),
        (lambda: decide("x", failure="shut"), 'failure is "open"'),  # type: ignore[arg-type]
    ],
)
def test_a_bad_argument_is_refused_in_words(make: Callable[[], object], says: str) -> None:
    """Each refusal names the decorator's argument and what to write."""
    with pytest.raises(HandlerError) as refusal:
        make()
    assert says in str(refusal.value)


def generator(event: Any, ctx: Any) -> Any:
    """Yields, which no handler does."""
    yield 1


@pytest.mark.parametrize(
    "function,says",
    [
        (3, "stands above a function, not above 3"),
        (int, "not above the class int"),
        (lambda event: None, "cannot be called with (event, ctx)"),
        (generator, "is a generator"),
    ],
)
def test_what_cannot_be_called_is_refused(function: Any, says: str) -> None:
    """A handler takes the event and its context, and returns."""
    with pytest.raises(HandlerError) as refusal:
        on("x")(function)
    assert says in str(refusal.value)


def test_a_function_of_c_is_taken_at_its_word() -> None:
    """What tells nothing of its arguments is registered; a call shows whether it was right."""
    assert made(on("x"), max).name == "max"


@given(st.sampled_from(["tool", "tool_name"]), st.text(min_size=1, max_size=8).filter(lambda t: "*" not in t))
def test_a_filter_without_stars_is_a_name(field: str, name: str) -> None:
    """It lets pass its own name, under each of the names of the field, and nothing else."""
    registration = made(on("x", tools=[name]), plain)
    assert registration.wants_payload({field: name})
    assert not registration.wants_payload({field: f"{name}x"})
    assert not registration.wants_payload({field: 3})
    assert not registration.wants_payload({})


def test_a_star_in_a_filter_stands_for_any_characters() -> None:
    """Tools of one server, and agents under each of their fields."""
    registration = made(on("x", tools=["mcp__git__*"], agents=["a?"]), plain)
    assert registration.wants_payload({"tool": "mcp__git__log", "agent_id": "a?"})
    assert not registration.wants_payload({"tool": "mcp__fs__read", "agent_id": "a?"})
    assert not registration.wants_payload({"tool": "mcp__git__log", "agent_name": "ab"})
