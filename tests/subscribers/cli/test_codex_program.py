"""What ``prxbus up`` tells the process of the Codex family's hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.cli import codex_program as module
from subscribers.cli.codex_program import codex_program, has_hooks, missing_package, of_family
from subscribers.cli.up import programs
from subscribers.config.hook_files import HookFile
from subscribers.config.schema import Hooks, Settings

BITFUN = Settings(hooks=Hooks(bitfun=True, strict=True))
MORE = HookFile("/team/hooks.json", None, False)


def told(settings: Settings, workspace: str | None, *files: HookFile) -> dict[str, list[str]]:
    """The options of the process with their values."""
    environ = {"PRXBUS_CONFIG_DIR": "/c", "XDG_CONFIG_HOME": "/x", "XDG_DATA_HOME": "/d"}
    program = codex_program(settings, "/run/x", workspace, files, ("--sandbox", "none"), environ)
    assert (program.name, program.rank) == ("codex", 1)
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for argument in program.argv[4:]:
        if argument.startswith("--"):
            values = found.setdefault(argument, [])
        else:
            values.append(argument)
    return found


def test_it_waits_for_every_file_that_may_hold_hooks() -> None:
    """Also for those that are switched off: switches count at the next event."""
    argv = told(Settings(), "/w", MORE)
    assert argv["--watch"][:3] == ["/c/hooks.json", "/team/hooks.json", "/w/.prxbus/hooks.json"]
    assert argv["--watch"][3] == "/d/prxbus/imports/user/index.json"
    assert argv["--settings"] == ["/c/prxbus.toml", "/w/.prxbus/config.toml"]
    assert (argv["--workspace"], argv["--runs"]) == (["/w"], ["32"])
    assert "--bitfun" not in argv


def test_bitfuns_places_are_waited_for_where_that_is_asked_for() -> None:
    """Without a workspace those of the user alone."""
    argv = told(BITFUN, None)
    assert argv["--watch"][:2] == ["/c/hooks.json", "/x/bitfun/config/hooks.json"]
    assert argv["--settings"] == ["/c/prxbus.toml"]
    assert argv["--bitfun"] == argv["--strict"] == []
    assert "--workspace" not in argv


def test_without_its_package_the_rest_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing, what that means and how to get it is one line; everything else is as ever."""
    assert missing_package() is None
    assert "codex" in {each.name for each in programs(Settings(), "/run/x", None, None, (), ())}
    monkeypatch.setattr(module, "PACKAGE", "no_such_package_of_ours")
    assert "codex" not in {each.name for each in programs(Settings(), "/run/x", None, None, (), ())}
    said = missing_package() or ""
    assert said.endswith("the package google-re2 is missing; install it with: pip install 'prxbus[run]'")


def test_whether_there_are_hooks_now(tmp_path: Path) -> None:
    """A file is enough, whatever is in it."""
    environ = {"PRXBUS_CONFIG_DIR": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    assert not has_hooks(Settings(), None, (), environ)
    (tmp_path / "hooks.json").write_text("")
    assert has_hooks(Settings(), None, (), environ)


@pytest.mark.parametrize(
    "said, words",
    [
        ({}, ""),
        ({"handlers": 1}, ", 1 hook of the Codex family"),
        ({"handlers": 2}, ", 2 hooks of the Codex family"),
    ],
)
def test_the_ready_line_counts_them(said: dict[str, int], words: str) -> None:
    """None is not worth a word."""
    assert of_family(said) == words


def test_the_master_switch_stops_prx_hooks_too() -> None:
    """Switched off, no process runs a workspace's hooks; the family's looks for the switch at each event."""
    names = [
        {program.name for program in programs(Settings(hooks=Hooks(enabled=on)), "/run/x", "/w")}
        for on in (True, False)
    ]
    assert names[0] - names[1] == {"shell"}
    assert "codex" in names[1]
