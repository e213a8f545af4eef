"""``prxbus info`` as a user types it: what it says of a role, and how it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from subscribers.config.schema import Roles
from subscribers.dialects.rolebox_lock import digest, orders
from subscribers.runner import role_info
from subscribers.runner.role_info import UnknownRole, find_role, look
from subscribers.runtimes.node_program import NodeMissing, NodeProgram, find_node
from tests.subscribers.cli.typing_commands import Type, as_json, typing

ROLE = """\
name: Coder
description: writes code
auto_activate: [review]
locked: true
functions: [review]
hooks:
  custom:
    - {name: guard, events: [tool.execute.before, event], module: hooks/guard.py, filter: {tools: [edit]}}
"""
GUARD = "def on_tool_before(ctx, tool, args):\n    return None\n"


@pytest.fixture
def role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A role with a hook in Python, of a user with no settings and no records."""
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("PRXBUS_CONFIG_DIR", str(tmp_path / "config"))
    folder = tmp_path / "coder"
    (folder / "hooks").mkdir(parents=True)
    (folder / "functions").mkdir()
    (folder / "role.yaml").write_text(ROLE)
    (folder / "hooks" / "guard.py").write_text(GUARD)
    (folder / "functions" / "review.md").write_text("Review it.\n")
    return folder


@pytest.fixture
def node(require_tool: Callable[[str], str]) -> NodeProgram:
    """A Node that runs modules."""
    require_tool("node")
    found = find_node(None, os.environ)
    if isinstance(found, NodeMissing):
        pytest.skip(found.reason)
    return found


@pytest.fixture
def typed(capsysbinary: pytest.CaptureFixture[bytes]) -> Type:
    """Types commands."""
    return partial(typing(capsysbinary), "info")


def test_a_role_is_shown_without_being_loaded(role: Path, typed: Type) -> None:
    """Its hooks with their modules, its functions, its hash; nothing is executed."""
    (role / "hooks" / "guard.py").write_text("raise SystemExit(9)\n")
    text = typed(str(role))
    assert "Coder" in text
    assert "writes code" in text
    assert "found   guard  tool.execute.before, event  hooks/guard.py" in text
    assert "review  (with the first message, locked)" in text
    assert "plan" not in text  # rolebox's own, which nobody has written here
    (role / "role.yaml").write_text(ROLE.replace("[review]", "[plan]", 1))
    assert "plan  (with the first message, locked, no functions/plan.md)" in typed(str(role))
    assert "nothing was accepted yet" in text
    assert text.endswith("modules not loaded (--check loads them): in order\n")


def test_everything_is_json_too(role: Path, typed: Type) -> None:
    """With the facts of the text, and the same end."""
    told = as_json(typed(str(role / "role.yaml"), "--json"))
    assert (told["role"], told["name"], told["directory"], told["status"]) == (
        "coder",
        "Coder",
        str(role),
        "ok",
    )
    (hook,) = told["hooks"]
    assert (hook["events"], hook["tools"], hook["language"]) == (
        ["tool.execute.before", "event"],
        ["edit"],
        "python",
    )
    assert (hook["loaded"], hook["problem"], hook["path"]) == (None, None, str(role / "hooks" / "guard.py"))
    assert told["functions"][-1] == {
        "name": "review",
        "description": "",
        "file": str(role / "functions" / "review.md"),
        "automatic": True,
        "locked": True,
    }
    assert (told["checked"], told["passed"], told["rolebox_lock"]) == (False, True, None)
    assert told["integrity"]["passed"] is None


def test_what_was_accepted_is_compared_with(role: Path, typed: Type) -> None:
    """A change fails and is named, until it is accepted; text and JSON end alike."""
    assert "recorded just now" in typed(str(role), "--accept")
    assert "ok      as accepted at 20" in typed(str(role))
    (role / "hooks" / "guard.py").write_text(f"{GUARD}# changed\n")
    (role / "new.js").touch()
    (role / "functions" / "review.md").unlink()
    text = typed(str(role), status=1)
    assert "FAILED  not what was accepted at" in text
    assert text.endswith("NOT in order\n")
    told = as_json(typed(str(role), "--json", status=1))["integrity"]
    assert (told["changed"], told["added"], told["removed"], told["passed"]) == (
        ["hooks/guard.py"],
        ["new.js"],
        ["functions/review.md"],
        False,
    )
    text = typed(str(role), "--accept")
    assert "recorded just now; since the last time:" in text
    assert "new.js (added)" in text
    assert as_json(typed(str(role), "--accept", "--json"))["accepted"] is True
    for number in range(25):
        (role / f"f{number}").touch()
    assert "and 5 more" in typed(str(role), status=1)


def test_what_keeps_a_hook_from_running_is_said_once(role: Path, typed: Type) -> None:
    """Beside the hook, with its place and what to do; remarks are what belongs to no hook that is shown."""
    (role / "hooks" / "guard.py").unlink()
    text = typed(str(role), status=1)
    assert text.count("there is no file") == 1
    assert f"{role}/role.yaml:8:" in text
    assert "Remarks" not in text
    (role / "role.yaml").write_text(
        f"{ROLE}    - {{name: typo, events: [chat.massage], module: hooks/x.py}}\n"
    )
    assert "Remarks" in typed(str(role), status=1)


def test_a_record_that_cannot_be_used_is_told(role: Path, tmp_path: Path, typed: Type) -> None:
    """It fails nothing; one that cannot be written fails the command."""
    typed(str(role), "--accept")
    (record,) = (tmp_path / "state" / "prxbus" / "roles").glob("*.json")
    record.chmod(0o666)
    assert "not compared: " in typed(str(role))
    record.unlink()
    record.mkdir()
    assert "prxbus info: " in typed(str(role), "--accept", status=1)


def test_what_cannot_be_read_as_a_whole_is_not_accepted(
    role: Path, typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is told, and fails the check."""
    monkeypatch.setattr("subscribers.sources.role_integrity.MAX_FILES", 1)
    assert "FAILED  it cannot be read as a whole: there are more than 1 files" in typed(str(role), status=1)
    assert "there is nothing to accept" in typed(str(role), "--accept", status=1)


def test_a_configured_role_is_found_by_its_id_or_name(
    role: Path, tmp_path: Path, typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is neither that nor a directory fails, and says what there is."""
    monkeypatch.chdir(tmp_path / "coder" / "hooks")
    settings = Roles(dirs=f"{tmp_path}/none:{role}")
    assert find_role("coder", settings) == str(role)
    assert find_role("Coder", settings) == str(role)
    assert find_role("..", settings) == str(role)
    (Path("coder")).mkdir()
    assert find_role("coder", settings) == str(role)
    (Path("other")).mkdir()
    with pytest.raises(UnknownRole, match=r"'other' is a directory without a role, and no configured role"):
        find_role("other", settings)
    second = tmp_path / "second" / "coder"
    second.mkdir(parents=True)
    with pytest.raises(UnknownRole, match=rf"names 2 configured roles: write one of {role}, {second}"):
        find_role("coder", Roles(dirs=f"{role}:{second}"))
    with pytest.raises(UnknownRole, match=r"roles\.dirs names: none, coder"):
        find_role("Codr", settings)
    with pytest.raises(UnknownRole, match=r"there is no /nothing/here/role\.yaml"):
        find_role("/nothing/here", settings)
    with pytest.raises(UnknownRole, match=r'there is no .*/role\.yaml; name .* as these below it: "coder"'):
        find_role(str(tmp_path), settings)
    assert "'codr' is no directory, and no configured role" in typed("codr", status=1)


def test_a_check_loads_the_modules(role: Path, typed: Type) -> None:
    """What loads and exports a handler is in order; an event without one is remarked upon."""
    text = typed(str(role), "--check")
    assert "ok      guard" in text
    assert "exports onToolBefore" in text
    assert "no handler for event: nothing happens then" in text
    assert text.endswith("Checked: in order\n")
    (role / "hooks" / "guard.py").write_text(GUARD.replace("on_tool_before", "on_tool_befor"))
    text = typed(str(role), "--check", status=1)
    assert text.count("handler") == 1
    assert "FAILED  guard" in text
    assert "its module exports no handler that an event could call" in text


def test_a_check_finds_what_does_not_load(role: Path, typed: Type, node: NodeProgram) -> None:
    """Modules that throw, export nothing, hang or are not there fail it, each alone; both languages."""
    assert node.version >= (20,)
    names = {"good.mjs": "export default { onEvent() {} }", "throws.mjs": "throw new Error('no luck')"}
    names |= {"none.mjs": "export const x = 1", "quits.py": "raise SystemExit(3)", "none.py": "x = 1"}
    names |= {
        "load.mjs": "export function onLoad() { throw new Error('later') }\nexport function onEvent() {}"
    }
    for name, text in names.items():
        (role / name).write_text(text)
    hooks = "".join(
        f"    - {{name: {name}, events: [event], module: {name}}}\n" for name in (*names, "gone.js")
    )
    (role / "role.yaml").write_text(f"name: Coder\nhooks:\n  custom:\n{hooks}")
    told = as_json(typed(str(role), "--check", "--json", status=1))
    found = {hook["name"]: hook for hook in told["hooks"]}
    assert {name: hook["problem"] is None for name, hook in found.items()} == {
        "good.mjs": True,
        "throws.mjs": False,
        "none.mjs": False,
        "quits.py": False,
        "none.py": False,
        "load.mjs": True,
        "gone.js": False,
    }
    assert "no luck" in found["throws.mjs"]["problem"]
    assert "throws.mjs" in (found["throws.mjs"]["detail"] or "")
    assert found["good.mjs"]["handlers"] == ["onEvent"]
    assert "gone.js" in found["gone.js"]["problem"]
    assert (told["checked"], told["passed"]) == (True, False)


def test_a_file_of_something_else_is_said_to_be_that(role: Path, typed: Type) -> None:
    """It is no role, so that nothing is in order."""
    (role / "role.yaml").write_text("apiVersion: v1\nkind: Role\n")
    text = typed(str(role), status=1)
    assert "this is a Role of Kubernetes" in text
    assert "Integrity" not in text
    assert text.endswith("Not a role, and left alone: NOT in order\n")
    assert as_json(typed(str(role), "--json", status=1))["status"] == "foreign"
    (role / "role.yaml").write_text("hooks: [")
    assert as_json(typed(str(role), "--json", status=1))["status"] == "refused"


def test_a_role_of_rolebox_is_held_against_its_lock_file(
    role: Path, tmp_path: Path, typed: Type, node: NodeProgram
) -> None:
    """Node sorts the files as rolebox did; without it a strange order cannot be verified."""
    assert node.version >= (20,)
    installed = tmp_path / "data" / "rolebox" / "roles" / "official" / "coder@1.0"
    installed.parent.mkdir(parents=True)
    role.rename(installed)
    (installed / "README_é.md").write_text("x")
    (installed / "Zebra.txt").write_text("y")
    files = ["functions/review.md", "hooks/guard.py", "README_é.md", "role.yaml", "Zebra.txt"]
    lock = tmp_path / "config" / "rolebox" / "rolebox.lock"
    lock.parent.mkdir(parents=True)

    def locked(found: str) -> None:
        entry = f"{{role: coder, registry: official, version: '1.0', integrity: {found}}}"
        lock.write_text(f"roles: [{entry}]\n")

    locked(digest(files, lambda name: [(installed / name).read_bytes()]))
    assert f"ok      as {lock} has it" in typed(str(installed))
    (installed / "Zebra.txt").write_text("z")
    assert f"FAILED  not what {lock} has" in typed(str(installed), status=1)
    told = as_json(typed(str(installed), "--json", status=1))["rolebox_lock"]
    assert (told["passed"], told["registry"], told["version"]) == (False, "official", "1.0")
    (tmp_path / "config" / "prxbus.toml").write_text('[roles]\nnode = "/nothing/node"\n')
    assert f"cannot be verified by {lock}" in typed(str(installed))


def test_our_order_of_paths_is_that_of_node(node: NodeProgram) -> None:
    """For printable ASCII, which is what paths of roles are made of."""
    characters = [chr(code) for code in range(33, 127)]
    paths = sorted({a + b for a in characters for b in ("", "a", "B", "_", "9", "/x")})
    sort = role_info._sorter(node, {"LANG": "C.UTF-8"})
    assert sort(paths) == next(orders(paths))


def test_a_node_that_cannot_sort_is_as_good_as_none(role: Path) -> None:
    """Whatever it answers instead."""
    sort = role_info._sorter(NodeProgram("/bin/echo", (20, 0, 0)), {})
    assert sort(["a"]) is None
    assert not look(str(role), Roles(), {}, loads=False).checked
