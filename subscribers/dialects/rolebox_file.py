"""A ``role.yaml`` as a whole: whether it is one, its hooks, its functions, and everything that is wrong.

Decides what belongs to rolebox and what to something else that has a file of this name. A bad entry is told
and leaves its siblings. It refuses to know the folder around the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..hooks.diagnostics import Diagnostic, quote
from . import rolebox_rules as rules
from .nearest import nearest
from .rolebox_hook import read_hook
from .rolebox_reading import ARTICLES, Entry, Reading, within
from .rolebox_spec import Role, RoleHook
from .yaml_nodes import BYTE_ORDER_MARK, Node, YamlRefused, read_documents

_DOCUMENTS: Final = 16
"""Documents of one file that are looked at."""
_LOOKED_AT: Final = 20
"""Keys of a strange file that are compared with ours."""


def read_role(content: bytes, path: str, environ: Mapping[str, str] | None = None) -> Role:
    """Read a ``role.yaml``. Raises nothing: what is wrong becomes a diagnostic.

    ``path`` is how diagnostics name the file. ``environ`` is where ``{env:NAME}`` is looked up, in every text
    that is read; None leaves placeholders as they are.
    """
    if len(content) > rules.MAX_FILE_BYTES:
        message = f"the file has {len(content):,} bytes, more than {rules.MAX_FILE_BYTES:,}"
        return _refused(path, "file_too_large", None, message, "put what is long into files of its own")
    try:
        documents = read_documents(content.removeprefix(BYTE_ORDER_MARK), rules.MAX_DEPTH, _DOCUMENTS)
    except YamlRefused as error:
        at = Node("null", "", (), error.line, error.column)
        return _refused(path, error.code, at, error.message, error.hint)
    found = _root(documents, path)
    if isinstance(found, Role):
        return found
    reading = Reading(path, environ)
    if content.startswith(BYTE_ORDER_MARK):
        hint = "save it as UTF-8 without a byte order mark"
        reading.say("byte_order_mark", None, None, "the byte order mark is ignored", hint)
    return _RoleReading(reading, found).read()


def _refused(path: str, code: str, at: Node | None, message: str, hint: str | None) -> Role:
    line, column = (None, None) if at is None else (at.line, at.column)
    said = Diagnostic(rules.CODES[code], code, path, line, column, None, message, hint)
    return Role(path, diagnostics=(said,), refused=True, foreign=code == "foreign_file")


def _root(documents: list[Node], path: str) -> Node | Role:
    """The mapping that is the role, or the role that says why there is none."""
    filled = [document for document in documents if document.kind != "null"]
    if not filled:
        return _refused(path, "empty_file", None, "the file is empty", "write name: and hooks:")
    owner = next((owner for document in filled if (owner := _owner(document)) is not None), None)
    if owner is None and not any(_is_role(document) for document in filled):
        owner = f"no role of rolebox: it holds {_shown(filled[0])}"
    if owner is not None:
        hint = "it is left alone; a role has name, prompt and hooks"
        return _refused(path, "foreign_file", filled[0], f"this is {owner}", hint)
    if len(filled) > 1:
        second = filled[1]
        message = "a second document begins here: a role.yaml describes one role"
        return _refused(path, "several_documents", second, message, "put it into a folder of its own")
    return filled[0]


def _owner(document: Node) -> str | None:
    """What else a document plainly is."""
    if document.kind == "list":
        names = {key.text for item in document.items() if item.kind == "mapping" for key, _ in item.pairs()}
        return "a list of Ansible" if names & {"hosts", "roles", "tasks", "name"} else None
    if document.kind != "mapping":
        return None
    texts = {key.text: value.text for key, value in document.pairs()}
    if "apiVersion" in texts and "kind" in texts:
        return f"a {quote(texts['kind'])[1:-1]} of Kubernetes"
    if "galaxy_info" in texts or "argument_specs" in texts:
        return "a file of an Ansible role"
    return None


def _is_role(document: Node) -> bool:
    """Whether a document has what only roles have, or what was meant for that."""
    if document.kind != "mapping":
        return False
    names = [key.text for key, _ in document.pairs()]
    known = {*rules.OWN_KEYS, *rules.OTHER_KEYS}
    if rules.SIGNS.intersection(names) or known.issuperset(names):
        return True
    signs = sorted(rules.SIGNS)
    return any(nearest(name, signs) is not None for name in names[:_LOOKED_AT] if name not in known)


def _shown(document: Node) -> str:
    if document.kind != "mapping":
        return ARTICLES[document.kind]
    names = [key.text or ARTICLES[key.kind] for key, _ in document.pairs()]
    return ", ".join(map(quote, names[:5])) or "no keys"


class _RoleReading:
    """A role being read."""

    def __init__(self, reading: Reading, root: Node) -> None:
        self.reading = reading
        self.root = root
        self.entries = self.keys(root)

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
