"""Takes secrets out of what tools put out, such as `git diff`, before a model reads it.

    prxbus up --workspace . --handlers examples/transforms/redact_secrets.py

Tokens of well-known services, private keys, passwords in URLs and in assignments become `[redacted: KIND]`;
the rest of the text stays as it is. No text takes more than linear time: every pattern begins with a fixed
word, has an end, and gives nothing back; keys over several lines are found line by line.
"""

from __future__ import annotations

import re
from typing import Any

from subscribers.handlers import Context, HandlerEvent, transform

# What begins with a word of its own; `+` behind a bound gives nothing back, so that no search runs twice.
TOKENS = {
    "AWS key": (("AKIA", "ASIA"), r"A(?:KIA|SIA)[0-9A-Z]{16}(?![0-9A-Z])"),
    "GitHub token": (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{36,255}+|github_pat_[A-Za-z0-9_]{22,255}+",
    ),
    "GitLab token": (("glpat-",), r"glpat-[A-Za-z0-9_-]{20,255}+"),
    "Slack token": (("xox",), r"xox[abeoprs]-[A-Za-z0-9-]{10,255}+"),
    "API key": (("sk-", "sk_"), r"sk(?:-[A-Za-z0-9_-]{20,255}+|_(?:live|test)_[A-Za-z0-9]{16,255}+)"),
    "Google key": (("AIza",), r"AIza[0-9A-Za-z_-]{35}"),
    "JSON web token": (
        ("eyJ",),
        r"eyJ[A-Za-z0-9_-]{8,4096}+\.eyJ[A-Za-z0-9_-]{8,4096}+\.[A-Za-z0-9_-]{8,1024}+",
    ),
}
_TOKENS = [
    (kind, hints, re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})")) for kind, (hints, pattern) in TOKENS.items()
]

WORDS = ("password", "passwd", "secret", "api_key", "apikey", "api-key", "access_key", "auth_token")
_ASSIGNED = re.compile(
    rf"(?:{'|'.join(WORDS)})[\w-]{{0,20}}+(?:\\?[\"'])?+[ \t]{{0,8}}+[:=][ \t]{{0,8}}+(?:\\?[\"'])?+"
    r"(?!\[redacted)((?:[^\s\"',;\\]|\\(?![\"'])){4,256}+)"  # in JSON within JSON quotes are escaped
)
_IN_URL = re.compile(r"(://[^\s:/@]{1,128}+:)([^\s/@]{1,256}+)(?=@)")

_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


def redact(text: str) -> str:
    """The text without its secrets; the very same string where there are none."""
    if "-----BEGIN " in text:
        text = _without_private_keys(text)
    for kind, hints, pattern in _TOKENS:
        if any(hint in text for hint in hints):
            text = pattern.sub(f"[redacted: {kind}]", text)
    if "://" in text:
        text = _IN_URL.sub(r"\1[redacted: password]", text)
    return _without_assigned(text)


def _without_assigned(text: str) -> str:
    """`password = "..."` and its like, whatever the case of the word, without the value."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that is two in lower case: places would not be the same
        lowered = "".join(letter if len(letter.lower()) > 1 else letter.lower() for letter in text)
    if not any(word in lowered for word in WORDS):
        return text
    kept: list[str] = []
    place = 0
    for found in _ASSIGNED.finditer(lowered):
        kept += (text[place : found.start(1)], "[redacted: secret]")
        place = found.end(1)
    return "".join((*kept, text[place:]))


def _without_private_keys(text: str) -> str:
    """Everything from a key's first line to its last, or to the end of a text that was cut off."""
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        if is_inside:
            end = _END.search(line)
            if end is None:
                continue
            is_inside, line = False, line[end.end() :]
        begin = _BEGIN.search(line)
        if begin is not None:
            end = _END.search(line, begin.end())
            is_inside = end is None
            rest = "" if end is None else line[end.end() :]
            line = f"{line[: begin.start()]}[redacted: private key]{rest}"
        kept.append(line)
    return "".join(kept)


@transform(timeout=5.0)
def redact_secrets(event: HandlerEvent, _ctx: Context) -> str | None:
    """Replace the output where there was something to take out; else leave the word to the next handler."""
    output: Any = event.payload["tool_output"]
    redacted = redact(output)
    return None if redacted == output else redacted
