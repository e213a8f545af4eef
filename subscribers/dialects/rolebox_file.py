"""A ``role.yaml`` as a whole: its hooks, its functions, and everything that is wrong.

Decides what of a file is in force: a bad entry is told and leaves its siblings. It refuses to know the folder
around the file.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..hooks.diagnostics import quote
from . import rolebox_rules as rules
from .rolebox_foreign import root_of
from .rolebox_hook import read_hook
from .rolebox_reading import Entry, Reading, within
from .rolebox_spec import Role, RoleHook
from .yaml_nodes import BYTE_ORDER_MARK, Node


def read_role(content: bytes, path: str, environ: Mapping[str, str] | None = None) -> Role:
    """Read a ``role.yaml``. Raises nothing: what is wrong becomes a diagnostic.

    ``path`` is how diagnostics name the file. ``environ`` is where ``{env:NAME}`` is looked up, in every text
    that is read; None leaves placeholders as they are.
    """
    found = root_of(content, path)
    if isinstance(found, Role):
        return found
    reading = Reading(path, environ)
    if content.startswith(BYTE_ORDER_MARK):
        hint = "save it as UTF-8 without a byte order mark"
        reading.say("byte_order_mark", None, None, "the byte order mark is ignored", hint)
    return _RoleReading(reading, found).read()


class _RoleReading:
    """A role being read."""

    def __init__(self, reading: Reading, root: Node) -> None:
        self.reading = reading
        self.root = root
        self.entries = self.keys(root)
        self.bad_hooks = 0

    def keys(self, root: Node) -> dict[str, Entry]:
        """The keys of the role; unknown ones are remarked upon, for some of them gently."""
        entries = self.reading.entries(root, "")
        known = (*rules.OWN_KEYS, *rules.OTHER_KEYS)
        for name in [name for name in entries if name not in known]:
            key = entries.pop(name).key
            near = self.reading.near(name, rules.OWN_KEYS)
            if near is not None:
                self.reading.unknown(key, within("", name), (near,))
            else:
                message = f"{quote(name)} is no key of a role that is known here"
                self.reading.say("other_key", key, within("", name), message, None)
        return entries

    def read(self) -> Role:
        name = self.name()
        hooks, switch = self.hooks()
        self.subagents()
        disabled = tuple(self.function_names("disable_functions"))
        functions = self.functions(disabled)
        automatic = self.function_names("auto_activate")
        self.look_for(automatic, functions)
        locked = self.flag("locked")
        description = self.entries.get("description")
        is_text = description is not None and description.value.kind == "string"
        return Role(
            self.reading.path,
            name,
            description.value.text[: rules.MAX_DESCRIPTION] if description and is_text else "",
            hooks,
            switch,
            tuple(automatic),
            bool(locked),
            functions,
            disabled,
            self.bad_hooks,
            self.reading.diagnostics(),
        )

    def value(self, name: str) -> Node | None:
        entry = self.entries.get(name)
        return None if entry is None or entry.value.kind == "null" else entry.value

    def flag(self, name: str) -> bool | None:
        node = self.value(name)
        return None if node is None else self.reading.flag(node, name)

    def name(self) -> str | None:
        """What the file calls the role; its folder names it where this is None."""
        node = self.value("name")
        text = None if node is None else self.reading.text(node, "name", rules.MAX_NAME)
        if text is not None and text.strip():
            return text
        if node is None or text is not None:
            message = "the role has no name: it is called by its folder, and rolebox itself passes it over"
            self.reading.say("no_name", node or self.root, "name", message, "write name: My Role")
        return None

    def hooks(self) -> tuple[tuple[RoleHook, ...], bool | None]:
        """The hooks that may run, and the switch of functions."""
        node = self.value("hooks")
        found = None if node is None else self.reading.mapping(node, "hooks")
        if found is None:
            return (), None
        entries = self.reading.entries(found, "hooks", rules.HOOKS_KEYS)
        custom = entries.get("custom")
        builtin = entries.get("builtin")
        return (
            () if custom is None else self.custom(custom.value),
            None if builtin is None else self.builtin(builtin.value),
        )

    def custom(self, node: Node) -> tuple[RoleHook, ...]:
        items = self.reading.items(node, "hooks.custom") or []
        if len(items) > rules.MAX_HOOKS:
            message = f"{len(items)} hooks are more than {rules.MAX_HOOKS}: this and those behind do not run"
            place = f"hooks.custom[{rules.MAX_HOOKS}]"
            self.reading.say("too_many", items[rules.MAX_HOOKS], place, message, "make a second role of them")
        found = []
        first: dict[str, int] = {}
        for index, item in enumerate(items[: rules.MAX_HOOKS]):
            field = f"hooks.custom[{index}]"
            hook = read_hook(self.reading, item, index, field)
            if hook is None:
                continue
            if hook.name in first:
                message = (
                    f"{quote(hook.name)} names hooks.custom[{first[hook.name]}] too: reports mix them up"
                )
                self.reading.say("same_name", item, field, message, "give it a name of its own")
            first.setdefault(hook.name, index)
            found.append(hook)
        self.bad_hooks = len(items) - len(found)
        return tuple(found)

    def builtin(self, node: Node) -> bool | None:
        found = self.reading.mapping(node, "hooks.builtin")
        if found is None:
            return None
        field = "hooks.builtin"
        entries = self.reading.entries(found, field, ("auto_activate", *rules.BUILTINS))
        on = [name for name, entry in entries.items() if name in rules.BUILTINS and _is_on(entry.value)]
        if on:
            message = f"{', '.join(on)}: a part of rolebox itself, which does nothing here"
            self.reading.say("not_provided", entries[on[0]].key, field, message, None)
        switch = entries.get("auto_activate")
        return None if switch is None else self.reading.flag(switch.value, f"{field}.auto_activate")

    def subagents(self) -> None:
        """That hooks of subagents do not run: rolebox reads those of the role alone, too."""
        node = self.value("subagents")
        for index, item in enumerate(node.items() if node is not None and node.kind == "list" else ()):
            keys = [key for key, _ in item.pairs() if key.text == "hooks"] if item.kind == "mapping" else []
            if keys:
                message = "hooks of a subagent are not read"
                hint = "declare them for the role itself"
                self.reading.say("not_provided", keys[0], f"subagents[{index}].hooks", message, hint)

    def functions(self, disabled: tuple[str, ...]) -> tuple[str, ...]:
        """The functions that the role has, by name: rolebox's own, its own, without the disabled ones."""
        names = dict.fromkeys((*rules.OWN_FUNCTIONS, *self.function_names("functions")))
        return tuple(name for name in names if name not in disabled)

    def function_names(self, key: str) -> dict[str, Node]:
        """A list of names of functions, each with its place."""
        node = self.value(key)
        items = (None if node is None else self.reading.items(node, key)) or []
        if len(items) > rules.MAX_FUNCTIONS:
            message = f"{len(items)} functions are more than {rules.MAX_FUNCTIONS}"
            self.reading.say("too_many", items[rules.MAX_FUNCTIONS], key, message, "name fewer")
        found: dict[str, Node] = {}
        for index, item in enumerate(items[: rules.MAX_FUNCTIONS]):
            name = self.reading.text(item, f"{key}[{index}]", rules.MAX_NAME)
            if name is None:
                continue
            if rules.FUNCTION_NAME.fullmatch(name) is None:
                message = f"{quote(name)} cannot name a function: |name| has a-z, 0-9 and dashes"
                self.reading.say("bad_function_name", item, f"{key}[{index}]", message, "rename it")
                continue
            found.setdefault(name, item)
        return found

    def look_for(self, automatic: Mapping[str, Node], functions: tuple[str, ...]) -> None:
        """What is activated by itself and is no function of the role; rolebox activates it all the same."""
        for name, node in automatic.items():
            if name not in functions:
                near = self.reading.near(name, functions)
                hint = "name it in functions" if near is None else f"did you mean {near}?"
                message = f"{quote(name)} is no function of this role"
                self.reading.say("unknown_function", node, "auto_activate", message, hint)


def _is_on(node: Node) -> bool:
    return node.kind == "boolean" and node.text.lower() == "true"
