"""Roles as directories: what is loaded of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.hooks.module_hook import ModuleHook
from subscribers.sources.role_directories import directories_of, load_role
from subscribers.sources.role_modules import Languages
from tests.subscribers.sources.role_scene import ROLE, codes, write_role


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """A role with modules and functions."""
    return write_role(tmp_path)


def test_a_role_is_loaded_with_its_modules(role: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hook has a module of an id of its own, or a remark; the others run."""
    monkeypatch.setenv("WHO", "me")
    loaded = load_role(str(role))
    assert (loaded.id, loaded.name, loaded.directory, loaded.kept) == ("coder", "Coder", str(role), False)
    first, second, third = loaded.modules
    real = os.path.realpath(role)
    digest = first.digest
    assert first == ModuleHook(f"{role}#js", "js", f"{real}/hooks/a.js", digest, '{"who":"me"}', "Coder")
    assert (second.id, second.path, second.config) == (f"{role}#py", f"{real}/hooks/b.py", None)
    assert (third.id, third.digest) == (f"{role}#js#2", digest)
    assert loaded.hooks[3].module is None
    (said,) = loaded.hooks[3].diagnostics
    assert (said.code, said.line, said.column, said.field) == (
        "missing_module",
        10,
        45,
        "hooks.custom[3].module",
    )
    assert codes(loaded) == ["same_name", "missing_module", "only_a_name"]


def test_every_hook_has_an_id_of_its_own(role: Path) -> None:
    """However they are called; the same ones as long as those of the same name keep their order."""
    names = ("a", "a#2", "a", "a")
    hooks = "".join(f"    - {{name: '{name}', events: [event], module: hooks/b.py}}\n" for name in names)
    (role / "role.yaml").write_text(f"name: Coder\nhooks:\n  custom:\n{hooks}")
    ids = [module.id for module in load_role(str(role)).modules]
    assert ids == [f"{role}#a", f"{role}#a#2", f"{role}#a#3", f"{role}#a#4"]


def test_functions_are_read_from_the_directory(role: Path) -> None:
    """Those that are named, and those that are marked; a file beyond the directory is not read."""
    (role / "functions" / "strict.md").write_text("---\nauto_activate: true\n---\nBe strict.\n")
    (role / "functions" / "other.md").write_text("Other.\n")
    (role / "functions" / "empty.md").write_text("")
    (role / "functions" / "Bad Name.md").write_text("---\nauto_activate: true\n---\nx\n")
    (role / "functions" / "plain.md").symlink_to("/etc/hostname")
    loaded = load_role(str(role), environ={"WHO": "me"})
    texts = {function.name: function.text for function in loaded.functions}
    assert texts == {
        "plan": None,
        "execute": None,
        "loop": None,
        "review": "Review for me.",
        "plain": None,
        "strict": "Be strict.",
    }
    assert loaded.automatic == ("review", "plan", "strict")
    assert loaded.locked == ("review",)
    said = next(said for said in loaded.diagnostics if said.code == "outside_role")
    assert said.path == str(role / "functions" / "plain.md")


def test_a_disabled_function_is_not_activated_by_its_mark(role: Path) -> None:
    """Also without any folder of functions there is no fault."""
    (role / "functions" / "strict.md").write_text("---\nauto_activate: true\n---\nBe strict.\n")
    (role / "role.yaml").write_text(
        "name: a\nprompt: x\ndisable_functions: [strict]\nhooks: {builtin: {auto_activate: true}}\n"
    )
    assert load_role(str(role)).automatic == ()
    (role / "functions" / "strict.md").unlink()
    (role / "functions" / "review.md").unlink()
    (role / "functions").rmdir()
    assert load_role(str(role)).diagnostics == ()


def test_a_function_that_cannot_be_read_is_told(role: Path) -> None:
    """A file that is too large, or that goes meanwhile, leaves the role."""
    (role / "functions" / "review.md").write_text("x" * 65_537)
    assert "file_too_large" in codes(load_role(str(role), environ={}))


def test_prxbus_keeps_its_secrets(role: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No placeholder gets them."""
    monkeypatch.setenv("PRXBUS_API_TOKEN", "secret")
    (role / "role.yaml").write_text(ROLE.replace("{env:WHO}", "{env:PRXBUS_API_TOKEN}"))
    loaded = load_role(str(role))
    assert loaded.modules[0].config == '{"who":"{env:PRXBUS_API_TOKEN}"}'


def test_a_language_that_cannot_be_run_leaves_the_others(role: Path) -> None:
    """Its hooks are warned of, not refused."""
    loaded = load_role(str(role), Languages(javascript="needs Node 20 or newer"), {})
    assert [module.name for module in loaded.modules] == ["py"]
    (said,) = loaded.hooks[0].diagnostics
    assert (said.severity, said.code, said.message) == ("warning", "no_runtime", "needs Node 20 or newer")


def test_a_directory_without_a_role_says_why(tmp_path: Path) -> None:
    """No directory, no file, a misspelled one, or one that cannot be read."""
    for place, code, hint in (
        ("none", "no_directory", "correct the path"),
        ("empty", "no_role", "name a directory"),
        ("other", "no_role", 'rename "role.yml"'),
        ("around", "no_role", 'as these below it: "a1", "a2", "a3", "a4", "a5", ...'),
        ("folder", "not_a_file", "regular file"),
    ):
        if place != "none":
            (tmp_path / place).mkdir()
        if place == "other":
            (tmp_path / place / "role.yml").write_text("name: x\n")
        for number in range(6) if place == "around" else ():
            (tmp_path / place / f"a{number + 1}").mkdir()
            (tmp_path / place / f"a{number + 1}" / "role.yaml").touch()
        if place == "folder":
            (tmp_path / place / "role.yaml").mkdir()
        loaded = load_role(str(tmp_path / place))
        (said,) = loaded.diagnostics
        assert (said.severity, said.code, loaded.role.refused) == ("error", code, True)
        assert hint in (said.hint or "")
        assert (loaded.hooks, loaded.functions, loaded.name) == ((), (), place)


def test_a_role_may_be_named_by_its_file_and_counts_once(role: Path, tmp_path: Path) -> None:
    """The file, the directory, and a link to it are one role."""
    (tmp_path / "alias").symlink_to(role)
    named = [str(role / "role.yaml"), str(role), str(tmp_path / "alias"), str(tmp_path / "two")]
    assert directories_of(named) == (str(role), str(tmp_path / "two"))
    assert load_role(named[0]) == load_role(named[1])
