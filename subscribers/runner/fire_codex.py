"""Puts one event to handlers of the Codex family without a bus, exactly as their process would.

All that the event starts, of all files, are started together; what each comes to is judged and merged by the
family's rules. It decides nothing of its own beyond why a handler was not started.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from broker.protocol.decisions import Answer
from broker.protocol.errors import BusError
from broker.protocol.events import Event

from ..dialects.codex_events import matched_values
from ..dialects.codex_file import read_document
from ..dialects.codex_matcher import MatchIndex
from ..dialects.codex_merge import Finished, answers
from ..dialects.codex_payload import event_for
from ..dialects.codex_profiles import PROFILES, Profile
from ..dialects.codex_result import Terms, judge
from ..dialects.codex_result_values import Judged
from ..dialects.codex_spec import CodexHandler
from ..dialects.codex_spill import within_limits
from ..hooks.diagnostics import quote
from ..hooks.firing import FiredFile
from ..hooks.outcome import Outcome
from ..runtimes.deadlines import Deadlines
from ..runtimes.orphans import become_subreaper
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Limits, SandboxUnavailable
from ..sources.codex_documents import Snapshot
from ..sources.codex_inspection import read
from ..sources.codex_layers import REMOTE, Layer
from ..sources.hook_source import Content
from ..sources.inspect_world import World
from .codex_invocation import Scene, folder_of
from .codex_reports import answer_name
from .codex_runs import Runs, patterns_of
from .codex_selection import Chosen, Selection, select
from .enclosure import open_sandbox
from .views import lifecycle_event

END_SECONDS: Final = 2.0
MOST_AT_ONCE: Final = 64


def call(
    files: Sequence[FiredFile], event: Event, here: World, runtime_dir: str, *, is_dry: bool = False
) -> list[FiredFile]:
    """The files with what came of the handlers of those that belong to the family.

    ``is_dry``: nothing is started; who would not be, and why, is told all the same.
    """
    family = [file for file in files if file.file.dialect in PROFILES]
    wanted = [file for file in family if any(fired.reason is None for fired in file.fired)]
    if not wanted:
        return list(files)
    handlers = {file.file.path: _handlers(file, here) for file in wanted}
    name = lifecycle_event(event.topic)
    workspace = wanted[0].file.workspace
    assert name is not None  # only lifecycle events are theirs
    try:
        snapshot = _snapshot(wanted, handlers, here.configured(workspace).settings.hooks.strict)
        selection = select(snapshot, name, event, workspace, _home(here))
    except (BusError, ValueError) as error:
        why = f"its payload cannot be had: {error}"
        told = _skipped if is_dry else _all
        return [told(file, why) if file in wanted else file for file in files]
    if selection.remote is not None:
        return [_skipped(file, REMOTE) if file in wanted else file for file in files]
    chosen = {(each.handler.path, each.handler.id): each for each in selection.chosen}
    if is_dry:
        ended: _Ended = {}
    else:
        ended = _run(list(chosen.values()), selection, workspace, event, here, runtime_dir)
    said = {} if is_dry else _answers(list(chosen.values()), ended)
    return [
        _told(file, chosen, ended, said, handlers, event, name) if file in wanted else file for file in files
    ]


def _handlers(file: FiredFile, here: World) -> dict[str, CodexHandler]:
    """The handlers of a file that can run, by name."""
    profile = PROFILES[file.file.dialect or ""]
    reading = read(profile.name, file.file.path)
    content = reading.text if isinstance(reading, Content) else b""
    strict = here.configured(file.file.workspace).settings.hooks.strict
    document = read_document(content, file.file.path, profile, strict=strict)
    return {handler.id: handler for handler in document.handlers if handler.unsupported is None}


def _snapshot(
    files: Sequence[FiredFile], handlers: Mapping[str, Mapping[str, CodexHandler]], strict: bool
) -> Snapshot:
    """The files as layers, numbered through as if they were all there is."""
    found: list[CodexHandler] = []
    layers: dict[str, Layer] = {}
    for file in files:
        profile, path = file.file.dialect or "", file.file.path
        layers[path] = Layer("fired", path, profile, "user")
        runnable = {fired.handler.name for fired in file.fired if fired.reason is None}
        for handler in handlers[path].values():
            if handler.id in runnable:
                found.append(replace(handler, order=len(found)))
    by_profile = {
        profile: MatchIndex(handler for handler in found if handler.profile == profile)
        for profile in {handler.profile for handler in found}
    }
    return Snapshot(1, tuple(found), by_profile, (), layers, strict=strict)


def _run(
    chosen: Sequence[Chosen],
    selection: Selection,
    workspace: str,
    event: Event,
    here: World,
    runtime_dir: str,
) -> dict[tuple[str, str], tuple[Outcome, Judged, float]]:
    """Every handler to its end, all at once."""
    if not chosen:
        return {}
    hooks = here.configured(workspace).settings.hooks
    folder = folder_of(selection.cwd, workspace, here.environ)
    scene = Scene(here.environ, folder, workspace, runtime_dir, event.id, event.depth)
    with ExitStack() as stack:
        deadlines = Deadlines()
        stack.callback(deadlines.close)
        reaper = Reaper(adopts=become_subreaper())
        stack.callback(lambda: reaper.close(time.monotonic() + END_SECONDS))
        runs = Runs(reaper, deadlines, patterns_of(hooks.http_urls))
        limits = Limits(hooks.sandbox_memory_bytes, hooks.sandbox_processes, hooks.sandbox_file_bytes)
        try:
            sandbox = open_sandbox(hooks.sandbox, workspace, limits, here.prxbus_folder)
        except SandboxUnavailable as error:
            runs.refusal = f"hooks.sandbox is {hooks.sandbox}, which cannot be used here: {error}"
        else:
            if sandbox is not None:
                stack.callback(sandbox.close)
                runs.enclose = sandbox.enclose

        def one(each: Chosen) -> tuple[Outcome, Judged, float]:
            outcome = runs.run(each, scene, each.handler.timeout_s)
            return outcome, _judged(each, outcome, selection.strict), time.monotonic()

        with ThreadPoolExecutor(min(len(chosen), MOST_AT_ONCE), "run") as threads:
            try:
                ended = list(threads.map(one, chosen))
            except BaseException:
                reaper.close(time.monotonic() + END_SECONDS)
                raise
    return {
        (each.handler.path, each.handler.id): each_ended
        for each, each_ended in zip(chosen, ended, strict=True)
    }


def _judged(chosen: Chosen, outcome: Outcome, strict: bool) -> Judged:
    handler, profile = chosen.handler, chosen.profile
    terms = Terms(handler.is_async, handler.context_limit, handler.timeout_s, handler.on_failure, strict)
    judged = judge(handler.event, profile, outcome, terms)
    return replace(judged, effects=within_limits(judged.effects, profile, _save))


def _save(text: str) -> str | None:
    """A long text as a file that stays, for whoever looks at what was fired."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="prxbus-hook-output-", suffix=".txt", delete=False
        ) as file:
            file.write(text)
    except OSError:
        return None
    return file.name


_Ended = Mapping[tuple[str, str], tuple[Outcome, Judged, float]]


def _answers(chosen: Sequence[Chosen], ended: _Ended) -> dict[str, Answer]:
    """What the handlers of each profile answer together, by the name that answers have."""
    by_profile: dict[str, list[Chosen]] = {}
    for each in chosen:
        by_profile.setdefault(each.profile.name, []).append(each)
    found: dict[str, Answer] = {}
    for own in by_profile.values():
        waited_for = [each for each in own if not each.handler.is_async]
        finished = [
            Finished(answer_name(each.handler), *ended[each.handler.path, each.handler.id][1:])
            for each in waited_for
        ]
        first = own[0]
        for answer in answers(first.handler.event, first.profile, finished, tool_name=first.tool):
            found[answer.handler] = answer
    return found


def _told(
    file: FiredFile,
    chosen: Mapping[tuple[str, str], Chosen],
    ended: _Ended,
    said: Mapping[str, Answer],
    handlers: Mapping[str, Mapping[str, CodexHandler]],
    event: Event,
    name: str,
) -> FiredFile:
    path = file.file.path
    fired = []
    for each in file.fired:
        key = (path, each.handler.name)
        if each.reason is not None:
            fired.append(each)
        elif key in ended:
            outcome, judged, _ = ended[key]
            answer = said.get(answer_name(chosen[key].handler))
            answer = None if answer is None else answer._replace(handler=each.handler.name)
            fired.append(replace(each, outcome=_as_read(outcome, judged), answer=answer))
        elif key in chosen:
            fired.append(each)
        else:
            handler = handlers[path].get(each.handler.name)
            why = _why_not(handler, PROFILES[file.file.dialect or ""], event, name)
            fired.append(replace(each, matched=False, reason=why))
    return replace(file, fired=tuple(fired))


def _as_read(outcome: Outcome, judged: Judged) -> Outcome:
    """The outcome as its profile reads it: a block is no failure, and an answer that is none is one."""
    errors = "; ".join(judged.errors) or None
    if judged.status != "failed":
        return replace(outcome, status="ok", reason=outcome.reason or errors)
    status = "failed" if outcome.status == "ok" else outcome.status
    return replace(outcome, status=status, reason=outcome.reason or errors)


def _why_not(handler: CodexHandler | None, profile: Profile, event: Event, name: str) -> str:
    """Why a handler of the event was not started."""
    if handler is None:
        return "it cannot be run"
    native = event_for(profile, name, event.payload)
    if native != handler.event:
        return f"this {name} is {native or 'no hook event'} in {profile.agent}, not {handler.event}"
    try:
        values = matched_values(
            handler.event, profile, event.payload | {"tool_name": event.payload.get("tool")}
        )
    except BusError:
        values = ()
    if not any(handler.matches.matches(value) for value in values):
        compared = " or ".join(quote(value) for value in values)
        rule = ", compared with the whole value," if profile.matcher == "anchored" else ""
        return f"its matcher {quote(handler.matcher or '')}{rule} does not match {compared}"
    if handler.condition is not None:
        return f"its if {quote(handler.condition.text)} does not hold"
    return f"{profile.agent} runs an equal handler once, and that is one that stands before it"


def _home(here: World) -> str:
    return here.environ.get("HOME") or "/"


def _all(file: FiredFile, why: str) -> FiredFile:
    outcome = Outcome.not_started(why)
    fired = (replace(each, outcome=outcome) if each.reason is None else each for each in file.fired)
    return replace(file, fired=tuple(fired))


def _skipped(file: FiredFile, why: str) -> FiredFile:
    fired = (replace(each, reason=why) if each.reason is None else each for each in file.fired)
    return replace(file, fired=tuple(fired))
