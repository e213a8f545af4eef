"""Whether a file ``role.yaml`` is one of rolebox, or of something else that has files of this name.

Kubernetes has roles, Helm has templates of those, and Ansible has roles of another kind: they are left alone,
which is no fault. Decides which document of a file is the role. It refuses to know what a role says.
"""

from __future__ import annotations

import re
from typing import Final

from ..hooks.diagnostics import Diagnostic, quote
from . import rolebox_rules as rules
from .nearest import nearest
from .rolebox_reading import ARTICLES
from .rolebox_spec import Role
from .yaml_nodes import BYTE_ORDER_MARK, Node, YamlRefused, read_documents

_DOCUMENTS: Final = 16
"""Documents of one file that are looked at."""
_LOOKED_AT: Final = 20
"""Keys of a strange file that are compared with ours."""
_OF_KUBERNETES: Final = (re.compile(rb"^apiVersion:", re.MULTILINE), re.compile(rb"^kind:", re.MULTILINE))
"""Lines by which a template is known, that is no YAML before it was filled in."""


def root_of(content: bytes, path: str) -> Node | Role:
    """The mapping that is the role, or the role that says why there is none. Raises nothing."""
    if len(content) > rules.MAX_FILE_BYTES:
        message = f"the file has {len(content):,} bytes, more than {rules.MAX_FILE_BYTES:,}"
        return _refused(path, "file_too_large", None, message, "put what is long into files of its own")
    try:
        documents = read_documents(content.removeprefix(BYTE_ORDER_MARK), rules.MAX_DEPTH, _DOCUMENTS)
    except YamlRefused as error:
        at = Node("null", "", (), error.line, error.column)
        if all(line.search(content) for line in _OF_KUBERNETES):
            return _foreign(path, at, "a template of Kubernetes")
        return _refused(path, error.code, at, error.message, error.hint)
    return _of_documents(documents, path)


def _of_documents(documents: list[Node], path: str) -> Node | Role:
    filled = [document for document in documents if document.kind != "null"]
    if not filled:
        return _refused(path, "empty_file", None, "the file is empty", "write name: and hooks:")
    owner = next((owner for document in filled if (owner := _owner(document)) is not None), None)
    if owner is None and not any(_is_role(document) for document in filled):
        owner = f"no role of rolebox: it holds {_shown(filled[0])}"
    if owner is not None:
        return _foreign(path, filled[0], owner)
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


def _foreign(path: str, at: Node, owner: str) -> Role:
    hint = "it is left alone; a role has name, prompt and hooks"
    return _refused(path, "foreign_file", at, f"this is {owner}", hint)


def _refused(path: str, code: str, at: Node | None, message: str, hint: str | None) -> Role:
    line, column = (None, None) if at is None else (at.line, at.column)
    said = Diagnostic(rules.CODES[code], code, path, line, column, None, message, hint)
    return Role(path, diagnostics=(said,), refused=True, foreign=code == "foreign_file")
