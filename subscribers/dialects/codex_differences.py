"""Where prxbus is not the agent of a profile, as tables for the documents: reading, patterns, BitFun's page.

What the profiles themselves differ in is in :mod:`.codex_profiles`. Each row is shown by a test. It decides
nothing.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from .codex_profiles import BITFUN, OWN_FILE_BYTES, OWN_HANDLERS
from .codex_trust import DEFAULT_CONTEXT_LIMIT


class Leniency(NamedTuple):
    """A fault for which an agent refuses the whole file, and what is left out here unless reading is strict.

    ``example`` is a value of ``hooks``, or of the root where it begins with another key, as JSON.
    """

    number: str
    fault: str
    example: str
    here: str


_GOOD: Final = '{"type":"command","command":"ok"}'

LENIENCIES: Final = (
    Leniency(
        "S1",
        "a field of a handler has another type, or a needed one is missing",
        f'{{"Stop":[{{"hooks":[{_GOOD},{{"type":"command","command":"x","timeout":"1"}}]}}]}}',
        "that handler",
    ),
    Leniency(
        "S2",
        "a handler is of a type that the agent does not have",
        f'{{"Stop":[{{"hooks":[{_GOOD},{{"type":"webhook"}}]}}]}}',
        "that handler",
    ),
    Leniency(
        "S3",
        "a group is no object, or its `matcher` or `hooks` have another type",
        f'{{"Stop":[{{"hooks":[{_GOOD}]}},{{"matcher":7,"hooks":[{_GOOD}]}}]}}',
        "that group",
    ),
    Leniency(
        "S4",
        "an event is no array of groups",
        f'{{"Stop":[{{"hooks":[{_GOOD}]}}],"SubagentStop":{{"hooks":[{_GOOD}]}}}}',
        "that event",
    ),
    Leniency(
        "S5",
        "a field stands twice in one object",
        f'{{"Stop":[],"Stop":[{{"hooks":[{_GOOD}]}}]}}',
        "the earlier one",
    ),
    Leniency(
        "S6",
        "`description` is no string",
        f'{{"description":7,"hooks":{{"Stop":[{{"hooks":[{_GOOD}]}}]}}}}',
        "the description",
    ),
    Leniency("S7", "`hooks` is null", '{"hooks":null}', "nothing: the file has no hooks"),
)
"""What Codex and Claude Code refuse a whole file for. With ``--strict`` it is refused here too."""


Engine: TypeAlias = Literal["Rust", "JavaScript"]
Effect: TypeAlias = Literal["matches", "does not match", "is no pattern", "its handlers never run"]


class PatternDifference(NamedTuple):
    """A pattern that does not do with a value what it does in the agent. ``value`` is what is compared."""

    number: str
    engine: Engine
    about: str
    pattern: str
    value: str
    upstream: Effect
    here: Effect


_DEAD: Final = "its handlers never run"

PATTERN_DIFFERENCES: Final = (
    PatternDifference("R1", "Rust", "digits", r"\d", "٣", "matches", "does not match"),
    PatternDifference("R2", "Rust", "letters of words", r"^\w$", "é", "matches", "does not match"),
    PatternDifference("R3", "Rust", "ends of words", r"\bé", "é", "matches", "does not match"),
    PatternDifference("R4", "Rust", "flags x, u and R", "(?x) a b", "ab", "matches", _DEAD),
    PatternDifference("R5", "Rust", "code points", r"\u{41}", "A", "matches", _DEAD),
    PatternDifference("R6", "Rust", "sets of classes", "[a-z&&[^b]]", "a", "matches", _DEAD),
    PatternDifference("R7", "Rust", "begin of a word", r"\<a", "a", "matches", _DEAD),
    PatternDifference("R8", "Rust", "more than 1,000 times", "a{1001}", "a" * 1_001, "matches", _DEAD),
    PatternDifference("R9", "Rust", "a repetition repeated", "a++", "a", "matches", _DEAD),
    PatternDifference("R10", "Rust", "properties", r"\p{Script=Greek}", "Ω", "matches", _DEAD),
    PatternDifference("R11", "Rust", "properties", r"\p{Alphabetic}", "a", "matches", "is no pattern"),
    PatternDifference("R12", "Rust", "a class in a range", r"[\d-z]", "5", "is no pattern", "matches"),
    PatternDifference("R13", "Rust", "names of groups", "(?P<1>a)", "a", "is no pattern", "matches"),
    PatternDifference("J1", "JavaScript", "look-ahead", "^(?!Bash)", "Edit", "matches", _DEAD),
    PatternDifference("J2", "JavaScript", "look-behind", "(?<!x)a", "a", "matches", _DEAD),
    PatternDifference("J3", "JavaScript", "back-references", r"(a)\1", "aa", "matches", _DEAD),
    PatternDifference("J4", "JavaScript", "code points", r"\u0041", "A", "matches", _DEAD),
    PatternDifference("J5", "JavaScript", "letters escaped", r"\p{L}", "p{L}", "matches", _DEAD),
    PatternDifference("J6", "JavaScript", "empty classes", "a[^]b", "a\nb", "matches", _DEAD),
    PatternDifference(
        "J7", "JavaScript", "blanks beyond ASCII", r"\s", "\u00a0", "matches", "does not match"
    ),
    PatternDifference("J8", "JavaScript", "ends of lines", "^.$", "\u2028", "does not match", "matches"),
    PatternDifference("J9", "JavaScript", "beyond U+FFFF", "^.$", "\U0001f600", "does not match", "matches"),
    PatternDifference("J10", "JavaScript", "a repeated end", "^*", "a", "is no pattern", "matches"),
)
"""How RE2, which compares here, differs from the engines of the agents."""


class PageDifference(NamedTuple):
    """What BitFun's page says where Codex, whose contract it claims, or BitFun's program does otherwise."""

    number: str
    about: str
    page: str
    codex: str
    program: str
    here: str


_AS_PAGE: Final = "as the page"
_AS_CODEX: Final = "as Codex"
_SAME: Final = "the same contract"

PAGE_DIFFERENCES: Final = (
    PageDifference(
        "B1",
        "a matcher",
        "a pattern for the whole value",
        "letters, digits, `_` and `|` are exact names; any other is searched for",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference(
        "B2",
        "`continue: false`",
        "works on `PreToolUse` and `UserPromptSubmit`",
        "an error on `PreToolUse` and `PermissionRequest`; stops the other events",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference(
        "B3",
        "`permissionDecision: allow` alone",
        "spares the question",
        "an error",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference(
        "B4",
        "`suppressOutput`",
        "read and ignored",
        "an error on `PreToolUse`, `PermissionRequest` and `PostToolUse`",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference(
        "B5",
        "`PostToolUse`",
        "after error results too",
        "only after calls that succeeded",
        "after results that say so, not after calls that failed",
        "after every `tool_call`",
    ),
    PageDifference(
        "B6",
        "text for the model",
        f"{BITFUN.text.limit:,} bytes of one hook, cut",
        f"about {DEFAULT_CONTEXT_LIMIT:,} tokens; the rest is in a file",
        f"{BITFUN.text.limit:,} bytes of each text of a hook, cut",
        "as its program: each text by itself",
    ),
    PageDifference(
        "B7",
        "limits",
        f"{BITFUN.max_file_bytes:,} bytes a file, {BITFUN.max_handlers:,} handlers over all",
        f"none; prxbus reads {OWN_FILE_BYTES:,} bytes and {OWN_HANDLERS:,} handlers",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference(
        "B8",
        "a handler that is wrong",
        "counts and does not run",
        "refuses the whole file",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference("B9", "handlers of one event", _SAME, "start together", "one after the other", _AS_CODEX),
    PageDifference("B10", "`async`", _SAME, "nobody waits", "ignored", _AS_CODEX),
    PageDifference("B11", "`timeout: 0`", _SAME, "is 1", "drops the handler", _AS_CODEX),
    PageDifference("B12", "`command_windows`", _SAME, "another spelling", "ignored", _AS_CODEX),
    PageDifference("B13", "`mcp_tool`", "does not run: only `command` does", "runs", _AS_PAGE, _AS_PAGE),
    PageDifference(
        "B14",
        "`updatedInput` without `allow`",
        _SAME,
        "an error",
        "counts",
        _AS_CODEX,
    ),
    PageDifference(
        "B15",
        "stdout that is no answer",
        _SAME,
        "begins it with `{` or `[`, an error",
        "plain text",
        _AS_CODEX,
    ),
    PageDifference(
        "B16",
        "a program left running",
        _SAME,
        "holds the run until its time is over",
        _AS_CODEX,
        "the run is over when its program ends",
    ),
    PageDifference(
        "B17",
        "`transcript_path`, `agent_transcript_path`",
        "null",
        "the file, where there is one",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference(
        "B18",
        "`source` of `SessionStart`, `reason` of `SessionEnd`, `stop_hook_active` of `SubagentStop`",
        "startup, other, false",
        "what it is",
        _AS_PAGE,
        _AS_PAGE,
    ),
    PageDifference("B19", "`config.toml`", "not read", "read", _AS_PAGE, _AS_PAGE),
    PageDifference(
        "B20",
        "a remote workspace",
        "no hook runs, and that is said",
        "has remote executors",
        "no hook runs",
        _AS_PAGE,
    ),
)
"""The page of BitFun, beside Codex's program and its own."""
