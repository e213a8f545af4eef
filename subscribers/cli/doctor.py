"""``prxbus doctor``: whether the events of attached agents get here, tried; and what is missing if not.

It looks at the bus, at what listens for agents, and at each agent's settings; then it fires a test event as
the agent would: with the very command, and to the very address, that stand in the settings. Decides what is
tried and how it is told; what a settings file lacks is :mod:`subscribers.sources.attach_diagnosis`'s.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from broker.cli.exits import DONE, FAILED
from broker.cli.options import add_json
from broker.cli.printing import emit, emit_json
from broker.places import runtime_directory
from broker.protocol.errors import BusError

from .hook import SHIM, SOCKET_NAME, python

if TYPE_CHECKING:
    from ..runner.agent_probe import Sent
    from ..sources.attach_diagnosis import Diagnosis, Expected, Finding
    from ..sources.attach_files import Place

EVENT: Final = "PrxbusDoctor"
TOPIC: Final = "prx.lifecycle.prxbus_doctor"
"""The test event: no agent has one of this name, so only handlers of every event see it."""

SECONDS: Final = 10.0
_MARKS: Final = {"ok": "ok   ", "note": "note ", "fault": "FAULT"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``doctor``."""
    parser.add_argument(
        "--project", metavar="DIR", default=".", help="also the settings of this project (default: here)"
    )
    add_json(parser, "the findings")
    parser.epilog = "Exit codes: 0 everything that is attached works; 1 something does not."


def run(options: argparse.Namespace) -> int:
    """Look, try, and tell."""
    findings = list(_examine(options))
    if options.json:
        emit_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            emit(f"{_MARKS[finding.level]} {finding.text}")
            if finding.hint is not None:
                emit(f"      {finding.hint}")
    return FAILED if any(finding.level == "fault" for finding in findings) else DONE


def _examine(options: argparse.Namespace) -> Iterator[Finding]:
    from ..sources.attach_diagnosis import Expected, Finding

    yield from _installation()
    directory = runtime_directory(options.runtime_dir)
    has_bus, found = _bus(directory, options.runtime_dir)
    yield from found
    address, token = _http(directory)
    expected = Expected(
        SHIM, os.path.join(directory, SOCKET_NAME), address, token, runtime_dir=options.runtime_dir
    )
    listens = False
    if has_bus:
        listens, found = _agents(directory, expected.socket)
        yield from found
    attached = list(_attached(options, expected))
    for _, diagnosis in attached:
        yield from diagnosis.findings
    if not any(diagnosis.entries for _, diagnosis in attached):
        hint = "prxbus attach claude-code, or prxbus attach codex"
        yield Finding("note", "no agent is attached", hint)
    if listens:
        yield from _tries(directory, expected, attached)


def _installation() -> Iterator[Finding]:
    """A stranger's package of the same import name would take the place of ours."""
    from importlib.metadata import packages_distributions

    from ..sources.attach_diagnosis import Finding

    found = set(packages_distributions().get("broker", ()))
    strangers = sorted(found - {"prxbus"})
    if strangers:
        yield Finding(
            "fault",
            f"the package {', '.join(strangers)} also installs 'broker', and one hides the other",
            f"pip uninstall {' '.join(strangers)}, then install prxbus again",
        )


def _bus(directory: str, named: str | None) -> tuple[bool, list[Finding]]:
    from broker.client.tool import Tool

    from ..sources.attach_diagnosis import Finding

    try:
        with Tool("prxbus-doctor", runtime_dir=directory) as tool:
            tool.request("status")
    except BusError as error:
        start = "prxbus up" if named is None else shlex.join(["prxbus", "up", "--runtime-dir", named])
        return False, [Finding("fault", f"no bus: {error}", f"start one: {start}")]
    return True, [Finding("ok", f"a bus answers in {directory}")]


def _agents(directory: str, socket: str) -> tuple[bool, list[Finding]]:
    from ..runner.agent_probe import ask_status
    from ..runner.hook_spool import DIRECTORY
    from ..sources.attach_diagnosis import Finding

    try:
        said = ask_status(socket)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return False, [
            Finding(
                "fault",
                f"nobody listens for agents at {socket}: {why}",
                "prxbus up does, unless the setting agents.enabled is false; a socket that was removed it "
                "makes again within a second or two",
            )
        ]
    counted = ", ".join(f"{said.get(name)} {name}" for name in ("answered", "failed", "delivered"))
    findings = [Finding("ok", f"agents are listened for at {socket} ({counted})")]
    try:
        waiting = sum(name[0] not in ".d" for name in os.listdir(os.path.join(directory, DIRECTORY)))
    except OSError:
        waiting = 0
    if waiting:
        findings.append(Finding("note", f"{waiting} events of agents wait to be taken"))
    if said.get("spool_dropped"):
        findings.append(
            Finding("note", f"{said['spool_dropped']} events of agents were lost while no bus was there")
        )
    return True, findings


def _http(directory: str) -> tuple[str | None, str | None]:
    """Where the API is served, and the token of hooks; None where there is none."""
    from ..http.token_file import TokenRefused, find_hook_token
    from ..runner.agent_http import read_address
    from ..sources.attach_files import state_directory

    try:
        token, _ = find_hook_token(state_directory(), os.environ)
    except TokenRefused:
        return read_address(directory), None
    return read_address(directory), token


def _attached(options: argparse.Namespace, expected: Expected) -> Iterator[tuple[Place, Diagnosis]]:
    from ..sources.attach_diagnosis import Diagnosis, Finding, diagnose
    from ..sources.attach_files import AGENTS, Unwritable, find_place, read_settings
    from ..sources.import_sources import homes

    found = homes(os.environ)
    for agent in AGENTS:
        for project in (None, os.path.abspath(options.project)):
            place = find_place(agent, found, project)
            try:
                text, _ = read_settings(place.path)
                config = read_settings(os.path.join(found.codex, "config.toml"))[0]
            except Unwritable as error:
                yield place, Diagnosis((Finding("fault", str(error), "let this user read it"),), {})
                continue
            if text is not None:
                yield place, diagnose(place, text, expected, config)


def _tries(
    directory: str, expected: Expected, attached: Iterable[tuple[Place, Diagnosis]]
) -> Iterator[Finding]:
    """Fire a test event over each way that stands in the settings; without any, the way that would."""
    from ..hooks.withheld import HOOK_TOKEN
    from ..runner.agent_probe import HttpSender, send_command

    commands: dict[str, str] = {}
    urls: dict[tuple[str, str], str] = {}
    for place, diagnosis in attached:
        for event, handler in diagnosis.entries.items():
            if handler.get("type") == "command":
                commands.setdefault(str(handler["command"]), f"{place.agent}'s command for {event}")
            else:
                sent = str((handler.get("headers") or {}).get("Authorization"))
                sent = sent.replace(f"${HOOK_TOKEN}", expected.token or "")
                urls.setdefault((str(handler["url"]), sent), f"{place.agent}'s HTTP hook for {event}")
    if not commands and not urls:
        arguments = ("-I", "-S", SHIM, "claude", expected.socket, f"{SECONDS:g}", "closed")
        yield _try(
            directory, "the hook command", lambda p: send_command((python(), *arguments), p, os.environ)
        )
    for command, name in _different(commands):
        yield _try(directory, name, lambda p, command=command: send_command(command, p, os.environ))
    for (url, authorization), name in list(urls.items())[:2]:
        sender = HttpSender(url, authorization)
        try:
            yield _try(directory, name, sender.send)
        finally:
            sender.close()


def _different(commands: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """One command of each kind: they differ in seconds and policy alone."""
    from ..sources.attach_plan import words_of

    seen: set[tuple[str, ...]] = set()
    for command, name in commands.items():
        kind = tuple(words_of({"command": command})[:6])
        if kind not in seen:
            seen.add(kind)
            yield command, name


def _try(directory: str, name: str, send: Any) -> Finding:
    """Send a test event and wait for it to come by on the bus."""
    from broker.client import Subscriber

    from ..sources.attach_diagnosis import Finding

    session = f"doctor-{secrets.token_hex(8)}"
    payload = orjson.dumps(
        {"session_id": session, "transcript_path": None, "cwd": os.getcwd(), "hook_event_name": EVENT}
    )
    try:
        with Subscriber([TOPIC], name="prxbus-doctor", runtime_dir=directory) as bus:
            sent: Sent = send(payload)
            if sent.failed is None and not sent.blocked:
                for event in bus.batch(timeout=SECONDS):
                    if event.session_id == session:
                        return Finding(
                            "ok", f"{name}: a test event came through in {sent.seconds * 1e3:.0f} ms"
                        )
    except BusError as error:
        return Finding("fault", f"{name}: {error}", "see what 'prxbus up' says")
    why = sent.failed or "it was answered, and never came by on the bus"
    return Finding("fault", f"{name}: a test event did not come through: {why}", "see what 'prxbus up' says")
