"""What reading one hook file of the Codex family brings up: our remarks, and what the agent itself would say.

It keeps three lists apart: findings with places, the agent's own warnings in its words and order, and the
faults for which it would refuse the whole file. It refuses to know what is right or wrong.
"""

from __future__ import annotations

from typing import Final, Literal

from .codex_profiles import Profile
from .codex_rules import CODES
from .codex_values import fields_of
from .findings import Findings
from .json_positions import Path

ALWAYS: Final = frozenset(
    {"wrong_root", "unknown_root_key", "misplaced_event", "other_system", "wrong_hooks"}
)
"""Faults for which every agent refuses the whole file."""


LONGEST_TEXT: Final = 1_000
"""Characters that are kept of a text in an agent's own words, which repeats what the file holds."""


class CodexFindings(Findings):
    """The findings of one file, read in one profile. ``path`` is how warnings name it."""

    def __init__(self, path: str, profile: Profile) -> None:
        super().__init__(CODES)
        self.path = path
        self.profile = profile
        self.fields = fields_of(profile)
        self.warnings: list[str] = []
        self.voids: list[str] = []

    def warn(
        self,
        code: str,
        where: Path,
        message: str,
        warning: str,
        hint: str | None = None,
        *,
        at: Literal["key", "value"] = "value",
    ) -> None:
        """A remark where the agent has one too; ``warning`` is its text."""
        self.say(code, where, message, hint, at=at)
        if self.profile.own_texts:
            self.warnings.append(_cut(warning))

    def void(
        self,
        code: str,
        where: Path,
        message: str,
        reason: str,
        hint: str | None = None,
        *,
        at: Literal["key", "value"] = "value",
    ) -> None:
        """A fault for which an agent may refuse the whole file; ``reason`` is how its reader puts it."""
        self.say(code, where, message, hint, at=at)
        if self.profile.fault == "file" or code in ALWAYS:
            self.refuse(reason if self.profile.own_texts else message)

    def refuse(self, reason: str) -> None:
        """Keep why the agent would refuse the file."""
        self.voids.append(_cut(reason))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
