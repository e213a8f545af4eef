"""The rolebox page's samples run, bytes unchanged, under ``prxbus up --role``, and do what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from subscribers.dialects import rolebox_rules as rules
from subscribers.dialects.rolebox_file import read_role
from subscribers.hooks.module_hook import HANDLER_OF, Handler
from subscribers.hooks.role_pending import Pending
from tests.conformance.rolebox import page
from tests.integration.command import prxbus
from tests.integration.rolebox_scene import NODE, Roles, node_version, role, roles_up

PROMPT = ["You are careful."]

CHECKER = """
export default {
  onToolAfter: (ctx, input) => ctx.inject(JSON.stringify(["after", ctx, input])),
  onChatMessage: (ctx, input) => ctx.inject(JSON.stringify(["chat", ctx, input])),
};
"""
"""Stands where the page names a module without showing it: it injects all that it is given."""

ORDERED = """
export default {{
  onToolBefore: (ctx, {{ args }}) => {{ args.order = [...(args.order ?? []), "{}"]; }},
}};
"""

LIFECYCLE = """
name: Lifecycle
hooks:
  custom:
    - name: lifecycle-example
      events: [event]
      module: hooks/lifecycle-example.js
"""

MARKED = "---\nauto_activate: true\nlocked: true\n---\nSay what you have checked.\n"


@pytest.fixture(scope="module")
def text(pages: Path) -> str:
    """The page."""
    return page.find(pages)


@pytest.fixture(scope="module")
def node(require_tool: Callable[[str], str]) -> None:
    """A Node that runs modules."""
    require_tool("node")
    if node_version()[0] < NODE:
        pytest.skip(f"modules in JavaScript need Node {NODE}")


@pytest.fixture(scope="module")
def user(text: str, tmp_path_factory: pytest.TempPathFactory, node: None) -> Iterator[Roles]:
    """What a user has who copied the page's samples to where it says that they lie."""
    folder = tmp_path_factory.mktemp("page")
    roles = [
        role(
            folder / "schema",
            {"role.yaml": page.schema_file(text), "hooks/quality-checker.js": CHECKER},
        ),
        role(
            folder / "example",
            {
                "role.yaml": page.example_file(text),
                "hooks/no-console-log.js": page.example_module(text),
            },
        ),
        role(
            folder / "priority",
            {
                "role.yaml": page.priority_file(text),
                "hooks/early-checker.js": ORDERED.format("early"),
                "hooks/late-checker.js": ORDERED.format("late"),
            },
        ),
        role(folder / "builtin", {"role.yaml": page.builtin_file(text), "functions/checks.md": MARKED}),
    ]
    with roles_up(folder, *roles) as found:
        yield found


def test_the_complete_example_warns_in_the_next_prompt(text: str, user: Roles) -> None:
    """What the tool has written is looked at, and the next prompt of the session says so, once."""
    with user.agent("s1", "Quality-Conscious Coder") as agent, user.agent("s2") as other:
        args = {"path": "a.ts", "content": 'console.log("x")'}
        assert agent.tool_after("write", args, "written") == "written"
        agent.tool_after("bash", args, "ran")  # the filter leaves it out
        agent.tool_after("edit", {"path": "a.ts", "content": "fine"}, "written")
        assert other.system_transform(PROMPT) == PROMPT
        warned = agent.system_transform(PROMPT)
        assert warned == [*PROMPT, page.warning(text, "write")]
        assert agent.system_transform(PROMPT) == PROMPT
        assert (agent.problem, other.problem) == (None, None)


class Given(NamedTuple):
    """What a handler was given: which one, its ctx and its input."""

    handler: str
    ctx: dict[str, Any]
    input: dict[str, Any]


def test_every_field_of_the_schema_has_its_effect(user: Roles) -> None:
    """Events, module, config and filter: the handler is called for those, with all that the page lists."""
    with user.agent("s3", "schema") as agent:
        agent.chat_message("Hello")
        agent.tool_after("hashline_edit", {"path": "a"}, {"ok": True})
        agent.tool_after("read", {"path": "a"}, "text")
        said = agent.system_transform([])
        given = [Given(*json.loads(line)) for line in said[0].splitlines()]
    assert [each.handler for each in given] == ["chat", "after"]
    assert [each.input for each in given] == [
        {"text": "Hello"},
        {"tool": "hashline_edit", "args": {"path": "a"}, "output": {"ok": True}},
    ]
    for each in given:
        ctx = {name: each.ctx[name] for name in ("hookName", "config", "sessionID", "agent")}
        config = {"severity": "warn", "checks": ["no_console_log"]}
        assert ctx == {
            "hookName": "my-quality-checker",
            "config": config,
            "sessionID": "s3",
            "agent": "agent-7",
        }


def test_the_lower_priority_runs_first(user: Roles) -> None:
    """early-checker and late-checker edit the same arguments; the later sees what the earlier left."""
    with user.agent("s4", "priority") as agent:
        assert agent.tool_before("bash", {"command": "ls"}) == {"command": "ls", "order": ["early", "late"]}
        core = agent.tool_before("bash", {}, lambda args: {**args, "order": [*args["order"], "core"]})
        assert core == {"order": ["early", "late", "core"]}


def test_what_is_marked_is_activated_by_the_first_message(user: Roles) -> None:
    """``auto_activate: true``: the marked function is active from then on, and locked."""
    with user.agent("s5", "builtin") as agent:
        assert agent.system_transform(PROMPT) == PROMPT
        agent.chat_message("Hello")
        (prompt, functions) = agent.system_transform(PROMPT)
        assert prompt == PROMPT[0]
        assert "checks (locked)" in functions
        assert "Say what you have checked." in functions


def test_a_role_is_only_for_its_sessions(user: Roles) -> None:
    """A session of another role, or of none where several are loaded, fires nothing of this one."""
    for session, name in (("s6", "builtin"), ("s7", None), ("s8", "no-such-role")):
        with user.agent(session, name) as agent:
            agent.tool_after("write", {"content": "console.log("}, "written")
            assert agent.tool_before("bash", {"a": 1}) == {"a": 1}
            assert agent.system_transform(PROMPT) == PROMPT


def test_the_tables_of_the_page_are_ours(text: str) -> None:
    """Fields with their types and defaults, handlers with their inputs, and what a ctx has."""
    types = {"string": "string", "string[]": "list of strings", "object": "mapping", "number": "number"}
    documented = page.fields(text)
    ours = {key.name: key for key in rules.KEYS}
    assert documented.keys() == {*ours, "filter"}
    for name, (kind, default) in documented.items():
        if name != "filter":
            assert ours[name].type == types[kind], name
            shown = ours[name].default.strip("`")
            assert default in ("—", shown) or default.strip('"') == shown, name
    handlers = page.handlers(text)
    assert tuple(handlers) == Handler.__args__  # type: ignore[attr-defined]
    assert set(HANDLER_OF.values()) == {name for name, members in handlers.items() if members}
    assert page.context(text) == ("hookName", "config", "sessionID", "agent", "inject", "log")


def test_the_filters_of_the_page_are_read(text: str) -> None:
    """The fragment with both filters, in a hook of ours."""
    head = "name: Filters\nhooks:\n  custom:\n    - name: h\n      events: [tool.execute.after, event]\n"
    head += "      module: h.js\n"
    body = "".join(f"      {line}\n" for line in page.filter_fragment(text).splitlines())
    found = read_role((head + body).encode(), "role.yaml")
    assert found.diagnostics == ()
    (hook,) = found.hooks
    assert (hook.tools, hook.event_types) == (("write", "edit"), ("session.error",))
    assert (hook.priority, hook.phase) == (50, "after")


def test_texts_are_joined_as_the_page_s_own_code_joins_them(text: str) -> None:
    """With a line end between two: what the page's function would come to."""
    separator = re.search(r'existing \? existing \+ "(.*)" \+ text : text', page.correction_code(text))
    assert separator is not None
    pending = Pending()
    for words in ("one", "two"):
        pending.add("s1", words, 0.0)
    pending.add("s2", "three", 0.0)
    assert pending.look("s1", 0.0) == separator[1].replace("\\n", "\n").join(["one", "two"])


class Checked:
    """The role of the complete example, recorded as it is, and the page's command about it.

    The command is as it is written, but for the name of the program.
    """

    def __init__(self, text: str, folder: Path) -> None:
        self.words = page.command_line(text).split()
        files = {"role.yaml": page.example_file(text), "hooks/no-console-log.js": page.example_module(text)}
        self.role = role(folder / self.words[2], files)
        self.env = {
            "PRXBUS_ROLES_DIRS": str(self.role),
            "XDG_STATE_HOME": str(folder / "state"),
            "HOME": str(folder),
        }
        self.module = self.role / "hooks" / "no-console-log.js"
        assert prxbus("info", self.words[2], "--accept", env=self.env).returncode == 0

    def check(self) -> tuple[int, str]:
        """Exit code and text of the page's command."""
        done = prxbus(*self.words[1:], env=self.env)
        return done.returncode, done.stdout + done.stderr


def test_the_page_s_command_checks_a_role(text: str, tmp_path: Path, node: None) -> None:
    """It ends well for the page's own role; a module that is missing is named with the reason."""
    checked = Checked(text, tmp_path)
    code, said = checked.check()
    assert code == 0, said
    checked.module.unlink()
    code, said = checked.check()
    assert code == 1
    assert "no-console-log.js" in said


def test_the_page_s_command_notices_a_change(text: str, tmp_path: Path, node: None) -> None:
    """A module that is not what was recorded fails the check of integrity, whatever it does."""
    checked = Checked(text, tmp_path)
    checked.module.write_bytes(checked.module.read_bytes() + b"// changed\n")
    code, said = checked.check()
    assert code == 1
    assert re.search(r"^ +hooks/no-console-log\.js$", said, re.MULTILINE), said


def test_the_log_of_the_page_is_written(text: str, tmp_path: Path, node: None) -> None:
    """A module that is missing, one that does not load, a handler that throws: in the page's words.

    ``onLoad`` once at registration and ``onDispose`` once at the end, each with the hook's own logger; and a
    bad hook takes none of its siblings along.
    """
    hooks = "".join(
        f"    - name: {name}\n      events: [tool.execute.after]\n      module: hooks/{name}.py\n"
        for name in ("gone", "broken", "my-checker", "loads-badly", "good")
    )
    good = "def on_tool_after(ctx, tool, args, output):\n    ctx.inject('good')\n"
    throws = "def on_tool_after(ctx, tool, args, output):\n    raise ValueError('no')\n"
    faults = role(
        tmp_path / "faults",
        {
            "role.yaml": f"name: Faults\nhooks:\n  custom:\n{hooks}",
            "hooks/broken.py": "def (",
            "hooks/my-checker.py": throws,
            "hooks/loads-badly.py": f"def on_load(ctx):\n    raise ValueError('no')\n\n\n{good}",
            "hooks/good.py": good,
        },
    )
    module = page.lifecycle_module(text)
    lifecycle = role(tmp_path / "life", {"role.yaml": LIFECYCLE, "hooks/lifecycle-example.js": module})
    with roles_up(tmp_path, faults, lifecycle, options=("--log-level", "debug")) as roles:
        with roles.agent("s1", "faults") as agent, roles.agent("s2", "life") as other:
            agent.tool_after("write", {}, "")
            assert agent.system_transform([]) == ["good\ngood"]
            other.event("session.idle", {})
        assert len(roles.logged("hook:lifecycle-example")) == 1
    for logger, level, message in page.log_lines(text):
        assert level == "WARN"
        assert {r["level"] for r in roles.logged(logger) if r["event"] == message} == {"warning"}, message
    failed = [r for r in roles.logged("hook:custom-loader") if r["level"] == "warning"]
    assert {Path(r["modulePath"]).name for r in failed} == {"gone.py", "broken.py"}
    assert all(r["err"] for r in failed)
    registry = [r["event"] for r in roles.logged("hook:custom-registry")]
    for message in page.messages(text)["hook:custom-registry"]:
        words = message.replace("{event}", "tool.execute.after")
        assert any(words in event for event in registry), (words, registry)
    said = [(r["level"], r["event"]) for r in roles.logged("hook:lifecycle-example")]
    assert said == [("info", f"Hook lifecycle-example {what}") for what in ("loaded", "disposed")]
