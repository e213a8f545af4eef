"""A handler's ``if``: what one permission rule means for a tool call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_condition import Folders, condition

FOLDERS = Folders(cwd="/srv/shop/src", project="/srv/shop", home="/home/user")


@pytest.mark.parametrize(
    "rule,tool,tool_input,expected",
    [
        ("Bash", "Bash", {"command": "ls"}, True),
        ("Bash", "Edit", {}, False),
        ("Bash(*)", "Bash", {}, True),
        ("Bash()", "Bash", {}, True),
        (" Bash ", "Bash", {}, True),
        # commands
        ("Bash(git status)", "Bash", {"command": "git status"}, True),
        ("Bash(git status)", "Bash", {"command": "git status -s"}, False),
        ("Bash(git *)", "Bash", {"command": "git push"}, True),
        ("Bash(git *)", "Bash", {"command": "git"}, True),
        ("Bash(git *)", "Bash", {"command": "gitk"}, False),
        ("Bash(git:*)", "Bash", {"command": "git push"}, True),
        ("Bash(git*)", "Bash", {"command": "gitk"}, True),
        ("Bash(* --force)", "Bash", {"command": "git push --force"}, True),
        ("Bash(git * main)", "Bash", {"command": "git push main"}, True),
        ("Bash(git * main *)", "Bash", {"command": "git push main -f"}, True),
        ("Bash(rm *)", "Bash", {"command": "cd x && rm -rf y"}, True),
        ("Bash(rm *)", "Bash", {"command": "ls; FOO=1 BAR='a b' rm y"}, True),
        ("Bash(rm *)", "Bash", {"command": "ls | rm y &"}, True),
        ("Bash(rm *)", "Bash", {"command": "ls\nrm y"}, True),
        ("Bash(rm *)", "Bash", {"command": "echo 'a; rm y'"}, False),
        ("Bash(rm *)", "Bash", {"command": 'echo "a && rm y"'}, False),
        ("Bash(rm *)", "Bash", {"command": "echo a\\; rm y"}, False),
        ("Bash(rm *)", "Bash", {"command": "echo $(rm y)"}, True),
        ("Bash(rm *)", "Bash", {"command": 'echo "`rm y`"'}, True),
        ("Bash(rm *)", "Bash", {"command": "(rm y)"}, True),
        ("Bash(rm *)", "Bash", {"command": "cat <<E\nx\nE"}, True),
        ("Bash(rm *)", "Bash", {"command": "echo 'open"}, True),
        ("Bash(rm *)", "Bash", {"command": "echo '$(rm y)'"}, True),
        ("Bash(rm *)", "Bash", {"command": ""}, False),
        ("Bash(rm *)", "Bash", {"command": "a" * 5_000_000}, True),
        ("Bash(rm *)", "Bash", {"command": 7}, False),
        ("Bash(rm *)", "Bash", "rm y", False),
        # files
        ("Edit(*.ts)", "Edit", {"file_path": "/srv/shop/src/deep/a.ts"}, True),
        ("Edit(*.ts)", "Edit", {"file_path": "/srv/shop/a.ts"}, False),
        ("Edit(*.ts)", "Write", {"file_path": "a.ts"}, True),
        ("Edit", "MultiEdit", {"file_path": "a.ts"}, True),
        ("Edit(*.ipynb)", "NotebookEdit", {"notebook_path": "a.ipynb"}, True),
        ("Write(*.ts)", "Edit", {"file_path": "a.ts"}, False),
        ("Read(./a/*.ts)", "Read", {"file_path": "a/x.ts"}, True),
        ("Read(./a/*.ts)", "Read", {"file_path": "a/b/x.ts"}, False),
        ("Read(a/**/x.ts)", "Read", {"file_path": "a/b/c/x.ts"}, True),
        ("Read(a/**/x.ts)", "Read", {"file_path": "a/x.ts"}, True),
        ("Read(a/**)", "Read", {"file_path": "a/b/c"}, True),
        ("Read(docs/)", "Read", {"file_path": "docs/a/b.md"}, True),
        ("Read(/docs/?.md)", "Read", {"file_path": "../docs/a.md"}, True),
        ("Read(/docs/?.md)", "Read", {"file_path": "docs/a.md"}, False),
        ("Read(//etc/*)", "Read", {"file_path": "/etc/./passwd"}, True),
        ("Read(~/.ssh/**)", "Read", {"file_path": "/home/user/.ssh/id"}, True),
        ("Read(~/.ssh/**)", "Read", {"file_path": "/srv/.ssh/id"}, False),
        ("Read(a.md)", "Read", {}, False),
        ("Read(a.md)", "Read", {"file_path": "../" * 1_000_000}, True),
        ("Read(./)", "Read", {"file_path": "b"}, True),
        ("Read(/)", "Read", {"file_path": "/srv/shop"}, True),
        ("Read(/a)", "Read", {"file_path": "/srv/shop"}, False),
        ("Read(/a)", "Read", {"file_path": "/srv/shopping/a"}, False),
        ("Read(//**)", "Read", {"file_path": "/"}, True),
        ("Grep(src/**)", "Grep", {"path": "src/a"}, True),
        # addresses, agents, tools of servers
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://u@Example.com:8/x"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com.evil.org"}, False),
        ("WebFetch(domain:*.example.com)", "WebFetch", {"url": "https://a.example.com"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://a@b@example.com.\\x"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://" + "a" * 5_000_000}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "example.com"}, False),
        ("WebFetch(domain:example.com)", "WebFetch", {}, False),
        ("Agent(Explore)", "Agent", {"subagent_type": "Explore"}, True),
        ("Agent(Explore)", "Agent", {"subagent_type": "Plan"}, False),
        ("Skill(a*)", "Skill", {"skill": "abc"}, True),
        ("Skill(a*)", "Skill", {"skill": 1}, False),
        ("mcp__memory", "mcp__memory__create", {}, True),
        ("mcp__memory", "mcp__memory2__create", {}, False),
        ("mcp__memory__create", "mcp__memory__create", {}, True),
        ("mcp__memory__*", "mcp__memory__create", {}, True),
        ("mcp__memory__create", "mcp__memory__create_all", {}, False),
    ],
)
def test_which_calls_meet_a_rule(rule: str, tool: str, tool_input: object, expected: bool) -> None:
    """By name, command, path, address: and what cannot be taken apart meets the rule."""
    found = condition(rule)
    assert found.error is None
    assert found.holds(tool, tool_input, FOLDERS) is expected


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "Bash(",
        "Bash(a",
        "a b",
        "TodoWrite(x)",
        "WebFetch(example.com)",
        "mcp__a__*(x)",
        "(x)",
        "B*h(x)",
        f"Bash({'x' * 1_024})",
    ],
)
def test_what_is_not_understood_is_met_by_nothing(rule: str) -> None:
    """There is a reason, and no call meets it."""
    found = condition(rule)
    assert found.error
    for tool in ("Bash", "TodoWrite", "WebFetch", "mcp__a__b"):
        assert not found.holds(tool, {"command": "x"}, FOLDERS)


def test_a_rule_that_is_too_long_is_met_by_nothing() -> None:
    """Comparing costs its length, too."""
    found = condition(f"Bash({'x' * 1_024})")
    assert found.error == "it is longer than 1,024 characters"
    assert not found.holds("Bash", {"command": "x" * 1_024}, FOLDERS)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=60))
def test_any_rule_can_be_asked(rule: str, specifier: str, command: str) -> None:
    """Nothing is raised, whatever a file or an agent says."""
    for text in (rule, f"Bash({specifier})", f"Read({specifier})", f"WebFetch(domain:{specifier})"):
        found = condition(text)
        for tool in ("Bash", "Read", "WebFetch"):
            met = found.holds(tool, {"command": command, "file_path": command, "url": command}, FOLDERS)
            assert not (met and found.error is not None)
