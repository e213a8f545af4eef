"""Puts one tool's result to the ``[[transform]]`` commands of a configuration, without a bus.

The chain's law decides who is asked: in order, those whose filters fit, until one gives a text. How a command
is asked is the transform subscriber's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from broker.protocol.decisions import Answer
from broker.protocol.errors import BusError
from broker.protocol.events import Event

from ..config.layers import Configured
from ..config.transforms import Transform
from ..hooks.firing import Fired, FiredFile
from ..hooks.outcome import NOTHING, Outcome
from ..hooks.transform_chain import Fault, Said, Value
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Limits, SandboxUnavailable
from .dispatch import Enclose
from .enclosure import open_sandbox
from .python_probe import REPLACED
from .transform_steps import CommandStep, Question, command_handler, question

END_SECONDS: Final = 2.0
NO_OUTPUT: Final = "the event brings no output of a tool"
FILTERED: Final = "its filters do not let this payload through"


def call(
    file: FiredFile, event: Event, configured: Configured, runtime_dir: str, prxbus_folder: str
) -> FiredFile:
    """Ask the commands of a configuration file, in their order."""
    tables = {transform.name: transform for transform in configured.transforms}
    try:
        asked = question(event)
    except BusError:
        asked = None
    with ExitStack() as stack:
        reaper = Reaper(adopts=False)
        stack.callback(lambda: reaper.close(time.monotonic() + END_SECONDS))
        hooks = configured.settings.hooks
        limits = Limits(hooks.sandbox_memory_bytes, hooks.sandbox_processes, hooks.sandbox_file_bytes)
        enclose: Enclose | None = None
        try:
            sandbox = open_sandbox(hooks.sandbox, file.file.workspace, limits, prxbus_folder)
            if sandbox is not None:
                stack.callback(sandbox.close)
                enclose = sandbox.enclose
        except SandboxUnavailable as error:
            return _refused(file, f"hooks.sandbox is {hooks.sandbox}, which cannot be used here: {error}")

        def step(transform: Transform) -> CommandStep:
            return CommandStep(transform, reaper, runtime_dir, prxbus_folder, enclose)

        return replace(file, fired=tuple(_walk(file.fired, tables, asked, step)))


def _refused(file: FiredFile, why: str) -> FiredFile:
    outcome = Outcome.not_started(why)
    fired = (replace(each, outcome=outcome) if each.reason is None else each for each in file.fired)
    return replace(file, fired=tuple(fired))


def _walk(
    fired: Sequence[Fired],
    tables: Mapping[str, Transform],
    asked: Question | None,
    step: Callable[[Transform], CommandStep],
) -> Iterator[Fired]:
    is_replaced = False
    for each in fired:
        if each.reason is not None:
            yield each
        elif asked is None:
            yield replace(each, matched=False, reason=NO_OUTPUT)
        elif is_replaced:
            yield replace(each, reason=REPLACED)
        else:
            transform = tables[each.handler.name]
            command = step(transform)
            if not command_handler(transform, command).is_for(asked.result):
                yield replace(each, matched=False, reason=FILTERED)
                continue
            began = time.monotonic()
            said = command.ask(asked, transform.table.timeout)
            is_replaced = isinstance(said, Value)
            yield _told(each, said, time.monotonic() - began)


def _told(fired: Fired, said: Said, seconds: float) -> Fired:
    if isinstance(said, Fault):
        outcome = Outcome(said.kind, said.exit_code, said.signal, seconds, NOTHING, NOTHING, said.reason)
        return replace(fired, outcome=outcome)
    outcome = Outcome("ok", 0, None, seconds, NOTHING, NOTHING)
    answer = Answer(fired.handler.name, output=said.text) if isinstance(said, Value) else None
    return replace(fired, outcome=outcome, answer=answer)
