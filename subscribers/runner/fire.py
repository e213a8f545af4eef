"""One event put to the handlers of some files, without a bus: matched, run, and their decisions merged.

It decides the order of things. How a handler of each kind is run is in the modules beside this one.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from broker.protocol.decisions import Failure, Heard, input_of, merge
from broker.protocol.envelope import PUBLISHER_BYTES
from broker.protocol.events import Event

from ..dialects.codex_profiles import PROFILES
from ..dialects.python_explanation import DECIDES
from ..dialects.python_explanation import NAME as PYTHON
from ..dialects.rolebox_rules import NAME as ROLEBOX
from ..hooks.explanation import ExplainedFile, Handler, text
from ..hooks.firing import Fired, FiredFile, Firing, match
from ..hooks.outcome import Outcome
from ..sources.inspect_files import CONFIGURATION
from ..sources.inspect_world import World

SOURCE: Final = "prxbus fire"


def event_of(topic: str, payload: bytes, session_id: str | None) -> Event:
    """An event as if an agent had published it now."""
    unique = os.urandom(PUBLISHER_BYTES)
    return Event.of(topic, 0, unique, 1, time.time_ns(), text(session_id), SOURCE, None, payload)


def fire(
    event: Event,
    files: Sequence[ExplainedFile],
    here: World,
    runtime_dir: str,
    *,
    is_sample: bool = False,
    is_dry: bool = False,
) -> Firing:
    """Put ``event`` to the handlers of ``files`` and wait until all are done. ``is_dry``: none is run."""
    found = [FiredFile(file, match(file.explained.handlers, event.topic)) for file in files]
    if any(file.dialect == ROLEBOX for file in files):
        from .fire_roles import select

        found = select(found, event, here)
    if is_dry:
        found = _run_family(found, event, here, runtime_dir, is_dry=True)
    else:
        with _existing(runtime_dir) as directory:
            found = _run(found, event, here, directory)
    return Firing(
        event.topic,
        event.session_id,
        event.payload,
        is_sample,
        is_dry,
        tuple(found),
        merge(_heard(found), input_of(event.payload)),
    )


def _run(files: list[FiredFile], event: Event, here: World, runtime_dir: str) -> list[FiredFile]:
    """Run what matches: commands side by side, plugins after them, then what is asked in order."""
    files = [replace(file, fired=tuple(map(_cannot_start, file.fired))) for file in files]
    files = _run_commands(files, event, here, runtime_dir)
    files = _run_family(files, event, here, runtime_dir)
    files = _call_roles(files, event, here)
    files = [_call_plugin(file, event, here) for file in files]
    return list(_in_order(files, event, here, runtime_dir))


@contextmanager
def _existing(runtime_dir: str) -> Iterator[str]:
    """The directory of a bus that runs get to see; an empty one for the time being where there is none."""
    if os.path.isdir(runtime_dir):
        yield runtime_dir
    else:
        with tempfile.TemporaryDirectory(prefix="prxbus-fire-", ignore_cleanup_errors=True) as directory:
            yield directory


def _cannot_start(fired: Fired) -> Fired:
    """A handler that the event is for and that cannot run has an outcome too."""
    if not fired.is_broken:
        return fired
    return replace(fired, outcome=Outcome.not_started(fired.reason or fired.handler.status))


def _run_commands(files: list[FiredFile], event: Event, here: World, runtime_dir: str) -> list[FiredFile]:
    wanted = [
        (fired.handler.spec, file.file.workspace, here.configured(file.file.workspace).settings.hooks)
        for file in files
        for fired in file.fired
        if fired.reason is None and fired.handler.spec is not None
    ]
    if not wanted:
        return files
    from .fire_shell import ShellRuns

    with ShellRuns(runtime_dir, here.prxbus_folder) as runs:
        outcomes = iter(runs.run(wanted, event))

    def with_outcome(fired: Fired) -> Fired:
        is_command = fired.reason is None and fired.handler.spec is not None
        return replace(fired, outcome=next(outcomes)) if is_command else fired

    return [replace(file, fired=tuple(map(with_outcome, file.fired))) for file in files]


def _run_family(
    files: list[FiredFile], event: Event, here: World, runtime_dir: str, *, is_dry: bool = False
) -> list[FiredFile]:
    if not any(file.file.dialect in PROFILES for file in files):
        return files
    from .fire_codex import call as call_family

    return call_family(files, event, here, runtime_dir, is_dry=is_dry)


def _call_roles(files: list[FiredFile], event: Event, here: World) -> list[FiredFile]:
    if not any(file.file.dialect == ROLEBOX for file in files):
        return files
    from .fire_roles import call as call_roles

    return call_roles(files, event, here)


def _call_plugin(file: FiredFile, event: Event, here: World) -> FiredFile:
    if not any(fired.reason is None and fired.handler.runtime == "wasm" for fired in file.fired):
        return file
    from .fire_wasm import call

    workspace = file.file.workspace
    outcome, published = call(file.file.path, workspace, event, here.configured(workspace).settings.wasm)

    def with_outcome(fired: Fired) -> Fired:
        is_called = fired.reason is None and fired.handler.runtime == "wasm"
        return replace(fired, outcome=outcome, published=published) if is_called else fired

    return replace(file, fired=tuple(map(with_outcome, file.fired)))


def _in_order(files: Sequence[FiredFile], event: Event, here: World, runtime_dir: str) -> Iterator[FiredFile]:
    """Transforms and functions, file by file: no transform is asked about what an earlier one replaced."""
    is_replaced = False
    for file in files:
        done = file
        if any(fired.reason is None and fired.outcome is None for fired in file.fired):
            if file.file.dialect == PYTHON:
                from .fire_python import call as call_functions

                done = call_functions(file, event, here.environ, is_replaced=is_replaced)
            elif file.file.dialect == CONFIGURATION:
                from .fire_transform import call as call_commands

                configured = here.configured(file.file.workspace)
                done = call_commands(file, event, configured, runtime_dir, here.prxbus_folder)
        yield done
        answers = (fired.answer for fired in done.fired if fired.handler.runtime == "transform")
        is_replaced = is_replaced or any(answer is not None for answer in answers)


def _decider(file: ExplainedFile) -> str:
    """What the process is called that would answer for a file."""
    if file.dialect in PROFILES:
        return "codex"
    return f"python:{text(os.path.basename(file.path))}" if file.dialect == PYTHON else "transform"


def _heard(files: Sequence[FiredFile]) -> list[Heard]:
    """The files whose handlers decide or transform, as the deciders of an ask."""
    return [found for file in files for found in _heard_of(file)]


def _heard_of(file: FiredFile) -> Iterator[Heard]:
    """A file as its process registers it: a decider for each failure policy of its handlers."""
    if file.file.dialect == ROLEBOX:
        ran = [fired for fired in file.fired if fired.outcome is not None]
        if ran:  # it answers whatever became of its hooks
            yield _heard_as("roles", "open", ran)._replace(silence=None)
        return
    is_family = file.file.dialect in PROFILES
    ran = [fired for fired in file.fired if fired.outcome is not None]
    asked = [fired for fired in ran if is_family or _is_asked(fired.handler)]
    if is_family:
        if asked:
            yield _heard_as(_decider(file.file), "open", asked)
        return
    name = _decider(file.file)
    closed = [fired for fired in asked if fired.handler.failure == "closed"]
    if closed:
        yield _heard_as(name, "closed", closed)
    if len(closed) < len(asked):
        rest = [fired for fired in asked if fired.handler.failure == "open"]
        is_shared = any(handler.failure == "closed" for handler in file.file.explained.handlers)
        yield _heard_as(f"{name} (open)" if is_shared else name, "open", rest)


def _heard_as(name: str, failure: Failure, asked: Sequence[Fired]) -> Heard:
    answers = tuple(fired.answer for fired in asked if fired.answer is not None)
    has_failed = not answers and all(fired.has_failed for fired in asked)
    seconds = sum(fired.outcome.duration_s for fired in asked if fired.outcome is not None)
    return Heard(name, failure, "failed" if has_failed else None, seconds, answers)


def _is_asked(handler: Handler) -> bool:
    """Whether what a handler returns is of effect."""
    return handler.runtime == "transform" or handler.command == DECIDES
