"""The transform chain on a real bus: commands and functions, in order, with the first text winning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.transform_scene import Scene, listen, scene, transforms, write


@pytest.fixture(name="stage")
def _stage() -> Iterator[Scene]:
    with scene() as found:
        yield found


def test_a_function_replaces_the_output(stage: Scene) -> None:
    """What a @transform function returns is the decision's output, and the record tells who it was."""
    stage.handlers(
        "redact.py",
        "from subscribers.handlers import transform\n"
        "@transform(tools=['Bash'])\n"
        "def secrets(event, ctx):\n"
        "    return event.payload['tool_output'].replace('hunter2', '***')\n",
    )
    with transforms(stage) as service:
        assert service.said["transforms"] == 1
        decision = stage.ask("password is hunter2")
        assert (decision.output, decision.output_by) == ("password is ***", "redact.py:secrets")
        (record,) = stage.monitor.wait("prx.hooks.transform", 1)
    assert record["handler"] == "redact.py:secrets"
    assert (record["tool"], record["agent_id"], record["session_id"]) == ("Bash", "a1", "s1")
    assert record["before"] == {"bytes": 19, "sha256": hashlib.sha256(b"password is hunter2").hexdigest()}
    assert record["after"] == {"bytes": 15, "sha256": hashlib.sha256(b"password is ***").hexdigest()}


def test_a_command_replaces_the_output(stage: Scene) -> None:
    """A [[transform]] command reads the page's four fields and answers with content."""
    write(
        stage.workspace / "upper.py",
        "#!/usr/bin/env python3\n"
        "import json, sys\n"
        "asked = json.load(sys.stdin)\n"
        "assert set(asked) == {'agent_id', 'tool_name', 'tool_input', 'tool_output'}, asked\n"
        "print(json.dumps({'content': asked['tool_output'].upper() + asked['tool_input']['command']}))\n",
        mode=0o755,
    )
    stage.tables("[[transform]]\ncommand = './upper.py'\ntools = ['Bash']\n")
    with transforms(stage):
        decision = stage.ask("quiet ")
        assert (decision.output, decision.output_by) == ("QUIET git diff", "config.toml:transform[0]")
        assert not stage.ask("quiet", tool="Read").replaced


CHAIN = """
import json
from subscribers.handlers import transform

@transform
def passes(event, ctx):
    event.payload["tool_output"] = event.payload["output"] = "changed in place"
    event.payload["tool_input"]["command"] = "changed too"
    return None

@transform
def breaks(event, ctx):
    raise ValueError("it holds " + event.payload["tool_output"])

@transform
def returns_nonsense(event, ctx):
    return ["a", "list"]

@transform(tools=["Read", "mcp__*"])
def for_others(event, ctx):
    return "for others"

@transform(agents=["a2"])
def for_another_agent(event, ctx):
    return "for another agent"

@transform
async def wins(event, ctx):
    payload = event.payload
    return json.dumps([payload["tool_output"], payload["tool_input"], event.session_id, ctx.name])

@transform
def never_runs(event, ctx):
    ctx.publish("my.fault", {"ran": True})
    return "never"
"""


def test_the_first_text_wins_and_each_sees_the_original(stage: Scene) -> None:
    """Passing, failing and filtered handlers change nothing for the one that answers; none runs behind it."""
    stage.handlers("chain.py", CHAIN)
    with transforms(stage) as service, listen(stage, "my.fault") as faults:
        decision = stage.ask("raw")
        assert decision.output_by == "chain.py:wins"
        assert json.loads(decision.output) == ["raw", {"command": "git diff"}, "s1", "chain.py:wins"]
        assert not decision.partial
        cases: list[tuple[dict[str, Any], str]] = [
            ({"tool": "Read"}, "for others"),
            ({"tool": "mcp__github__search"}, "for others"),
            ({"agent_id": "a2"}, "for another agent"),
        ]
        for payload, text in cases:
            assert stage.ask("raw", **payload).output == text
        runs = stage.monitor.wait("prx.hooks.run", 2)
        (record, *_) = stage.monitor.wait("prx.hooks.transform", 4)
        assert faults.batch(timeout=0) == []
    assert [(run["hook"], run["status"], run["reason"]) for run in runs] == [
        ("chain.py:breaks", "failed", "ValueError at chain.py:13"),
        ("chain.py:returns_nonsense", "failed", "it returned list; it may return a text or None"),
    ]
    assert runs[0]["path"] == str(stage.workspace / ".prxbus" / "handlers" / "chain.py")
    assert (record["passed"], record["skipped"]) == (1, ["chain.py:breaks", "chain.py:returns_nonsense"])
    assert service.logged("a transform failed and was skipped")


def test_nobody_with_a_text_leaves_the_output_as_it_is(stage: Scene) -> None:
    """Nothing is replaced when all pass, when there is no output, and when every handler failed."""
    stage.handlers(
        "quiet.py",
        "from subscribers.handlers import transform\n"
        "@transform(tools=['Bash'])\ndef passes(event, ctx): return None\n"
        "@transform(tools=['Read'])\ndef fails(event, ctx): return 1 / 0\n",
    )
    with transforms(stage):
        passed = stage.ask("raw")
        assert (passed.replaced, passed.partial) == (False, False)
        assert not stage.ask(None).replaced
        failed = stage.ask("raw", tool="Read")
        assert (failed.replaced, [heard.silence for heard in failed.missing]) == (False, ["failed"])


def test_an_output_that_is_no_text_is_seen_as_json(stage: Scene) -> None:
    """A structured output reaches a handler as compact JSON in tool_output, and as it was in output."""
    stage.handlers(
        "look.py",
        "from subscribers.handlers import transform\n"
        "@transform\n"
        "def look(event, ctx): return event.payload['tool_output'] + str(event.payload['output']['a'])\n",
    )
    with transforms(stage):
        assert stage.ask({"a": [1, 2]}).output == '{"a":[1,2]}[1, 2]'


def test_the_user_comes_before_the_workspace_and_tables_before_functions(stage: Scene) -> None:
    """Registration order is the user's tables, the user's files, the workspace's tables, its files."""
    tell = "[[transform]]\ncommand = ['/bin/sh', '-c', '''echo '{{\"content\": \"{0}\"}}' ''']\ntools = {1}\n"
    stage.own_tables(tell.format("user table", ["T1"]))
    stage.tables(tell.format("workspace table", ["T1", "T2", "T3"]))
    source = (
        "from subscribers.handlers import transform\n@transform(tools={1})\ndef f(event, ctx): return '{0}'\n"
    )
    named = write(stage.workspace.parent / "named" / "b.py", source.format("user file", ["T1", "T2"]))
    write(stage.workspace.parent / "named" / "a.py", source.format("first by name", ["T0"]))
    stage.handlers("z.py", source.format("last", ["T1", "T2", "T3", "T4"]))
    stage.handlers("y.py", source.format("workspace file", ["T1", "T2", "T3", "T4"]))
    with transforms(stage, "--handlers", str(named.parent)) as service:
        assert service.said["transforms"] == 6
        answers = [stage.ask("raw", tool=tool).output for tool in ("T0", "T1", "T2", "T3", "T4")]
    assert answers == ["first by name", "user table", "user file", "workspace table", "workspace file"]


def test_five_megabytes_become_two_hundred_lines(stage: Scene) -> None:
    """The page's example: a JSON dump of 5 MB goes in whole and comes out as 200 lines."""
    stage.handlers(
        "head.py",
        "from subscribers.handlers import transform\n"
        "@transform\n"
        "def head(event, ctx):\n"
        "    return '\\n'.join(event.payload['tool_output'].split('\\n', 200)[:200])\n",
    )
    rows = [{"id": n, "name": f"item {n}", "tags": ["a", "b"]} for n in range(70_000)]
    dump = json.dumps(rows, indent=1)[:5_000_000]
    with transforms(stage):
        decision = stage.ask(dump)
        (record,) = stage.monitor.wait("prx.hooks.transform", 1)
    assert decision.output == "\n".join(dump.split("\n")[:200])
    assert record["before"] == {"bytes": 5_000_000, "sha256": hashlib.sha256(dump.encode()).hexdigest()}
    assert record["after"]["bytes"] == len(decision.output)


def test_a_command_may_take_and_give_five_megabytes(stage: Scene) -> None:
    """A command reads 5 MB and a replacement as large comes back whole."""
    stage.tables("[[transform]]\ncommand = ['/bin/cat']\n")
    text = "".join(f"zeile {n} ä\n" for n in range(360_000))
    with transforms(stage):
        decision = stage.ask(text)
    assert decision.output == text


def test_installed_packages_bring_their_own(stage: Scene) -> None:
    """What a package names in the group prxbus.handlers is asked, under the entry point's name."""
    site = stage.workspace.parent / "site"
    write(
        site / "tidy_outputs.py",
        "from subscribers.handlers import transform\n@transform\ndef f(e, c): return 'tidy'\n",
    )
    write(site / "tidy-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: tidy\nVersion: 1.0\n")
    write(site / "tidy-1.0.dist-info" / "entry_points.txt", "[prxbus.handlers]\ntidy = tidy_outputs\n")
    stage.handlers(
        "f.py", "from subscribers.handlers import transform\n@transform\ndef f(e, c): return 'own'\n"
    )
    with transforms(stage, "--installed", PYTHONPATH=str(site)) as service:
        assert service.said["transforms"] == 2
        decision = stage.ask("raw")
        assert (decision.output, decision.output_by) == ("tidy", "tidy (installed):f")
    with transforms(stage, PYTHONPATH=str(site)):
        assert stage.ask("raw").output == "own"
    with transforms(stage, "--tables-only", "--installed", PYTHONPATH=str(site)) as service:
        assert service.said["transforms"] == 0


def test_what_a_function_publishes_is_caused_by_the_ask(stage: Scene) -> None:
    """It is one level deeper, of the same session, and names the ask's event as its cause."""
    stage.handlers(
        "note.py",
        "from subscribers.handlers import transform\n@transform\ndef note(event, ctx):\n"
        "    ctx.publish('my.note', {'depth': event.depth, 'id': event.id})\n"
        "    ctx.log.info('noted', size=1)\n",
    )
    with transforms(stage) as service, listen(stage, "my.note") as notes:
        assert not stage.ask("raw").replaced
        (note,) = notes.batch(max_events=1, timeout=30.0)
        assert (note.depth, note.session_id) == (note.payload["depth"] + 1, "s1")
        assert note.caused_by == note.payload["id"]
        assert service.logged('"handler":"note.py:note"')


def test_a_file_that_starts_threads_is_warned_of(stage: Scene) -> None:
    """Its functions run in processes that have none of these threads, which the log says once."""
    stage.handlers(
        "threads.py",
        "import threading\nfrom subscribers.handlers import transform\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "@transform\ndef count(event, ctx): return str([t.name for t in threading.enumerate()])\n",
    )
    with transforms(stage) as service:
        assert "Thread-1" not in stage.ask("raw").output
        assert service.logged("a file starts threads when it is loaded")


def test_files_that_hang_while_loading_do_not_add_up(stage: Scene) -> None:
    """Files are loaded side by side; one that ends its process takes no other along."""
    for number in range(3):
        stage.handlers(f"bad{number}.py", "# transform\nimport os\nos._exit(3)\n")
    stage.handlers(
        "good.py", "from subscribers.handlers import transform\n@transform\ndef f(e, c): return 'good'\n"
    )
    with transforms(stage) as service:
        assert service.said["transforms"] == 1
        assert stage.ask("raw").output == "good"
        assert service.logged("its process ended while loading it, with 3")
