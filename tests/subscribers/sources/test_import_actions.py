"""Importing, from the files of an agent to what runs: plans, confirmations, and looking after."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subscribers.sources.attach_plan import SHIM_NAME
from subscribers.sources.import_actions import Importer, ImportRefused
from subscribers.sources.import_places import ImportPlaces
from subscribers.sources.import_reader import SourceUnavailable
from subscribers.sources.import_sources import homes
from subscribers.sources.import_store import (
    ImportMissing,
    NothingToMend,
    StoreCorrupt,
    enabled_imports,
)

NOW = 1_790_000_000.0


class World:
    """A home and a workspace with hooks in them, and where imports of them are kept."""

    def __init__(self, root: Path) -> None:
        self.home, self.ws = root / "home", root / "ws"
        self.places = ImportPlaces(str(root / "imports"), str(self.ws))
        self.importer = Importer(self.places, homes({"HOME": str(self.home)}))
        self.ws.mkdir()
        (self.ws / ".git").mkdir()
        self.home.mkdir()

    def script(self, name: str, text: str = "#!/bin/sh\n", *, mode: int = 0o755) -> Path:
        """A file below the workspace or the home."""
        path = (self.home if name.startswith("~") else self.ws) / name.removeprefix("~/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def claude(self, *commands: Any, name: str = ".claude/settings.json", **more: Any) -> Path:
        """Settings of Claude Code with these handlers of PreToolUse."""
        handlers = [
            each if isinstance(each, dict) else {"type": "command", "command": each} for each in commands
        ]
        return self.script(
            name, json.dumps({"hooks": {"PreToolUse": [{"hooks": handlers}]}, **more}), mode=0o644
        )

    def imported(self, key: str = "claude:project", **options: Any) -> str:
        """Import a source as it is; its id."""
        plan = self.importer.preview(key).plan
        assert self.importer.confirm(key, plan.fingerprint, NOW, **options).outcome == "applied"
        return plan.import_id


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Somebody's home and project."""
    return World(tmp_path)


def untouched(*folders: Path) -> dict[str, tuple[object, ...]]:
    """Everything about every file below some folders that a program could change."""
    found: dict[str, tuple[object, ...]] = {}
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (
                status.st_mode,
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_ino,
                content,
            )
    return found


def test_what_was_confirmed_runs_from_its_copy(world: World) -> None:
    """A script that reads another one beside it runs from the snapshot when its source is gone."""
    world.script(".claude/hooks/guard.sh", '#!/bin/sh\n. "$(dirname "$0")/lib.sh"\necho "$NAME $1"\n')
    world.script(".claude/hooks/lib.sh", "NAME=copied\n", mode=0o644)
    world.claude(
        {"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh now', "timeout": 3}
    )
    before = untouched(world.home, world.ws)
    done = world.importer.preview("claude:project")
    assert not os.path.exists(world.places.root)
    (handler,) = done.plan.handlers
    assert (done.outcome, handler.timeout_s) == ("preview", 3.0)
    world.imported()
    assert untouched(world.home, world.ws) == before
    for path in (world.ws / ".claude" / "hooks").iterdir():
        path.unlink()
    (found,) = enabled_imports("project", world.places).imports
    (group,) = json.loads(Path(found.path).read_text())["hooks"]["PreToolUse"]
    ran = subprocess.run(group["hooks"][0]["command"], shell=True, capture_output=True, text=True, check=True)
    assert ran.stdout == "copied now\n"
    assert found.profile == "claude"


FORMS = (
    ".claude/hooks/a.sh 1",
    "./.claude/hooks/a.sh '2 3'",
    '"$CLAUDE_PROJECT_DIR"/.claude/hooks/a.sh "x$((1+1))"',
    '"${CLAUDE_PROJECT_DIR:-$(pwd)}/.claude/hooks/a.sh"',
    "$CLAUDE_PROJECT_DIR/.claude/hooks/a.sh | tr a b >&2; echo $?",
    "sh '.claude/hooks/a.sh' <.claude/hooks/a.sh",
    "if [ -x .claude/hooks/a.sh ]; then .claude/hooks/a.sh yes; else echo no; fi",
    'X=.claude/hooks/a.sh; sh -c \'echo "$0" | wc -l\' "$X"',
    'cd "$CLAUDE_PROJECT_DIR" && .claude/hooks/a.sh && echo done # .claude/hooks/a.sh',
    "bash ~/.claude/hooks/b.sh a\\ b",
    "$HOME/.claude/hooks/b.sh 'it'\\''s' \n.claude/hooks/a.sh",
    '.claude/hooks/"a.sh" "`echo q`"',
)
"""Commands as they are found in settings of many projects."""


def test_commands_do_from_the_copy_what_they_did_before(world: World) -> None:
    """Each real form, run by a shell as it was written and as it was imported, says the same."""
    world.script(".claude/hooks/a.sh", '#!/bin/sh\necho "a <$*>"\n')
    world.script("~/.claude/hooks/b.sh", '#!/bin/sh\necho "b <$*>"\n')
    world.places = ImportPlaces(f"{world.places.root} it's $HOME", str(world.ws))
    world.importer = Importer(world.places, homes({"HOME": str(world.home)}))
    world.claude(*FORMS)
    plan = world.importer.preview("claude:project").plan
    assert plan.skipped == ()
    world.imported()
    environ = {"PATH": os.environ["PATH"], "HOME": str(world.home), "CLAUDE_PROJECT_DIR": str(world.ws)}

    def said(command: str) -> tuple[int, bytes, bytes]:
        ran = subprocess.run(command, shell=True, cwd=world.ws, env=environ, capture_output=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    before = [said(form) for form in FORMS]
    assert [handler.source_command for handler in plan.handlers] == list(FORMS)
    assert all("/snapshots/" in handler.command for handler in plan.handlers)
    (world.ws / ".claude").rename(world.ws / "away")
    (world.home / ".claude").rename(world.home / "away")
    assert [said(handler.command) for handler in plan.handlers] == before
    assert all(b"<" in out + err or out for _, out, err in before)


def test_python_modules_beside_a_script_come_along(world: World) -> None:
    """Modules and packages of the hooks folder that a script imports are copied; others are not."""
    world.script(".claude/hooks/a.py", "import os, one\nfrom pkg.sub import x\n", mode=0o644)
    for name in ("one.py", "pkg/__init__.py", "pkg/sub.py", "other.py", ".hidden.py", "__pycache__/one.pyc"):
        world.script(f".claude/hooks/{name}", "x = 1\n", mode=0o644)
    world.claude("python3 .claude/hooks/a.py")
    names = [file.name for file in world.importer.preview("claude:project").plan.files]
    assert names == ["files/a.py", "files/one.py", "files/pkg/__init__.py", "files/pkg/sub.py"]


def test_scripts_named_by_others_come_along(world: World) -> None:
    """Required without its ending, or named anywhere below the hooks folder, a file is copied."""
    world.script(".claude/hooks/a.mjs", "import x from './lib/one'; run(here, 'sub', 'two.sh')\n")
    for name in ("lib/one.mjs", "sub/two.sh", "three.mjs", "node_modules/one.mjs"):
        world.script(f".claude/hooks/{name}", "x\n")
    world.script(".claude/hooks/two.sh", '. "$CLAUDE_PROJECT_DIR/.claude/hooks/sub/two.sh"\n')
    world.claude("node .claude/hooks/a.mjs", ".claude/hooks/three.mjs")
    plan = world.importer.preview("claude:project").plan
    assert [file.name for file in plan.files if file.why is not None] == [
        "files/lib/one.mjs",
        "files/sub/two.sh",
        "files/two.sh",
    ]
    first, second = plan.handlers
    assert first.notes == (
        "files/two.sh names the hooks folder by its path: what it reads there is not the copy",
    )
    assert second.notes == ()


def test_a_binary_script_names_nothing(world: World) -> None:
    """A file that is no text is copied as it is."""
    path = world.script(".claude/hooks/a")
    path.write_bytes(b"\xff\xfe lib.sh")
    world.script(".claude/hooks/lib.sh")
    world.claude(".claude/hooks/a")
    assert [file.name for file in world.importer.preview("claude:project").plan.files] == ["files/a"]


def _link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SKIPPED: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "link": _link,
    "not_a_file": _pipe,
    "too_large": lambda path: path.write_bytes(b"x" * 1_048_577),
}


@pytest.mark.parametrize("code", SKIPPED)
def test_a_file_that_cannot_be_copied_costs_its_handler_alone(world: World, code: str) -> None:
    """Links, pipes, large and missing files are never followed, read whole or waited for."""
    path = world.script(".claude/hooks/bad.sh")
    world.script(".claude/hooks/good.sh")
    world.claude(".claude/hooks/bad.sh", ".claude/hooks/good.sh")
    SKIPPED[code](path)
    plan = world.importer.preview("claude:project").plan
    assert [file.name for file in plan.files] == ["files/good.sh"]
    assert [(each.code, each.index) for each in plan.skipped] == [(code, 0)]


def test_a_linked_hooks_folder_is_not_followed(world: World) -> None:
    """Neither a link in the place of the hooks folder nor one below it leads anywhere."""
    world.script("elsewhere/a.sh")
    (world.ws / ".claude").mkdir()
    (world.ws / ".claude" / "hooks").symlink_to(world.ws / "elsewhere")
    world.claude(".claude/hooks/a.sh")
    assert [each.code for each in world.importer.preview("claude:project").plan.skipped] == ["link"]


def test_a_linked_folder_of_a_repository_leads_nowhere(world: World) -> None:
    """The user's own folder may be a link; that of a project, which comes from somebody else, may not."""
    for place, name in ((world.ws, "claude:project"), (world.home, "claude:user")):
        (place / "dotfiles" / "hooks").mkdir(parents=True)
        (place / "dotfiles" / "hooks" / "a.sh").write_text("x")
        (place / ".claude").symlink_to(place / "dotfiles")
        path = ".claude/settings.json" if place == world.ws else "~/.claude/settings.json"
        world.claude(f"{place}/.claude/hooks/a.sh", name=path)
        plan = world.importer.preview(name).plan
        assert [each.code for each in plan.skipped] == (["link"] if place == world.ws else [])


def test_odd_texts_and_names_cost_no_time(world: World) -> None:
    """A megabyte of one character is gone through once; a name that is no UTF-8 is passed over."""
    world.script(".claude/hooks/a.py", "import pkg\n" + "-" * 1_000_000, mode=0o644)
    world.script(".claude/hooks/pkg/__init__.py", "")
    folder = os.fsencode(world.ws / ".claude" / "hooks" / "pkg")
    with open(folder + b"/\xff.py", "wb"):
        pass
    world.claude("python3 .claude/hooks/a.py")
    plan = world.importer.preview("claude:project").plan
    assert [file.name for file in plan.files] == ["files/a.py", "files/pkg/__init__.py"]


def test_unreadable_files_are_told_as_such(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without permission is skipped, whoever runs the test."""
    world.script(".claude/hooks/a.sh")
    world.claude(".claude/hooks/a.sh")
    real = os.open

    def refusing(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if path == "a.sh":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refusing)
    assert [each.code for each in world.importer.preview("claude:project").plan.skipped] == ["unreadable"]


CHANGES: dict[str, Callable[[World], object]] = {
    "a command": lambda w: w.claude(".claude/hooks/a.sh", "c"),
    "a script": lambda w: w.script(".claude/hooks/a.sh", "#!/bin/sh\nrm -r /\n"),
    "an exec bit": lambda w: w.script(".claude/hooks/a.sh", mode=0o644),
    "a file that stays": lambda w: w.script("x/b.sh", "changed"),
    "a time limit": lambda w: w.claude(
        {"type": "command", "command": ".claude/hooks/a.sh", "timeout": 1}, "x/b.sh"
    ),
    "a switch": lambda w: w.claude(".claude/hooks/a.sh", "x/b.sh", disableAllHooks=True),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_source_that_changed_after_the_preview_writes_nothing(world: World, what: str) -> None:
    """Whatever changed, the old fingerprint gets a fresh plan; the new one is accepted."""
    world.script(".claude/hooks/a.sh")
    world.script("x/b.sh")
    world.claude(".claude/hooks/a.sh", "x/b.sh")
    old = world.importer.preview("claude:project").plan.fingerprint
    CHANGES[what](world)
    done = world.importer.confirm("claude:project", old, NOW)
    assert done.outcome == "stale"
    assert not os.path.exists(world.places.root)
    assert done.plan == world.importer.preview("claude:project").plan
    if done.plan.handlers:
        assert world.importer.confirm("claude:project", done.plan.fingerprint, NOW).outcome == "applied"


def test_what_is_no_part_of_the_plan_changes_nothing(world: World) -> None:
    """Other settings, white space and times of files leave a preview valid."""
    path = world.script(".claude/hooks/a.sh")
    settings = world.claude(".claude/hooks/a.sh")
    old = world.importer.preview("claude:project").plan.fingerprint
    os.utime(path, (1, 1))
    settings.write_text(json.dumps({"model": "x", **json.loads(settings.read_text())}, indent=8))
    assert world.importer.confirm("claude:project", old, NOW).outcome == "applied"


def test_an_import_is_looked_after(world: World) -> None:
    """Disabled, updated (and still disabled), enabled, repaired, removed: each step shows, sources stay."""
    script = world.script(".claude/hooks/a.sh")
    world.claude(".claude/hooks/a.sh", ".claude/hooks/*")
    name = world.imported()
    importer = world.importer

    def state() -> tuple[str, bool]:
        (found,) = importer.list(refresh=True).imports
        return found.state, found.record.enabled

    assert state() == ("current", True)
    importer.disable(name, NOW)
    script.write_text("#!/bin/sh\necho new\n")
    assert state() == ("update_available", False)
    assert importer.list(refresh=False).imports[0].state == "current"
    plan = importer.preview_update(name).plan
    assert (plan.disposition, plan.enabled) == ("update", False)
    assert importer.confirm_update(name, "0", NOW).outcome == "stale"
    assert importer.confirm_update(name, plan.fingerprint, NOW).outcome == "applied"
    assert state() == ("current", False)
    assert enabled_imports("project", world.places).imports == ()
    importer.enable(name, NOW)
    again = importer.preview_update(name).plan
    assert again.disposition == "unchanged"
    assert importer.confirm_update(name, again.fingerprint, NOW).outcome == "unchanged"
    (found,) = enabled_imports("project", world.places).imports
    Path(found.path).unlink()
    assert state() == ("damaged", True)
    assert importer.confirm_update(name, again.fingerprint, NOW).outcome == "repaired"
    (world.ws / ".claude" / "settings.json").unlink()
    assert state() == ("source_missing", True)
    assert len(enabled_imports("project", world.places).imports) == 1
    with pytest.raises(SourceUnavailable):
        importer.preview_update(name)
    importer.remove(name, NOW)
    assert importer.list(refresh=True).imports == ()
    assert script.exists()
    for act in (importer.enable, importer.disable, importer.remove):
        with pytest.raises(ImportMissing):
            act(name, NOW)


def test_states_of_sources_that_went_bad(world: World) -> None:
    """A source that cannot be read, and a changed file that was not copied, are told apart."""
    outside = world.script("x/b.sh")
    settings = world.claude("x/b.sh")
    world.imported()
    outside.write_text("changed")
    (found,) = world.importer.list(refresh=True).imports
    assert (found.state, found.detail) == ("external_changed", f"not what was confirmed: {outside}")
    settings.write_text("{")
    assert world.importer.list(refresh=True).imports[0].state == "source_unreadable"
    (source,) = world.importer.list(refresh=False).sources
    assert source.fault is not None
    assert "line 1" in source.fault


@pytest.mark.parametrize(
    "content,said",
    [
        (b"{", "not JSON"),
        (b"[]", "no object"),
        (b"\xff", "UTF-8"),
        (b" " * 1_048_577, "1048576 bytes"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "too deeply"),
    ],
)
def test_a_source_that_cannot_be_read_is_unavailable(world: World, content: bytes, said: str) -> None:
    """Whatever a source holds, there is a plan or a reason."""
    world.claude("x").write_bytes(content)
    with pytest.raises(SourceUnavailable, match=said):
        world.importer.preview("claude:project")


@pytest.mark.parametrize(
    "content",
    [
        "x = ",
        "x = 1e999999",
        "x = 99999999999999999999",
        "x = 2026-01-01",
        "x = [" * 300 + "]" * 300,
        "a." * 40 + "b = 1",
        "\x00",
    ],
)
def test_toml_of_any_kind_is_read_or_refused(world: World, content: str) -> None:
    """A config.toml that is none is unavailable; what JSON cannot hold in one does not matter."""
    world.script(".codex/config.toml", content)
    try:
        plan = world.importer.preview("codex:project-toml").plan
    except SourceUnavailable:
        return
    assert plan.disposition == "empty"


def test_codex_hooks_are_imported_from_toml(world: World) -> None:
    """The form of Codex's own documentation is understood, and its root of the checkout."""
    world.script(".codex/hooks/start.py", "print('x')\n", mode=0o644)
    world.script(
        ".codex/config.toml",
        "[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ntype = 'command'\ntimeout = 7\n"
        "command = '/usr/bin/python3 \"$(git rev-parse --show-toplevel)/.codex/hooks/start.py\"'\n"
        "since = 2026-01-01\n",
    )
    (handler,) = world.importer.preview("codex:project-toml").plan.handlers
    assert (handler.copied, handler.timeout_s) == (("files/start.py",), 7.0)
    assert "since" in handler.notes[0]
    name = world.imported("codex:project-toml")
    assert [(each.id, each.profile) for each in enabled_imports("project", world.places).imports] == [
        (name, "codex")
    ]


def test_codex_itself_would_refuse_the_file(world: World) -> None:
    """A file of which its agent uses nothing is imported with a warning that says so."""
    world.script(
        ".codex/hooks.json",
        json.dumps({"x": 1, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "y"}]}]}}),
    )
    plan = world.importer.preview("codex:project").plan
    assert len(plan.handlers) == 1
    assert "Codex itself uses nothing of this file" in plan.source.warnings[0]


def test_a_users_source_goes_to_the_users_store(world: World) -> None:
    """What is the user's is in force in every workspace; what is a project's in that one alone."""
    world.script("~/.claude/hooks/a.sh")
    world.claude("~/.claude/hooks/a.sh", name="~/.claude/settings.json")
    world.claude("b")
    user, project = world.imported("claude:user"), world.imported()
    elsewhere = ImportPlaces(world.places.root, str(world.home))
    assert [each.id for each in enabled_imports("user", elsewhere).imports] == [user]
    assert enabled_imports("project", elsewhere).imports == ()
    assert [each.id for each in enabled_imports("project", world.places).imports] == [project]
    assert {each.id for each in world.importer.imports_of("claude-code")} == {user, project}
    assert world.importer.imports_of("codex") == ()


def test_a_project_may_name_the_users_scripts(world: World) -> None:
    """They are copied too, beside the project's own."""
    world.script("~/.claude/hooks/a.sh")
    world.script(".claude/hooks/a.sh")
    world.claude("~/.claude/hooks/a.sh && .claude/hooks/a.sh")
    assert [file.name for file in world.importer.preview("claude:project").plan.files] == [
        "files/a.sh",
        "user/a.sh",
    ]


SHIM = f"/usr/bin/python3 -I -S /x/{SHIM_NAME} --dialect claude"


def test_hooks_of_an_attached_agent_would_run_twice(world: World) -> None:
    """They are neither imported nor enabled, unless by force; our own entry is never imported."""
    world.claude("a", "b")
    name = world.imported()
    world.importer.disable(name, NOW)
    world.claude(SHIM, name="~/.claude/settings.json")
    assert world.importer.attached_agents() == {"claude-code": str(world.home / ".claude" / "settings.json")}
    with pytest.raises(ImportRefused, match="--force") as caught:
        world.importer.enable(name, NOW)
    assert caught.value.code == "runs_twice"
    world.importer.enable(name, NOW, force=True)
    world.claude("a", SHIM)
    plan = world.importer.preview("claude:project").plan
    assert [each.code for each in plan.skipped] == ["own_entry"]
    with pytest.raises(ImportRefused, match="attached"):
        world.importer.confirm("claude:project", plan.fingerprint, NOW)
    assert world.importer.confirm("claude:project", plan.fingerprint, NOW, force=True).outcome == "applied"
    world.script(
        ".codex/hooks.json",
        json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "y"}]}]}}),
    )
    world.imported("codex:project")
    attached = {each.source.key: each.is_attached for each in world.importer.list(refresh=False).sources}
    assert attached == {"claude:user": True, "claude:project": True, "codex:project": False}


def test_nothing_to_import_is_not_imported(world: World) -> None:
    """A plan without handlers can be looked at, and not confirmed."""
    world.claude(".claude/hooks/*")
    plan = world.importer.preview("claude:project").plan
    assert plan.disposition == "empty"
    with pytest.raises(ImportRefused) as caught:
        world.importer.confirm("claude:project", plan.fingerprint, NOW)
    assert caught.value.code == "nothing_to_import"


def test_unknown_names_are_told_with_the_nearest(world: World) -> None:
    """A source or an import that does not exist is told with those that do."""
    world.claude("a")
    name = world.imported()
    with pytest.raises(SourceUnavailable, match="did you mean claude:project"):
        world.importer.preview("claude:projet")
    with pytest.raises(SourceUnavailable, match="those that exist: claude:project"):
        world.importer.preview("x")
    with pytest.raises(ImportMissing, match=f"did you mean {name}"):
        world.importer.disable(name[:-1], NOW)


def test_a_corrupt_store_is_told_and_mended(world: World) -> None:
    """Its imports are off, the other scope's go on, every change is refused until a reset."""
    world.claude("a", name="~/.claude/settings.json")
    world.claude("b")
    user, project = world.imported("claude:user"), world.imported()
    folder = world.places.folder("user")
    assert folder is not None
    Path(folder, "index.json").write_text("{")
    listing = world.importer.list(refresh=True)
    assert [each.record.id for each in listing.imports] == [project]
    assert [each.code for each in listing.diagnostics] == ["import_store_corrupt"]
    assert [each.id for each in world.importer.imports_of("claude-code")] == [project]
    for act in (lambda: world.importer.disable(user, NOW), lambda: world.imported("claude:user")):
        with pytest.raises(StoreCorrupt):
            act()
    assert world.importer.reset("user", NOW).kept == ()
    with pytest.raises(NothingToMend):
        world.importer.reset("project", NOW)
    assert world.imported("claude:user") == user


def test_without_a_store_or_a_workspace_nothing_is_reset(world: World) -> None:
    """A reset never makes a store, and a project's needs a workspace."""
    with pytest.raises(ImportRefused, match="no store"):
        world.importer.reset("user", NOW)
    alone = Importer(ImportPlaces(world.places.root), homes({"HOME": str(world.home)}))
    with pytest.raises(ImportRefused, match="needs a workspace"):
        alone.reset("project", NOW)
    assert alone.list(refresh=False).sources == ()
    assert not os.path.exists(world.places.root)


def test_sources_of_another_place_are_not_updated(world: World) -> None:
    """An import whose agent has moved says that its source is gone, although the file is there."""
    world.claude("a", name="~/.claude/settings.json")
    name = world.imported("claude:user")
    moved = Importer(world.places, homes({"HOME": str(world.home), "CLAUDE_CONFIG_DIR": "/nowhere"}))
    with pytest.raises(SourceUnavailable, match="no source any more"):
        moved.preview_update(name)
    assert moved.list(refresh=True).imports[0].state == "source_unreadable"
