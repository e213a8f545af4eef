"""``prxbus hooks``: its words, what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.cli.exits import DONE, FAILED, REFUSED, STALE, TABLE, UNAVAILABLE, USAGE
from broker.cli.main import main

ROOT = Path(__file__).parents[3]


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in a home of its own, and the current directory."""
    home, found = tmp_path / "home", tmp_path / "ws"
    (found / ".claude" / "hooks").mkdir(parents=True)
    home.mkdir()
    monkeypatch.chdir(found)
    for name, value in {
        "HOME": home,
        "XDG_DATA_HOME": tmp_path / "data",
        "PRXBUS_CONFIG_DIR": tmp_path,
    }.items():
        monkeypatch.setenv(name, str(value))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PRXBUS_HOOKS_IMPORT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return found


@pytest.fixture
def run(workspace: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run ``prxbus hooks`` in this process."""

    def hooks(*arguments: str) -> Ran:
        status = main(["hooks", *arguments])
        said = capfdbinary.readouterr()
        return Ran(status, said.out.decode(), said.err.decode())

    return hooks


def settings(workspace: Path, *commands: str, name: str = ".claude/settings.json", **more: Any) -> None:
    """Settings of Claude Code with these commands."""
    handlers = [{"type": "command", "command": each, **more} for each in commands]
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": handlers}]}
    (workspace / name).write_text(json.dumps({"hooks": hooks}))


def fingerprint(run: Run, key: str = "claude:project") -> str:
    """The fingerprint of a source's plan."""
    shown = json.loads(run("import", "--source", key, "--format", "json").out)
    return str(shown["fingerprint"])


def test_the_whole_way_of_an_import(workspace: Path, run: Run) -> None:
    """Preview, confirm, list, disable, enable, update and remove say what they did and what comes next."""
    (workspace / ".claude/hooks/a.sh").write_text("#!/bin/sh\n")
    (workspace / ".claude/hooks/a.sh").chmod(0o755)
    settings(workspace, ".claude/hooks/a.sh x", ".claude/hooks/*", "/bin/sh -c true", timeout=5)
    preview = run("import", "--source", "claude:project")
    assert preview.status == DONE
    (confirm,) = re.findall(r"confirm exactly this plan with: prxbus hooks (.*)", preview.out)
    for said in (
        "PreToolUse#0.0  matcher 'Bash'  5 s",
        "written as .claude/hooks/a.sh x",
        "executable",
        "[wildcard]",
    ):
        assert said in preview.out
    assert re.search(r"external   /bin/sh: .*; it stays there", preview.out)
    done = run(*confirm.split())
    assert (done.status, done.err) == (DONE, "")
    assert "2 handlers, 1 file copied; it runs from the next event on" in done.out
    name = done.out.split()[0]
    assert f"{name}  project  enabled  current  2 handlers, 1 skipped" in run().out
    assert "unchanged" in run("import", "--source", "claude:project", "--format", "json").out
    assert run("disable", name).out == f"{name} is disabled from the next event on; runs that began go on\n"
    assert "disabled" in run("list").out
    settings(workspace, "new")
    assert "an update is there" in run("list", "--refresh").out
    assert run("--refresh").out == run("list", "--refresh").out
    update = run("update", name, "--json")
    assert json.loads(update.out)["plan"]["disposition"] == "update"
    done = run("update", name, "--confirm", json.loads(update.out)["fingerprint"])
    assert "is updated: 1 handler, 0 files copied; it stays disabled" in done.out
    assert "enabled; it runs from the next event" in run("enable", name).out
    assert (
        "is as it was"
        in run("update", name, "--confirm", json.loads(run("update", name, "--json").out)["fingerprint"]).out
    )
    assert json.loads(run("remove", name, "--confirm", "--json").out) == {"outcome": "removed", "id": name}
    assert run("list").out.startswith("imports: none\n")


def test_stale_unavailable_and_refused_end_differently(workspace: Path, run: Run) -> None:
    """Each has an exit code of its own, and the table of exit codes says what it means."""
    settings(workspace, "a")
    old = fingerprint(run)
    settings(workspace, "b")
    stale = run("import", "--source", "claude:project", "--confirm", old)
    assert stale.status == STALE
    assert f"--confirm {fingerprint(run)}" in stale.out
    told = json.loads(run("import", "--source", "claude:project", "--confirm", old, "--json").out)
    assert told["outcome"] == "stale"
    assert not (workspace.parent / "data").exists()
    for arguments in (
        ("import", "--source", "codex:user"),
        ("import", "--source", "x"),
        ("update", "x"),
        ("disable", "x"),
    ):
        assert run(*arguments).status == UNAVAILABLE
    (workspace / ".claude/settings.json").write_text("{")
    assert run("import", "--source", "claude:project").status == UNAVAILABLE
    settings(workspace, ".claude/hooks/*")
    assert "nothing of this source" in run("import", "--source", "claude:project").out
    refused = run("import", "--source", "claude:project", "--confirm", fingerprint(run))
    assert (refused.status, "no handler" in refused.err) == (REFUSED, True)
    assert run("reset", "user", "--confirm").status == REFUSED
    assert run("--workspace", "ssh://host/x").status == REFUSED
    assert run("--workspace", "/nowhere/at/all").status == UNAVAILABLE
    odd = os.fsdecode(os.fsencode(workspace) + b"/\xff")
    os.mkdir(odd)
    assert run("--workspace", odd).status == REFUSED
    assert len({STALE, UNAVAILABLE, REFUSED, FAILED, DONE, USAGE}) == 6
    meanings = {row.code: row.meaning for row in TABLE}
    readme = (ROOT / "README.md").read_text()
    for code, word in ((STALE, "stale"), (UNAVAILABLE, "unavailable"), (REFUSED, "refused")):
        assert word in meanings[code]
        assert f"| {code} | {meanings[code]} |" in readme


def test_twice_is_refused_unless_forced(workspace: Path, run: Run) -> None:
    """Of an attached agent nothing is imported; with --force it is."""
    settings(workspace, "a", "prxbus hook --dialect claude")
    assert "is attached and runs these itself" in run().out
    known = fingerprint(run)
    refused = run("import", "--source", "claude:project", "--confirm", known)
    assert (refused.status, "--force" in refused.err) == (REFUSED, True)
    assert run("import", "--source", "claude:project", "--confirm", known, "--force").status == DONE


@pytest.mark.parametrize(
    "arguments",
    [
        ("import",),
        ("update",),
        ("enable",),
        ("remove", "x"),
        ("reset", "user"),
        ("reset", "all", "--confirm"),
        ("nope",),
        ("import", "--source"),
        ("list", "--format", "xml"),
    ],
)
def test_wrong_words_are_wrong_usage(run: Run, arguments: tuple[str, ...]) -> None:
    """What a command needs, and --confirm of remove and reset, is checked before anything is looked at."""
    assert run(*arguments).status == USAGE


def test_the_commands_of_bitfuns_page_are_understood(pages: Path, run: Run) -> None:
    """Every form that the page lists for its own command means something here: none is wrong usage."""
    (page,) = pages.glob("004_*.txt")
    known = {"text|json": "json", "user|project": "user"}
    forms = re.findall(r"^bitfun hooks (\w+.*)$", page.read_text(), re.MULTILINE)
    assert [form.split()[0] for form in forms] == [
        *("list", "import", "update", "enable", "disable", "remove", "reset"),
    ]
    for form in forms:
        words = re.sub(r"[\[\]<>]", "", form).split()
        assert run(*(known.get(word, word) for word in words)).status != USAGE, form


def test_nothing_foreign_reaches_the_terminal(workspace: Path, run: Run) -> None:
    """Control characters and marks of direction in commands and paths come as escapes, in every text."""
    evil = "echo \u202e\u2066 \x1b[2J\x07 \x9b1m"
    (workspace / ".claude/hooks/e\u202e\x1b.sh").write_text("x")
    settings(workspace, evil, ".claude/hooks/e\u202e\x1b.sh", f"{evil} .claude/hooks/*", statusMessage=evil)
    texts = [run("import", "--source", "claude:project").out, run("import", "--source", f"x{evil}").err]
    run("import", "--source", "claude:project", "--confirm", fingerprint(run))
    (workspace / ".claude/settings.json").write_text(f'{{"{evil}')
    texts += [run("list", "--refresh").out, run("import", "--source", "claude:project").err]
    for text in texts:
        assert text
        assert all(character.isprintable() or character == "\n" for character in text)
    assert "\\u202e" in texts[0]
    settings(workspace, evil)
    assert "\x9b" not in run("import", "--source", "claude:project", "--json").out


def test_a_corrupt_store_fails_until_it_is_reset(workspace: Path, run: Run) -> None:
    """The list says so and ends with 1, a change names the cure, and the cure works."""
    settings(workspace, "a")
    run("import", "--source", "claude:project", "--confirm", fingerprint(run))
    (index,) = (workspace.parent / "data").rglob("index.json")
    index.write_text("{}")
    listing = run("list")
    assert (listing.status, "hooks reset project --confirm" in listing.out) == (FAILED, True)
    assert json.loads(run("--format", "json").out)["diagnostics"][0]["code"] == "import_store_corrupt"
    failed = run("disable", "x")
    assert (failed.status, "prxbus hooks reset" in failed.err) == (FAILED, True)
    mended = run("reset", "project", "--confirm")
    assert (mended.status, "the project store is mended" in mended.out) == (DONE, True)
    assert run("list").status == DONE
    assert run("reset", "project", "--confirm").status == REFUSED


def test_where_imports_are_kept_can_be_configured(
    workspace: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting names the folder of all stores."""
    monkeypatch.setenv("PRXBUS_HOOKS_IMPORT_DIR", str(workspace.parent / "kept"))
    settings(workspace, "a")
    run("import", "--source", "claude:project", "--confirm", fingerprint(run))
    assert list((workspace.parent / "kept" / "projects").rglob("hooks.json"))


def test_errors_come_in_the_form_that_was_asked_for(run: Run) -> None:
    """With --json or --format json an error is an object with its code, else a line."""
    for form in (("--json",), ("--format", "json")):
        failed = run("update", "x", *form)
        assert (failed.status, json.loads(failed.err)["code"]) == (UNAVAILABLE, "unknown_import")
    assert run("update", "x").err.startswith("prxbus hooks: there is no import 'x'")


def test_everything_is_there_as_json(workspace: Path, run: Run) -> None:
    """The list's objects name source, state and place; a plan's hold what its text shows."""
    settings(workspace, "a", args=["x y"], **{"if": "Bash(git *)"})
    run("import", "--source", "claude:project", "--confirm", fingerprint(run))
    listing = json.loads(run("list", "--refresh", "--format", "json").out)
    (found,) = listing["imports"]
    (source,) = listing["sources"]
    assert (found["source"], found["state"], found["enabled"]) == ("claude:project", "current", True)
    assert (source["imported_as"], source["attached"], source["handlers"]) == (found["id"], False, 1)
    text = run("import", "--source", "claude:project").out
    assert re.search(r"arg 1 +x y\n", text)
    assert re.search(r"if +Bash\(git \*\)\n", text)
