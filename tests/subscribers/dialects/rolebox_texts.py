"""Texts of role.yaml files, and what the dialect makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from subscribers.dialects.rolebox_file import read_role
from subscribers.dialects.rolebox_spec import Role, RoleHook
from subscribers.hooks.diagnostics import Diagnostic

PATH = "/srv/roles/coder/role.yaml"
SIBLING = "    - {name: sibling, events: [event], module: hooks/sibling.js}\n"


def read(text: str | bytes, environ: Mapping[str, str] | None = None) -> Role:
    """The role as the dialect reads it."""
    return read_role(text if isinstance(text, bytes) else text.encode(), PATH, environ)


def role_of(*entries: str) -> str:
    """A role with these hooks, each in flow style without its braces."""
    hooks = "".join(f"    - {{{entry}}}\n" for entry in entries)
    return f"name: Coder\nhooks:\n  custom:\n{hooks}"


def entry(**changed: str) -> str:
    """A good hook in flow style; a key that is changed to nothing is left out."""
    keys = {"name": "check", "events": "[tool.execute.before]", "module": "hooks/check.js"} | changed
    return ", ".join(f"{key}: {value}" for key, value in keys.items() if value)


def one(text: str) -> RoleHook:
    """The only hook of a role about which nothing is said."""
    role = read(text)
    assert role.diagnostics == ()
    (hook,) = role.hooks
    return hook


def said(role: Role) -> list[str]:
    """The codes of what there is to say."""
    return [diagnostic.code for diagnostic in role.diagnostics]


def only(role: Role) -> Diagnostic:
    """The one diagnostic."""
    (diagnostic,) = role.diagnostics
    return diagnostic
