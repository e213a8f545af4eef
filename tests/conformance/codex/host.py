"""A small agent with Codex's life cycle, whose one hook is prxbus.

    event -> the agent's own payload -> from_agent -> each handler's stdin -> its answer -> judge -> answers
          -> the bus's merge -> render -> what the agent reads -> its effects on the conversation

The model is a script: what it says and which tools it calls. Handlers are functions from the decoded payload
to what they write. No process is started and no socket opened; all that is decided is the project's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import orjson

from broker.protocol.decisions import NOTHING, Answer, Heard, input_of, merge
from subscribers.dialects.codex_canonical import from_agent
from subscribers.dialects.codex_events import EVENTS, matched_values
from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_matcher import MatchIndex
from subscribers.dialects.codex_merge import Finished, answers, rewrite_fault
from subscribers.dialects.codex_payload import payload_for
from subscribers.dialects.codex_profiles import CODEX
from subscribers.dialects.codex_render import Rendered, render
from subscribers.dialects.codex_result import Terms, judge
from subscribers.dialects.codex_result_values import Effects, Judged
from subscribers.dialects.codex_spec import CodexHandler
from subscribers.dialects.codex_spill import within_limits
from subscribers.hooks.outcome import Captured, Outcome
from subscribers.runner.codex_sessions import Sessions
from subscribers.runner.codex_work import SAFE_POINTS

Payload = dict[str, Any]


class Wrote(NamedTuple):
    """What a handler wrote, and how it ended."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


Respond = Callable[[Payload], "Wrote | Mapping[str, Any] | str"]


class Tool(NamedTuple):
    """A tool call of the model, and what the tool would return for an input."""

    name: str
    input: Any
    run: Callable[[Any], Any] = lambda given: f"ran {given}"
    id: str = "call-1"


class Message(NamedTuple):
    """One message of the conversation."""

    role: str
    text: str


Step = str | Tool | None
"""What the model does next: it says something, calls a tool, or (None) its context is compacted first."""


def stream(text: str) -> Captured:
    """An output stream that was kept whole."""
    return Captured(text.encode(), b"", len(text.encode()))


@dataclass
class Host:
    """The agent. ``document`` is its hook file, ``respond`` what each command does.

    ``requests`` are the conversations as the model was sent them, ``runs`` which handler read what, ``files``
    the texts that were saved, by path, ``tools`` the inputs that tools ran with.
    """

    document: Mapping[str, Any]
    respond: Mapping[str, Respond]
    second: bytes | None = None
    source: str = "startup"
    transcript: str | None = None
    tool_names: tuple[str, ...] = ("Bash", "apply_patch")
    history: list[Message] = field(default_factory=list)
    requests: list[list[Message]] = field(default_factory=list)
    runs: list[tuple[str, Payload]] = field(default_factory=list)
    results: list[tuple[str, Judged]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    tools: list[Any] = field(default_factory=list)
    turns: int = 0
    sessions: Sessions = field(default_factory=Sessions)
    ended: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the hook files, as strictly as Codex."""
        first = read_document(json.dumps(self.document).encode(), "/h/hooks.json", CODEX, strict=True)
        handlers = first.handlers
        if self.second is not None:
            toml = read_document(self.second, "/h/config.toml", CODEX, strict=True, first_order=len(handlers))
            handlers += toml.handlers
        assert not first.refused
        self.handlers = handlers
        self.index = MatchIndex(handlers)

    # ---- prxbus --------------------------------------------------------------------------------------

    def hooked(self, event: str, payload: Payload) -> Rendered:
        """What the agent's one hook command writes of an event."""
        raw = orjson.dumps(payload)
        found = from_agent("codex", raw)
        canonical = orjson.loads(orjson.dumps(found.payload))
        chosen = self.index.select(event, matched_values(event, CODEX, payload))
        runs = [self._run(handler, event, canonical) for handler in chosen]
        tool = payload.get("tool_name")
        late = self.sessions.take("s") if EVENTS[event].canonical in SAFE_POINTS else []
        said = answers(event, CODEX, [run for run in runs if run is not None], tool_name=tool)
        decision = merge([Heard("codex", "open", None, 0.0, (*late, *said))], input_of(canonical))
        return render(event, CODEX, decision)

    def _run(self, handler: CodexHandler, event: str, canonical: Payload) -> Finished | None:
        stdin = orjson.loads(payload_for(event, CODEX, canonical))
        self.runs.append((handler.command, stdin))
        wrote = self.respond[handler.command](stdin)
        if isinstance(wrote, Mapping):
            wrote = json.dumps(wrote)
        if isinstance(wrote, str):
            wrote = Wrote(wrote)
        outcome = Outcome.exited(wrote.code, 0.1, stream(wrote.stdout), stream(wrote.stderr))
        terms = Terms(handler.is_async, handler.context_limit, strict=True)
        judged = judge(event, CODEX, outcome, terms)
        self.results.append((handler.command, judged))
        effects = within_limits(judged.effects, CODEX, self._save)
        if handler.is_async:
            texts = tuple(context.text for context in effects.contexts)
            message = "\n".join(effects.warnings) or None
            self.ended.append(Answer(handler.command, contexts=texts, system_message=message))
            return None
        return Finished(handler.command, Judged(judged.status, judged.entries, effects), len(self.runs))

    def _save(self, text: str) -> str:
        path = f"/tmp/hook_outputs/s/{len(self.files)}.txt"
        self.files[path] = text
        return path

    def time_passes(self) -> None:
        """The asynchronous handlers that were started have ended meanwhile."""
        for answer in self.ended:
            self.sessions.keep("s", answer)
        self.ended.clear()

    # ---- the agent -----------------------------------------------------------------------------------

    def fire(self, event: str, **fields: Any) -> Effects:
        """Have an event hooked, and read the answer as Codex reads that of any hook."""
        turn = {} if event in ("SessionStart", "SessionEnd") else {"turn_id": f"turn-{self.turns}"}
        own = {"model": "gpt", "permission_mode": "default"}
        if event == "SessionEnd":
            own = {}
        elif event.endswith("Compact"):
            own = {"model": "gpt"}
        payload = {
            "session_id": "s",
            **turn,
            "transcript_path": self.transcript,
            "cwd": "/w",
            "hook_event_name": event,
            **own,
            **fields,
        }
        wrote = self.hooked(event, payload)
        streams = (
            Captured(wrote.stdout, b"", len(wrote.stdout)),
            Captured(wrote.stderr, b"", len(wrote.stderr)),
        )
        judged = judge(event, CODEX, Outcome.exited(wrote.exit_code, 0.1, *streams), Terms(strict=True))
        assert judged.status != "failed", (event, wrote, judged)
        self.history.extend(Message("developer", context.text) for context in judged.effects.contexts)
        return judged.effects

    def turn(self, prompt: str, script: Sequence[Step]) -> None:
        """One turn: the prompt, and what the model does until it has nothing more to do."""
        self.turns += 1
        if self.turns == 1 and self.fire("SessionStart", source=self.source).stop:
            return
        if not self.accepts(prompt):
            return
        active = False
        for step in script:
            if step is None and self.compact("auto"):
                return
            if step is None:
                continue
            self.requests.append(list(self.history))
            if isinstance(step, Tool):
                self.history.append(Message("tool", self.call(step)))
                self.time_passes()
                continue
            self.history.append(Message("assistant", step))
            effects = self.fire("Stop", stop_hook_active=active, last_assistant_message=step)
            if effects.stop or effects.verdict != "deny":
                return
            self.history.append(Message("user", effects.reason or ""))
            active = True

    def accepts(self, prompt: str) -> bool:
        """Whether a prompt is sent."""
        effects = self.fire("UserPromptSubmit", prompt=prompt)
        if effects.stop or effects.verdict == "deny":
            return False
        self.history.append(Message("user", prompt))
        return True

    def compact(self, trigger: str) -> bool:
        """Whether a compaction, or what is said before or after it, ends the turn."""
        if self.fire("PreCompact", trigger=trigger).stop:
            return True
        self.history.clear()
        if self.fire("PostCompact", trigger=trigger).stop:
            return True
        return self.fire("SessionStart", source="compact").stop

    def call(self, tool: Tool) -> str:
        """What the model reads of a tool call."""
        common = {"tool_name": tool.name, "tool_input": tool.input}
        before = self.fire("PreToolUse", **common, tool_use_id=tool.id)
        if before.verdict == "deny":
            return blocked(tool, before.reason or "")
        given = tool.input
        if before.updated_input is not NOTHING:
            given = before.updated_input
            fault = rewrite_fault(CODEX, tool.name, given)
            if fault is not None:
                return fault
        output = tool.run(given)
        self.tools.append(given)
        after = self.fire(
            "PostToolUse", tool_name=tool.name, tool_input=given, tool_response=output, tool_use_id=tool.id
        )
        if after.feedback is not None:
            return after.feedback
        return output if isinstance(output, str) else json.dumps(output)

    def approve(self, tool: Tool) -> tuple[str, str | None]:
        """``allow``, ``deny`` or ``ask`` (the user or a reviewer), with what is said of a denial."""
        effects = self.fire("PermissionRequest", tool_name=tool.name, tool_input=tool.input)
        return ("ask" if effects.verdict == "none" else effects.verdict), effects.reason


def blocked(tool: Tool, reason: str) -> str:
    """What Codex tells the model of a call that a hook has refused."""
    if tool.name in ("Bash", "apply_patch"):
        return f"Command blocked by PreToolUse hook: {reason}. Command: {tool.input['command']}"
    return f"Tool call blocked by PreToolUse hook: {reason}. Tool: {tool.name}"


def hooks(**events: Sequence[tuple[str | None, str] | Mapping[str, Any]]) -> dict[str, Any]:
    """A hook file: for each event pairs of matcher and command, or whole groups."""
    return {
        "hooks": {
            event: [
                group
                if isinstance(group, Mapping)
                else {"matcher": group[0], "hooks": [{"type": "command", "command": group[1]}]}
                for group in groups
            ]
            for event, groups in events.items()
        }
    }


def says(event: str, **specific: Any) -> Respond:
    """A handler that always answers with this ``hookSpecificOutput``."""
    answer = {"hookSpecificOutput": {"hookEventName": event, **specific}}
    return partial(_constant, answer)


def answers_with(answer: Wrote | Mapping[str, Any] | str) -> Respond:
    """A handler that always writes the same."""
    return partial(_constant, answer)


def _constant(answer: Any, _payload: Payload) -> Any:
    return answer
