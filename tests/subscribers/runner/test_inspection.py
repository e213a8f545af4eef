"""Hook files explained as the runner sees them: interpreters, the sandbox, and where to look."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.hooks.explanation import ExplainedFile
from subscribers.runner import inspection
from subscribers.runtimes.sandbox import SandboxUnavailable
from subscribers.sources.handlers import HandlerUnit


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with two scripts, one of which asks for an interpreter that is not there."""
    for name, interpreter in (("good.sh", "/bin/sh"), ("bad.sh", "/no/such/shell")):
        (tmp_path / name).write_text(f"#!{interpreter}\n")
        (tmp_path / name).chmod(0o755)
    actions = '[{"command": "./good.sh"}, {"command": "./bad.sh"}, {"command": "x", "enabled": false}]'
    (tmp_path / "hooks.json").write_text(f'{{"hooks": {{"error": {actions}}}}}')
    return tmp_path


def explained(*paths: Path, dialect: str | None = None, **environ: str) -> list[ExplainedFile]:
    """Files explained on this machine, without a configuration of the user's."""
    here = inspection.world({"PRXBUS_CONFIG_DIR": "/nowhere", "LIBREFANG_HOME": "/nowhere", **environ})
    return inspection.explained([str(path) for path in paths], dialect, here)


def test_a_script_without_its_interpreter_is_dead(workspace: Path) -> None:
    """A script whose first line names what is not there cannot start; the other one can."""
    (found,) = explained(workspace)
    assert [handler.status for handler in found.explained.handlers] == ["ok", "dead", "skipped"]
    (said,) = found.explained.handlers[1].diagnostics
    assert said.code == "missing_interpreter"
    assert "/no/such/shell" in said.message


@pytest.mark.parametrize("text", [b"", b"echo no first line\n"])
def test_a_script_that_names_no_interpreter_is_dead(tmp_path: Path, text: bytes) -> None:
    """Without a first line that says by what it is run, the system cannot run a text."""
    (tmp_path / "run").write_bytes(text)
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "hooks.json").write_text('{"hooks": {"error": [{"command": "./run"}]}}')
    (found,) = explained(tmp_path)
    (handler,) = found.explained.handlers
    assert (handler.status, [d.code for d in handler.diagnostics]) == ("dead", ["no_interpreter"])
    assert "#!/bin/sh" in handler.diagnostics[0].message


@pytest.mark.parametrize(
    "action,codes",
    [
        ('{"command": "sh", "args": ["none.sh"]}', ["missing_script"]),
        ('{"command": "sh", "args": ["good.sh"]}', []),
        ('{"command": "sh", "args": ["-c", "true"]}', []),
        ('{"command": "sh"}', []),
        ('{"command": "true", "args": ["none.sh"]}', []),
    ],
)
def test_an_interpreter_without_its_script_is_remarked_upon(
    workspace: Path, action: str, codes: list[str]
) -> None:
    """It fires, and then its program finds nothing: a warning, not a fault."""
    (workspace / "hooks.json").write_text(f'{{"hooks": {{"error": [{action}]}}}}')
    (found,) = explained(workspace)
    (handler,) = found.explained.handlers
    assert (handler.status, [d.code for d in handler.diagnostics]) == ("ok", codes)
    assert not found.is_broken


def test_without_a_path_the_current_directory_is_looked_at_and_not_trusted(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody named the current directory, so its hooks are listed as not trusted; a named one's are."""
    monkeypatch.chdir(workspace)
    (here,) = explained()
    (named,) = explained(workspace)
    assert (here.path, here.trusted, named.trusted) == (str(workspace / "hooks.json"), False, True)
    assert not any(handler.trusted for handler in here.explained.handlers)


def test_without_a_path_the_users_librefang_home_is_looked_at_too(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the user's own, so that it is trusted; a setting turns it off."""
    monkeypatch.chdir(workspace)
    hook = tmp_path / "home" / "hooks" / "a" / "HOOK.yaml"
    hook.parent.mkdir(parents=True)
    hook.write_text("name: a\nevents: [agent:end]\ncommand: sh\n")
    home = str(tmp_path / "home")
    found = explained(LIBREFANG_HOME=home)
    assert [(file.dialect, file.trusted) for file in found] == [("prx", False), ("librefang", True)]
    assert len(explained(LIBREFANG_HOME=home, PRXBUS_LIBREFANG_ENABLED="false")) == 1
    assert len(explained(LIBREFANG_HOME="/nowhere")) == 1


def test_python_handlers_of_the_user_are_looked_at_without_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that the configuration names and those of installed packages are trusted and loaded."""
    monkeypatch.chdir(tmp_path)
    named = tmp_path / "guards.py"
    named.write_text("from subscribers.handlers import on\n@on('error')\ndef f(event, ctx): ...\n")
    package = tmp_path / "site" / "offers.py"
    package.parent.mkdir()
    package.write_text("import colorsys\n")
    unit = HandlerUnit("mine (installed)", "offers", "installed", "mine")
    monkeypatch.setattr(inspection, "entry_points", lambda: [unit])
    first, second = explained(dialect="python", PRXBUS_HANDLERS_PATH=str(named), PATH="/bin")
    assert [(h.name, h.status, h.trusted) for h in first.explained.handlers] == [("guards.py:f", "ok", True)]
    assert [d.code for d in first.explained.diagnostics] == ["named_only"]
    assert (second.because, second.trusted) == ("an installed package offers it", True)
    assert second.is_broken  # nobody has installed it
    (only,) = explained(named, dialect="python", PRXBUS_HANDLERS_ENABLED="false", PATH="/bin")
    assert [handler.status for handler in only.explained.handlers] == ["skipped"]


def test_the_users_own_configuration_is_looked_at_without_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transforms are explained and trusted; another file of that name is said to be of no effect."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    own = tmp_path / "prxbus.toml"
    own.write_text('[[transform]]\ncommand = "sh"\nname = "mine"\n')
    (found,) = explained(PRXBUS_CONFIG_DIR=str(tmp_path))
    assert [(h.name, h.status, h.trusted) for h in found.explained.handlers] == [("mine", "ok", True)]
    assert (found.dialect, found.because) == ("prxbus", "its name is prxbus.toml")
    (other,) = explained(own)
    assert (other.explained.handlers, [d.code for d in other.explained.diagnostics]) == ((), ["not_in_force"])


def test_a_file_without_handlers_says_what_to_write(tmp_path: Path) -> None:
    """It is no error, and nothing of it runs."""
    path = tmp_path / ".prxbus" / "handlers" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n")
    (found,) = explained(tmp_path)
    assert (found.is_broken, [d.code for d in found.explained.diagnostics]) == (False, ["no_handlers"])


def test_a_sandbox_that_cannot_be_used_refuses_shell_hooks(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one is configured and cannot be used, every hook that would run says so."""

    def unavailable(*_: object) -> None:
        raise SandboxUnavailable("there is no bubblewrap")

    monkeypatch.setattr(inspection, "open_sandbox", unavailable)
    (found,) = explained(workspace, PRXBUS_HOOKS_SANDBOX="bubblewrap")
    good, bad, disabled = found.explained.handlers
    assert (good.status, [d.code for d in good.diagnostics]) == ("refused", ["sandbox_unavailable"])
    assert [d.code for d in bad.diagnostics] == ["missing_interpreter", "sandbox_unavailable"]
    assert [d.code for d in disabled.diagnostics] == ["disabled"]


def test_a_sandbox_that_can_be_used_is_tried_once_and_closed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One try for a workspace, whose sandbox is closed again, and nothing to say."""
    tries: list[str] = []

    class Sandbox:
        def close(self) -> None:
            tries.append("closed")

    def opened(kind: str, *_: object) -> Sandbox:
        tries.append(kind)
        return Sandbox()

    (workspace / "other.json").write_text((workspace / "hooks.json").read_text())
    monkeypatch.setattr(inspection, "open_sandbox", opened)
    found = explained(workspace, workspace / "other.json", PRXBUS_HOOKS_SANDBOX="bubblewrap")
    assert [file.explained.handlers[0].status for file in found] == ["ok", "ok"]
    assert tries == ["bubblewrap", "closed"]


def test_the_settings_of_a_workspace_count_for_its_plugins(workspace: Path) -> None:
    """A workspace's own configuration can turn its plugins off, and a fault in it is told."""
    folder = workspace / "plugins" / "a"
    folder.mkdir(parents=True)
    manifest = '[plugin]\nname = "x"\nversion = "1"\n[[capabilities]]\ntype = "hook"\nevents = ["error"]\n'
    (folder / "plugin.toml").write_text(manifest)
    (workspace / ".prxbus").mkdir()
    (workspace / ".prxbus" / "config.toml").write_text("[wasm]\nenabled = false\nnothing = 1\n")
    _, plugin, configuration = explained(workspace)
    assert [handler.status for handler in plugin.explained.handlers] == ["skipped"]
    assert [d.code for d in configuration.explained.diagnostics] == ["unknown_setting"]


def test_configured_roles_are_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked at without being named; one of the current directory is not in force."""
    for name in ("one", "two", "here"):
        (tmp_path / name).mkdir()
        hook = f"{{name: {name}, events: [event], module: a.js}}"
        (tmp_path / name / "role.yaml").write_text(f"name: {name}\nhooks: {{custom: [{hook}]}}\n")
        (tmp_path / name / "a.js").write_text("export default {}\n")
    monkeypatch.chdir(tmp_path / "here")
    dirs = f"{tmp_path}/one:{tmp_path}/two"
    found = explained(PRXBUS_ROLES_DIRS=dirs, PRXBUS_ROLES_NODE="/nowhere/node")
    said = {
        Path(file.workspace).name: (file.trusted, [d.code for d in file.explained.diagnostics])
        for file in found
    }
    assert said == {
        "here": (False, ["named_only", "needs_role"]),
        "one": (True, ["needs_role"]),
        "two": (True, ["needs_role"]),
    }
    assert [handler.status for file in found for handler in file.explained.handlers] == ["dead"] * 3
    (remark, *_) = found[0].explained.handlers[0].diagnostics
    assert remark.message.startswith("needs Node 20 or newer")
    (tmp_path / "two" / "role.yaml").unlink()
    gone = [file for file in explained(PRXBUS_ROLES_DIRS=dirs) if Path(file.path).parent.name == "two"]
    assert [(file.dialect, file.because, file.is_broken) for file in gone] == [
        ("rolebox", "your settings say so", True)
    ]
