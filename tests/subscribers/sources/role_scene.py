"""A role with modules and functions, for tests of what is read of it and of what a change does."""

from __future__ import annotations

from pathlib import Path

from subscribers.sources.role_directories import LoadedRole

ROLE = """\
name: Coder
functions: [review, plain]
auto_activate: [review, plan]
hooks:
  builtin: {auto_activate: true}
  custom:
    - {name: js, events: [event], module: hooks/a.js, config: {who: "{env:WHO}"}}
    - {name: py, events: [event], module: hooks/b.py}
    - {name: js, events: [chat.message], module: hooks/a.js}
    - {name: gone, events: [event], module: hooks/gone.js}
"""


def write_role(folder: Path) -> Path:
    """Put it into a folder."""
    found = folder / "coder"
    (found / "hooks").mkdir(parents=True)
    (found / "functions").mkdir()
    (found / "role.yaml").write_text(ROLE)
    (found / "hooks" / "a.js").write_text("export default {}\n")
    (found / "hooks" / "b.py").write_text("x = 1\n")
    (found / "functions" / "review.md").write_text("---\nlocked: true\n---\nReview for {env:WHO}.\n")
    return found


def codes(role: LoadedRole) -> list[str]:
    """The codes of what there is to say of a role."""
    return [diagnostic.code for diagnostic in role.diagnostics]
