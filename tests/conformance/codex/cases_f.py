"""Part F: what an agent with Codex's life cycle does when prxbus is its one hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from subscribers.dialects.codex_merge import Finished, merge_judged
from subscribers.dialects.codex_payload import payload_for
from subscribers.dialects.codex_profiles import CODEX
from subscribers.dialects.codex_trust import trust_status
from tests.conformance.codex.conformance import Case
from tests.conformance.codex.host import Host, Message, Payload, Tool, Wrote, answers_with, hooks, says

BASH: Final = Tool("Bash", {"command": "rm x"})
PATCH: Final = Tool("apply_patch", {"command": "*** Begin Patch"}, lambda given: "Exit code: 0\nA new.txt")
PLAN: Final = Tool("update_plan", {"plan": ["a"]})
MCP: Final = Tool(
    "mcp__memory__echo",
    {"message": "hi"},
    lambda given: {"content": [given], "structuredContent": None, "isError": False},
)
LONG: Final = "long text " * 2_000

Check = Callable[[], None]


def host(event: str, respond: Any, matcher: str | None = None, **more: Any) -> Host:
    """An agent with one handler."""
    return Host(hooks(**{event: [(matcher, "h")]}), {"h": respond}, **more)


def texts(messages: list[Message], role: str) -> list[str]:
    """What one side of the conversation has said."""
    return [message.text for message in messages if message.role == role]


def outputs(tool: Tool, event: str, respond: Any, matcher: str | None = None) -> tuple[Host, str]:
    """The agent, and what its model reads of one tool call."""
    agent = host(event, respond, matcher)
    agent.turn("go", [tool, "done"])
    return agent, texts(agent.requests[-1], "tool")[0]


# ---- the end of a turn -----------------------------------------------------------------------------------


def f1_2() -> None:
    """Two refusals of the end make three requests; the flag says so, and the turn stays the same."""
    prompts = iter(("more", "and more"))

    def respond(payload: Payload) -> Any:
        text = next(prompts, None)
        return "" if text is None else {"decision": "block", "reason": text}

    agent = host("Stop", respond)
    agent.turn("go", ["one", "two", "three"])
    assert len(agent.requests) == 3
    assert [payload["stop_hook_active"] for _, payload in agent.runs] == [False, True, True]
    assert {payload["turn_id"] for _, payload in agent.runs} == {"turn-1"}
    assert texts(agent.requests[-1], "user") == ["go", "more", "and more"]


def f1_3() -> None:
    """Two handlers that refuse make one message, in their order."""
    respond = {name: answers_with({"decision": "block", "reason": name}) for name in ("first", "second")}
    agent = Host(hooks(Stop=[(None, "first"), (None, "second")]), respond)
    agent.turn("go", ["one"])
    assert [message for message in agent.history if message.role == "user"][1:] == [
        Message("user", "first\n\nsecond")
    ]
    runs = [Finished(name, judged, 0.0) for name, judged in agent.results]
    fragments = merge_judged("Stop", CODEX, runs).fragments
    assert fragments == (("first", "first"), ("second", "second"))


def spilled(agent: Host, text: str) -> None:
    """The model reads the ends and where the whole is; that is what was written."""
    path = text.rpartition("\nFull hook output saved to: ")[2]
    assert "tokens truncated" in text
    assert agent.files[path] == LONG.strip()


def f1_5() -> None:
    """A long prompt is shortened."""
    agent = host("Stop", answers_with({"decision": "block", "reason": LONG}))
    agent.turn("go", ["one"])
    spilled(agent, agent.history[-1].text)


# ---- the start of a session and of a turn ----------------------------------------------------------------


def f1_6() -> None:
    """The transcript is where the agent says."""
    agent = host("SessionStart", answers_with(""), transcript="/t/rollout.jsonl")
    agent.turn("go", ["hi"])
    assert agent.runs[0][1]["transcript_path"] == "/t/rollout.jsonl"


def f1_7() -> None:
    """Or nowhere."""
    agent = host("SessionStart", answers_with(""))
    agent.turn("go", ["hi"])
    assert agent.runs[0][1]["transcript_path"] is None


def f1_8() -> None:
    """A session starts before its first prompt is judged."""
    respond = {name: answers_with("") for name in ("start", "prompt")}
    agent = Host(hooks(SessionStart=[(None, "start")], UserPromptSubmit=[(None, "prompt")]), respond)
    agent.turn("hello", ["hi"])
    assert [name for name, _ in agent.runs] == ["start", "prompt"]
    assert (agent.runs[0][1]["source"], agent.runs[1][1]["prompt"]) == ("startup", "hello")


def f1_9() -> None:
    """A long context is shortened, and is the developer's."""
    agent = host("SessionStart", says("SessionStart", additionalContext=LONG.strip()))
    agent.turn("go", ["hi"])
    spilled(agent, texts(agent.requests[0], "developer")[0])


def f1_10() -> None:
    """Each handler's limit is its own."""
    group = {
        "hooks": [
            {"type": "command", "command": "short", "additionalContextLimit": 1},
            {"type": "command", "command": "whole", "additionalContextLimit": 0},
        ]
    }
    respond = {name: answers_with(LONG) for name in ("short", "whole")}
    agent = Host(hooks(SessionStart=[group]), respond)
    agent.turn("go", ["hi"])
    text = texts(agent.requests[0], "developer")[0]
    assert len(agent.files) == 1
    assert text.endswith(LONG.strip())


def f1_11() -> None:
    """A handler for compaction does not run at startup; its context is in the next request."""
    agent = host("SessionStart", answers_with("compacted"), "compact")
    agent.turn("go", ["hi"])
    assert agent.runs == []
    assert not agent.compact("manual")
    agent.turn("again", ["hi"])
    assert texts(agent.requests[-1], "developer") == ["compacted"]
    assert [payload["source"] for _, payload in agent.runs] == ["compact"]


def f1_12() -> None:
    """Each compaction within a turn has its own context, once."""
    numbers = iter(range(9))
    agent = host("SessionStart", lambda payload: f"context {next(numbers)}", "compact")
    agent.turn("go", [BASH, None, BASH, None, "done"])
    assert [texts(request, "developer") for request in agent.requests] == [[], ["context 0"], ["context 1"]]
    agent.turn("again", ["hi"])
    assert len(agent.runs) == 2


def f1_13() -> None:
    """A stop after a compaction ends the turn."""
    agent = host("SessionStart", answers_with({"continue": False}), "compact")
    agent.turn("go", [BASH, None, "never"])
    assert len(agent.requests) == 1


def f1_14() -> None:
    """A resumed session starts as such, and again after its compaction."""
    agent = host("SessionStart", lambda payload: payload["source"], source="resume")
    agent.turn("go", ["hi"])
    first = texts(agent.requests[-1], "developer")
    agent.compact("manual")
    assert (first, texts(agent.history, "developer")) == (["resume"], ["compact"])
    assert [payload["source"] for _, payload in agent.runs] == ["resume", "compact"]


def f1_15() -> None:
    """The end of a session is a notification."""
    agent = host("SessionEnd", answers_with({"continue": False, "decision": "block"}))
    effects = agent.fire("SessionEnd", reason="other")
    assert (effects.stop, effects.verdict, agent.history) == (False, "none", [])
    assert [payload["reason"] for _, payload in agent.runs] == ["other"]


# ---- prompts ---------------------------------------------------------------------------------------------


def judge_prompt(payload: Payload) -> Any:
    """Refuses one prompt and says something of it."""
    if payload["prompt"] != "bad":
        return ""
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": "it was bad"}
    return {"decision": "block", "reason": "no", "hookSpecificOutput": said}


def f1_17() -> None:
    """A refused prompt is never sent; its context is in the next request."""
    agent = host("UserPromptSubmit", judge_prompt)
    agent.turn("bad", ["never"])
    assert agent.requests == []
    agent.turn("good", ["hi"])
    assert texts(agent.requests[0], "user") == ["good"]
    assert texts(agent.requests[0], "developer") == ["it was bad"]
    assert [payload["turn_id"] for _, payload in agent.runs] == ["turn-1", "turn-2"]


def f1_18() -> None:
    """Of queued prompts each is judged by itself."""
    agent = host("UserPromptSubmit", judge_prompt)
    agent.turn("first", ["hi"])
    assert [agent.accepts(prompt) for prompt in ("queued", "bad")] == [True, False]
    assert texts(agent.history, "user") == ["first", "queued"]
    assert len({payload["turn_id"] for _, payload in agent.runs}) == 1


# ---- asynchronous handlers -------------------------------------------------------------------------------


def asynchronous(event: str, respond: Any) -> Host:
    """An agent with one handler that nobody waits for."""
    group = {"hooks": [{"type": "command", "command": "h", "async": True}]}
    return Host(hooks(**{event: [group]}), {"h": respond})


def f1_19() -> None:
    """What it says is in the same turn's next request after a tool."""
    agent = asynchronous("SessionStart", answers_with("late"))
    agent.turn("go", [BASH, BASH, "done"])
    assert [texts(request, "developer") for request in agent.requests] == [[], [], ["late"]]


def f1_20() -> None:
    """What it says while nothing goes on precedes the next prompt."""
    agent = asynchronous("Stop", answers_with({"systemMessage": "warned"}))
    context = asynchronous("SessionStart", answers_with("late"))
    for each in (agent, context):
        each.turn("go", ["hi"])
        each.time_passes()
    assert len(agent.requests) == 1
    assert agent.fire("UserPromptSubmit", prompt="x").warnings == ("warned",)
    context.turn("again", ["hi"])
    roles = [message.role for message in context.requests[-1]]
    assert roles[-2:] == ["developer", "user"]


def f1_21() -> None:
    """It can neither refuse nor rewrite a call, and its context counts."""
    answer = says(
        "PreToolUse", permissionDecision="deny", permissionDecisionReason="no", additionalContext="late"
    )
    agent = asynchronous("PreToolUse", answer)
    agent.turn("go", [BASH, BASH, "done"])
    assert agent.tools == [BASH.input, BASH.input]
    assert "late" in texts(agent.requests[-1], "developer")[0]


# ---- before a tool ---------------------------------------------------------------------------------------

DENY: Final = says("PreToolUse", permissionDecision="deny", permissionDecisionReason="not allowed")
EXIT_TWO: Final = answers_with(Wrote(stderr="not allowed\n", code=2))
BLOCKED: Final = "Command blocked by PreToolUse hook: not allowed. Command: "


def refuses(tool: Tool, respond: Any, matcher: str, text: str) -> None:
    """The model reads why, the tool does not run, and the handler saw the agent's own fields."""
    agent, output = outputs(tool, "PreToolUse", respond, matcher)
    assert (output, agent.tools) == (text, [])
    seen = agent.runs[0][1]
    assert (seen["tool_name"], seen["tool_input"], seen["tool_use_id"]) == (tool.name, tool.input, tool.id)


def f1_24() -> None:
    """A context goes beside a call that runs."""
    agent, output = outputs(BASH, "PreToolUse", says("PreToolUse", additionalContext="careful"))
    assert texts(agent.requests[-1], "developer") == ["careful"]
    assert (output, agent.tools) == ("ran {'command': 'rm x'}", [BASH.input])


def f1_25() -> None:
    """And beside one that does not."""
    answer = says(
        "PreToolUse", permissionDecision="deny", permissionDecisionReason="no", additionalContext="careful"
    )
    agent, output = outputs(BASH, "PreToolUse", answer)
    assert texts(agent.requests[-1], "developer") == ["careful"]
    assert output.startswith("Command blocked")


def f1_26() -> None:
    """A long context is shortened."""
    agent, _ = outputs(BASH, "PreToolUse", says("PreToolUse", additionalContext=LONG.strip()))
    spilled(agent, texts(agent.requests[-1], "developer")[0])


def rewrites(tool: Tool, updated: dict[str, object]) -> None:
    """What runs is the new input; the handler saw the old one."""
    answer = says("PreToolUse", permissionDecision="allow", updatedInput=updated)
    agent, _ = outputs(tool, "PreToolUse", answer)
    assert agent.tools == [updated]
    assert agent.runs[0][1]["tool_input"] == tool.input


TOML: Final = b"""
[[hooks.PreToolUse]]
matcher = "^Bash$"

[[hooks.PreToolUse.hooks]]
type = "command"
command = "toml"
"""


def f1_33() -> None:
    """A handler of a config.toml refuses too."""
    agent = Host({}, {"toml": DENY}, second=TOML)
    agent.turn("go", [BASH, "done"])
    assert agent.tools == []


def f1_34() -> None:
    """Handlers of both forms run, and read the same."""
    respond = {name: answers_with("") for name in ("json", "toml")}
    agent = Host(hooks(PreToolUse=[("^Bash$", "json")]), respond, second=TOML)
    agent.turn("go", [BASH, "done"])
    (first, one), (second, two) = agent.runs
    assert (first, second, one) == ("json", "toml", two)


# ---- after a tool ----------------------------------------------------------------------------------------


def f1_40() -> None:
    """A context; the handler saw the output."""
    agent = host("PostToolUse", says("PostToolUse", additionalContext="c"), "^Bash$", transcript="/t/r.jsonl")
    agent.turn("go", [BASH, "done"])
    assert texts(agent.requests[-1], "developer") == ["c"]
    seen = agent.runs[0][1]
    assert (seen["tool_response"], seen["turn_id"]) == ("ran {'command': 'rm x'}", "turn-1")
    assert seen["transcript_path"] == "/t/r.jsonl"


def replaces(respond: Any, text: str) -> None:
    """The model reads the text; the handler saw what the tool really put out, and the turn goes on."""
    agent, output = outputs(BASH, "PostToolUse", respond)
    assert output == text
    assert agent.runs[0][1]["tool_response"] == "ran {'command': 'rm x'}"
    assert len(agent.requests) == 2


def f1_44() -> None:
    """Long feedback is shortened, its last newline gone."""
    agent, output = outputs(BASH, "PostToolUse", answers_with(Wrote(stderr=LONG + "\n", code=2)))
    spilled(agent, output)


def f1_45() -> None:
    """What a session that was started earlier puts out carries the start's id and input."""
    respond = {name: answers_with("") for name in ("pre", "post")}
    agent = Host(hooks(PreToolUse=[(None, "pre")], PostToolUse=[(None, "post")]), respond)
    start = Tool("Bash", {"command": "sleep 1; echo hi"}, lambda given: "hi", "start-7")
    agent.turn("go", [start, "done"])
    assert [name for name, _ in agent.runs] == ["pre", "post"]
    for _, payload in agent.runs:
        assert (payload["tool_use_id"], payload["tool_input"]) == ("start-7", start.input)


def f1_46() -> None:
    """A patch's result is text."""
    agent, _ = outputs(PATCH, "PostToolUse", says("PostToolUse", additionalContext="c"), "apply_patch")
    assert agent.runs[0][1]["tool_response"].startswith("Exit code: 0")
    assert texts(agent.requests[-1], "developer") == ["c"]


def f1_47() -> None:
    """It has another name."""
    agent, _ = outputs(PATCH, "PostToolUse", says("PostToolUse", additionalContext="c"), "Edit")
    assert agent.runs[0][1]["tool_name"] == "apply_patch"


# ---- permissions -----------------------------------------------------------------------------------------


def permits(tool: Tool, behavior: str, matcher: str | None = None, **more: str) -> tuple[Host, str | None]:
    """The agent's question is answered as its handler says; what the handler read has no call's id."""
    answer = says("PermissionRequest", decision={"behavior": behavior, **more})
    agent = host("PermissionRequest", answer, matcher)
    found, reason = agent.approve(tool)
    assert found == behavior
    seen = agent.runs[0][1]
    assert list(seen)[-2:] == ["tool_name", "tool_input"]
    assert (seen["tool_name"], seen["tool_input"]) == (tool.name, tool.input)
    return agent, reason


def allows(tool: Tool, matcher: str | None = None) -> Check:
    """A check that nobody else is asked."""

    def check() -> None:
        permits(tool, "allow", matcher)

    return check


def denies(tool: Tool) -> Check:
    """A check that the handler's text is what is said."""

    def check() -> None:
        assert permits(tool, "deny", message="ask your admin")[1] == "ask your admin"

    return check


NETWORK: Final = Tool("Bash", {"command": "curl", "description": "network-access http://example.org:80"})

# ---- tools of servers, and the rest ----------------------------------------------------------------------


def f2_5() -> None:
    """The result of a server's tool is an object."""
    agent, _ = outputs(MCP, "PostToolUse", says("PostToolUse", additionalContext="c"), "mcp__memory__.*")
    seen = agent.runs[0][1]
    assert list(seen["tool_response"]) == ["content", "structuredContent", "isError"]
    assert texts(agent.requests[-1], "developer") == ["c"]


def f3_4() -> None:
    """A start that nobody reviewed runs: Codex's record is shown, and does not count here."""
    agent = host("SessionStart", answers_with("began"))
    agent.turn("go", ["hi"])
    assert {trust_status(handler, {}) for handler in agent.handlers} == {"untrusted"}
    assert texts(agent.requests[0], "developer") == ["began"]


def f3_8() -> None:
    """A function tool has its own name and all its arguments, and can be rewritten."""
    agent, _ = outputs(PLAN, "PreToolUse", answers_with(""))
    assert (agent.runs[0][1]["tool_name"], agent.runs[0][1]["tool_input"]) == ("update_plan", {"plan": ["a"]})
    rewrites(PLAN, {"plan": ["b"]})


def f3_9() -> None:
    """No arguments are an empty object."""
    assert b'"tool_input":{},' in payload_for("PreToolUse", CODEX, {"tool": "wait"})


def f3_11() -> None:
    """Before and after a compaction, each for its trigger."""
    respond = {name: answers_with("") for name in ("pre", "post", "other")}
    agent = Host(
        hooks(PreCompact=[("auto", "pre"), ("manual", "other")], PostCompact=[("auto", "post")]), respond
    )
    agent.compact("auto")
    assert [name for name, _ in agent.runs] == ["pre", "post"]


def blocked_tool(tool: Tool) -> str:
    """What the model reads of another tool's refusal."""
    return f"Tool call blocked by PreToolUse hook: not allowed. Tool: {tool.name}"


_LAYERS: Final = "tests/subscribers/sources/test_codex_layers.py"
_DOCUMENTS: Final = "tests/subscribers/sources/test_codex_documents.py"
_DRAFT: Final = "tests/subscribers/hooks/test_import_draft.py"
_SOURCES: Final = "tests/subscribers/sources/test_import_sources.py"
_OWN: Final = "the agent's own doing, in which no hook takes part: "
_CODE_MODE: Final = (
    "code mode is inside Codex: to a hook a nested call is a PreToolUse or PostToolUse like any other"
)
_NO_MCP: Final = "handlers of type mcp_tool are listed and not run: prxbus is no MCP client"
_NO_PLUGINS: Final = "hooks of Codex's plugins are not read, and not imported"
_NO_MANAGED: Final = "there is no managed layer"
_NAMES: Final = "under which name Codex offers the tool to its model is its own: hooks see one name"

CASES: Final[tuple[Case, ...]] = (
    Case("F1.1", "a managed file that fails refuses the start", not_applicable=_NO_MANAGED),
    Case("F1.2", "Stop may go on several times in one turn", f1_2),
    Case("F1.3", "several Stop handlers make one prompt of a fragment each, in order", f1_3),
    Case("F1.4", "a resumed thread keeps the prompt", not_applicable=_OWN + "its stored conversation"),
    Case("F1.5", "a long prompt is saved and shortened", f1_5),
    Case("F1.6", "transcript_path is the agent's", f1_6),
    Case("F1.7", "transcript_path is null where there is none", f1_7),
    Case("F1.8", "SessionStart comes before UserPromptSubmit", f1_8),
    Case("F1.9", "a long context is saved and shortened", f1_9),
    Case("F1.10", "each context has its own limit", f1_10),
    Case("F1.11", "SessionStart after a compaction", f1_11),
    Case("F1.12", "and after each one within a turn", f1_12),
    Case("F1.13", "a stop after a compaction ends the turn", f1_13),
    Case("F1.14", "resume, then compact", f1_14),
    Case("F1.15", "SessionEnd controls nothing", f1_15),
    Case("F1.16", "SessionEnd is not for subagents", not_applicable=_OWN + "it fires no such event"),
    Case("F1.17", "a blocked prompt leaves its context", f1_17),
    Case("F1.18", "queued prompts are judged one by one", f1_18),
    Case("F1.19", "an asynchronous context reaches the active turn", f1_19),
    Case("F1.20", "and waits for the next one while idle", f1_20),
    Case("F1.21", "an asynchronous handler cannot block or rewrite", f1_21),
    Case("F1.22", "a deny refuses a command", lambda: refuses(BASH, DENY, "^Bash$", BLOCKED + "rm x")),
    Case("F1.23", "so does exit code 2", lambda: refuses(BASH, EXIT_TWO, "^Bash$", BLOCKED + "rm x")),
    Case("F1.24", "a context beside a command", f1_24),
    Case("F1.25", "a context beside a refused command", f1_25),
    Case("F1.26", "a long context of PreToolUse", f1_26),
    Case("F1.27", "a command is rewritten", lambda: rewrites(BASH, {"command": "rm -i x"})),
    Case("F1.28", "a nested command is rewritten", not_applicable=_CODE_MODE),
    Case("F1.29", "a nested call is refused", not_applicable=_CODE_MODE),
    Case("F1.30", "a nested result is blocked", not_applicable=_CODE_MODE),
    Case("F1.31", "a nested result is blocked by exit code 2", not_applicable=_CODE_MODE),
    Case("F1.32", "a plugin's hook refuses a command", not_applicable=_NO_PLUGINS),
    Case("F1.33", "a hook of config.toml refuses a command", f1_33),
    Case("F1.34", "hooks.json and config.toml together", f1_34),
    Case(
        "F1.35",
        "a patch is refused",
        lambda: refuses(PATCH, DENY, "apply_patch", BLOCKED + "*** Begin Patch"),
    ),
    Case("F1.36", "by its other name", lambda: refuses(PATCH, DENY, "Write", BLOCKED + "*** Begin Patch")),
    Case("F1.37", "a patch is rewritten", lambda: rewrites(PATCH, {"command": "*** Other"})),
    Case(
        "F1.38",
        "a function tool is refused",
        lambda: refuses(PLAN, DENY, "update_plan", blocked_tool(PLAN)),
    ),
    Case("F1.39", "a function tool is rewritten", lambda: rewrites(PLAN, {"plan": []})),
    Case("F1.40", "a context after a command", f1_40),
    Case(
        "F1.41",
        "a block replaces the output",
        lambda: replaces(answers_with({"decision": "block", "reason": "look again"}), "look again"),
    ),
    Case(
        "F1.42",
        "a stop replaces the output, the turn goes on",
        lambda: replaces(answers_with({"continue": False, "stopReason": "halt"}), "halt"),
    ),
    Case(
        "F1.43",
        "exit code 2 replaces the output",
        lambda: replaces(answers_with(Wrote(stderr="lint\n", code=2)), "lint"),
    ),
    Case("F1.44", "long feedback is saved and shortened", f1_44),
    Case("F1.45", "a session finished later has the start's id", f1_45),
    Case("F1.46", "a context after a patch", f1_46),
    Case("F1.47", "by its other name", f1_47),
    Case("F1.48", "a request is allowed without asking", allows(BASH)),
    Case("F1.49", "and without a reviewer", not_applicable=_OWN + "whom it would ask beside its hooks"),
    Case("F1.50", "a patch's request by its other name", allows(PATCH, "Write")),
    Case("F1.51", "the request has the raw command", allows(Tool("Bash", {"command": "a && b | c"}))),
    Case("F1.52", "a request for the network", allows(NETWORK)),
    Case("F1.53", "a denied request for the network", denies(NETWORK)),
    Case("F2.1", "a server's tool is allowed", allows(MCP, "mcp__memory__echo")),
    Case("F2.2", "a server's tool is denied", denies(MCP)),
    Case(
        "F2.3",
        "a server's tool is refused",
        lambda: refuses(MCP, DENY, "mcp__.*__echo", blocked_tool(MCP)),
        but=_NAMES,
    ),
    Case("F2.4", "a server's tool is rewritten", lambda: rewrites(MCP, {"message": "hello"})),
    Case("F2.5", "a server's result", f2_5, but=_NAMES),
    Case("F2.6", "an mcp_tool handler interpolates the prompt", not_applicable=_NO_MCP),
    Case("F2.7", "an mcp_tool handler passes metadata", not_applicable=_NO_MCP),
    Case("F2.8", "an mcp_tool handler marks memory", not_applicable=_NO_MCP),
    Case("F2.9", "an mcp_tool handler starts no hooks itself", not_applicable=_NO_MCP),
    Case("F2.10", "an mcp_tool handler without a server", not_applicable=_NO_MCP),
    Case(
        "F2.11",
        "hooks of an execution environment",
        not_applicable="environments are inside Codex, and their hooks in no file",
    ),
    Case("F3.1", "archiving ends a session first", not_applicable=_OWN + "its stored conversation"),
    Case("F3.2", "deleting ends a session first", not_applicable=_OWN + "its stored conversation"),
    Case("F3.3", "shutdown ends all sessions", not_applicable=_OWN + "it fires the events"),
    Case("F3.4", "a handler that nobody reviewed runs, as with Codex's bypass", f3_4),
    Case("F3.5", "a project's hooks run where that was allowed", shown_by=(f"{_LAYERS}::test_switches",)),
    Case(
        "F3.6",
        "also where it has a hooks.json and no configuration",
        shown_by=(f"{_DOCUMENTS}::test_switches_count_from_the_next_event_on",),
    ),
    Case(
        "F3.7",
        "edits apply without a restart",
        shown_by=(f"{_DOCUMENTS}::test_a_change_counts_from_the_next_event_on",),
    ),
    Case("F3.8", "a function tool's name, arguments and rewrite", f3_8),
    Case("F3.9", "no arguments are an empty object", f3_9),
    Case("F3.10", "an internal tool fires nothing", not_applicable=_OWN + "it fires no event for it"),
    Case("F3.11", "compaction: matchers and order", f3_11),
    Case(
        "F3.12",
        "the importer of Claude Code's settings",
        shown_by=(
            f"{_DRAFT}::test_a_handler_that_cannot_be_imported_says_why",
            f"{_SOURCES}::test_claude_codes_switch_is_read_from_the_wide_to_the_narrow",
            f"{_SOURCES}::test_a_negative_timeout_leaves_the_handler_out",
        ),
        but="a handler with a negative timeout is left out, and the reason told, rather than its timeout",
    ),
    Case("F3.13", "the importer of Cursor's hooks", not_applicable="Cursor's hooks are not imported"),
)
