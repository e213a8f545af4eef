"""What the model reads of a long text: sections 4.6 and 5 of the Codex contract, BitFun's and Claude's rules.

Decides whether a text is too long, and what is kept of it: its head and tail around a marker, a last line
that names the file with the whole of it, or a cut that is marked. It refuses to know where files are: whoever
asks saves the text, or does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from .codex_profiles import Profile, TextLimit
from .codex_result_values import Context, Effects

TOKEN_BYTES: Final = 4
"""A token is taken to be four bytes, as Codex does."""

CUT_MARK: Final = "\n[hook output truncated]"

Save = Callable[[str], str | None]
"""Saves a text and says where, as an absolute path; None: it could not be saved."""


def is_long(text: str, rule: TextLimit, limit: int | None = None) -> bool:
    """Whether a text has more than ``limit`` of the rule's units; None: the rule's own, 0: it never has."""
    most = rule.limit if limit is None else limit
    return most > 0 and _size(text, rule) > most


def shortened(text: str, rule: TextLimit, save: Save, limit: int | None = None) -> str:
    """What the model reads of ``text``; ``save`` is called where the rule keeps the whole in a file."""
    if not is_long(text, rule, limit):
        return text
    if not rule.spills:
        return _cut(text, rule) + CUT_MARK
    most = rule.limit if limit is None else limit
    path = save(text)
    footer = "" if path is None else f"\n\nFull hook output saved to: {path}"
    if rule.preview is not None:
        kept = min(rule.preview, most)
        return f"{text[:kept]}\n…{len(text) - kept} characters truncated…{footer}"
    return _preview(text, max(0, most - _tokens(footer))) + footer


def within_limits(effects: Effects, profile: Profile, save: Save) -> Effects:
    """The effects of a run with every text that the model reads as long as it may be.

    Contexts have limits of their own; reasons, feedback and prompts the profile's.
    """
    rule = profile.text

    def fitting(text: str | None) -> str | None:
        return None if text is None else shortened(text, rule, save)

    reason = fitting(effects.reason)
    feedback = reason if effects.feedback == effects.reason else fitting(effects.feedback)
    return replace(
        effects,
        reason=reason,
        feedback=feedback,
        output=feedback if effects.output is effects.feedback else effects.output,
        contexts=tuple(
            Context(shortened(each.text, rule, save, each.limit), each.limit) for each in effects.contexts
        ),
    )


def _size(text: str, rule: TextLimit) -> int:
    if rule.unit == "characters":
        return len(text)
    return _tokens(text) if rule.unit == "tokens" else len(text.encode("utf-8", "replace"))


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // TOKEN_BYTES)


def _cut(text: str, rule: TextLimit) -> str:
    """The beginning, as long as the limit, with no character cut in two."""
    return text.encode("utf-8", "replace")[: rule.limit].decode("utf-8", "ignore")


def _preview(text: str, tokens: int) -> str:
    """Head and tail of a text with how much of it is left out, in the words that Codex has for it."""
    data = text.encode("utf-8", "replace")
    half = tokens * TOKEN_BYTES // 2
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - (tokens * TOKEN_BYTES - half) :].decode("utf-8", "ignore") if tokens else ""
    left_out = -(-(len(data) - len(head.encode()) - len(tail.encode())) // TOKEN_BYTES)
    lines = text.count("\n") + (not text.endswith("\n"))
    return (
        f"Warning: truncated output (original token count: {_tokens(text)})\nTotal output lines: {lines}\n\n"
        f"{head}…{left_out} tokens truncated…{tail}"
    )
