"""The page's table of symptoms: for each row ``prxbus check`` says the cause that the page names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from subscribers.hooks.explanation import ExplainedFile, Status
from subscribers.runner.fire import event_of, fire
from subscribers.runner.inspection import explained, world
from tests.conformance.bitfun import page


class Place(NamedTuple):
    """A machine with BitFun's places: its configuration folder and a workspace."""

    user: Path
    workspace: Path
    environ: dict[str, str]

    def write(self, where: Path, document: Any) -> Path:
        """A hook file, or a text in its place."""
        path = where / "hooks.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    def switches(self, **hooks: bool) -> None:
        """BitFun's app.json."""
        self.user.mkdir(parents=True, exist_ok=True)
        (self.user / "app.json").write_text(json.dumps({"app": {"hooks": hooks}}))

    def check(self, path: Path | str) -> ExplainedFile:
        """What ``prxbus check PATH`` says of the one file there."""
        (found,) = explained([str(path)], None, world(self.environ))
        return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A machine where BitFun's places are read."""
    environ = {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "home" / ".config"),
        "PRXBUS_CONFIG_DIR": str(tmp_path / "prxbus"),
        "PRXBUS_HOOKS_BITFUN": "true",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Place(tmp_path / "home" / ".config" / "bitfun" / "config", workspace, environ)


def of(event: str = "PreToolUse", matcher: str | None = None, **handler: Any) -> dict[str, Any]:
    """A document with one handler."""
    group: dict[str, Any] = {"hooks": [{"type": "command", "command": "./guard.sh", **handler}]}
    if matcher is not None:
        group["matcher"] = matcher
    return {"hooks": {event: [group]}}


def told(file: ExplainedFile) -> tuple[list[Status], str]:
    """The states of the handlers, and every remark with its hint."""
    remarks = list(file.explained.diagnostics)
    for handler in file.explained.handlers:
        remarks += handler.diagnostics
    text = "\n".join(f"{d.code}: {d.message}; {d.hint}" for d in remarks)
    return [handler.status for handler in file.explained.handlers], text


def no_hook_runs(place: Place) -> None:
    """The master switch is off, the file lies where nobody reads it, or the workspace is remote."""
    path = place.write(place.user, of())
    assert told(place.check(path)) == (["ok"], "")
    place.switches(enabled=False)
    states, text = told(place.check(path))
    assert states == ["skipped"]
    assert "switched_off: its hooks do not run: app.hooks.enabled is false in BitFun's app.json" in text
    elsewhere = place.write(place.workspace / "config", of())
    assert "no hook of this file runs from where it lies" in told(place.check(elsewhere))[1]
    (file,) = explained([str(elsewhere)], "bitfun", world(place.environ))
    assert f"hook files are read at {path}, .bitfun/config/hooks.json" in told(file)[1]
    remote = place.check("ssh://build/srv/shop")
    assert remote.is_broken
    assert "remote_workspace: its workspace is remote: hooks are not supported there" in told(remote)[1]


def project_hooks_do_not_run(place: Place) -> None:
    """They are off by default, and the page's warning is told with that."""
    path = place.write(place.workspace / ".bitfun" / "config", of())
    states, text = told(place.check(path))
    assert states == ["skipped"]
    assert "app.hooks.project_hooks_enabled is false in BitFun's app.json (the default)" in text
    assert "whoever can commit to it can run code on this machine" in text
    place.switches(enabled=True, project_hooks_enabled=True)
    assert told(place.check(path)) == (["ok"], "")
    own = place.write(place.workspace / ".prxbus", of())
    assert "hooks.project_hooks_enabled is false, as it is unless you set it" in told(place.check(own))[1]


def the_whole_file_is_ignored(place: Place) -> None:
    """It is not JSON, or has a key beside description and hooks."""
    file = place.check(place.write(place.user, '{"hooks": {},}'))
    assert file.explained.refused
    assert "not_json: not JSON" in told(file)[1]
    file = place.check(place.write(place.user, {**of(), "version": 1}))
    assert file.explained.refused
    assert 'unknown_root_key: the root has no key "version"' in told(file)[1]


def an_event_is_ignored(place: Place) -> None:
    """Its name is misspelt; case counts."""
    states, text = told(place.check(place.write(place.user, of("pretooluse"))))
    assert states == ["dead"]
    assert 'unknown_event: there is no event "pretooluse"' in text
    assert "did you mean PreToolUse? Case counts" in text


def a_handler_never_runs(place: Place) -> None:
    """Its matcher is no pattern, or does not match: it is compared with the whole value."""
    states, text = told(place.check(place.write(place.user, of(matcher="Bash("))))
    assert states == ["dead"]
    assert 'invalid_matcher: "Bash(" is no pattern' in text
    file = place.check(place.write(place.user, of(matcher="Bash", command="true")))
    event = event_of("prx.lifecycle.tool_call_start", b'{"tool":"BashOutput"}', "s1")
    (fired,) = fire(event, [file], world(place.environ), str(place.workspace)).files[0].fired
    assert not fired.matched
    assert fired.reason == 'its matcher "Bash", compared with the whole value, does not match "BashOutput"'


def prompt_and_agent_handlers_never_run(place: Place) -> None:
    """Only commands run."""
    for kind in ("prompt", "agent"):
        states, text = told(place.check(place.write(place.user, of(type=kind))))
        assert states == ["skipped"]
        assert f"not_run: {kind} handlers are read and skipped" in text


def a_block_has_no_effect(place: Place) -> None:
    """It takes exit code 2 and a reason on stderr, or exit code 0 and a decision on stdout."""
    for command, why in (
        ("echo no >&2; exit 1", "exit code 1 does not block"),
        ("test -f ok || exit 2", "exit code 2 blocks only with a reason on stderr"),
    ):
        _, text = told(place.check(place.write(place.user, of(command=command))))
        assert f"does_not_block: {why}" in text
        assert "exit code 2 and a reason on stderr, or exit code 0 and a JSON decision on stdout" in text
    for command in ("echo no >&2; exit 2", "./guard.sh", "exit 0"):
        assert told(place.check(place.write(place.user, of(command=command))))[1] == ""


def the_model_does_not_see_an_echo(place: Place) -> None:
    """Plain output is context for three events alone."""
    _, text = told(place.check(place.write(place.user, of("PostToolUse", command="echo be careful"))))
    assert "unseen_output: the model does not see plain output of PostToolUse" in text
    assert "only that of SessionStart, UserPromptSubmit, SubagentStart is context" in text
    assert "print hookSpecificOutput.additionalContext" in text
    for event, command in (("SessionStart", "echo hello"), ("PostToolUse", "echo x >> log")):
        assert told(place.check(place.write(place.user, of(event, command=command))))[1] == ""


ROWS: list[Callable[[Place], None]] = [
    no_hook_runs,
    project_hooks_do_not_run,
    the_whole_file_is_ignored,
    an_event_is_ignored,
    a_handler_never_runs,
    prompt_and_agent_handlers_never_run,
    a_block_has_no_effect,
    the_model_does_not_see_an_echo,
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_check_tells_the_cause(row: Callable[[Place], None], place: Place) -> None:
    """Each symptom of the table is put, and the cause that the page gives is what is told."""
    row(place)


def test_there_is_a_row_for_each_symptom_of_the_page(pages: Path) -> None:
    """The page's table has as many symptoms as are tried here."""
    assert len(page.symptoms(page.find(pages))) == len(ROWS)
