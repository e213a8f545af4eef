"""Hooks of roles as values."""

from __future__ import annotations

from dataclasses import replace

from subscribers.hooks.module_hook import HANDLER_OF, SUFFIXES, ModuleHook

HOOK = ModuleHook("/r#h", "h", "/r/h.js", "abc", '{"a": 1}', "r")


def test_equal_hooks_are_one_and_an_edited_module_is_another() -> None:
    """Nothing has to be loaded again that is the same, and nothing is taken for the same that is not."""
    assert len({HOOK, replace(HOOK)}) == 1
    others = {replace(HOOK, digest="abd"), replace(HOOK, config=None), replace(HOOK, id="/r#h#2")}
    assert len({HOOK, *others}) == 4


def test_every_event_of_a_role_has_a_handler_and_every_module_a_language() -> None:
    """As the page's table of handlers has them, and for TypeScript too."""
    assert len(set(HANDLER_OF.values())) == len(HANDLER_OF) == 5
    assert {SUFFIXES[suffix] for suffix in (".js", ".mjs", ".cjs", ".ts")} == {"javascript"}
    assert SUFFIXES[".py"] == "python"
