"""The documents of the API, as its OpenAPI description tells them.

What an action may say is taken from the dialect's own rules; the dialect stays the judge, and these schemas
are its rules as far as JSON Schema can say them. Nothing here is stricter.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from broker.protocol.catalogue import EVENTS
from broker.protocol.limits import CAUSE_BYTES, SESSION_ID_BYTES, TOPIC_BYTES

from ..dialects import prx_rules as rules

EVENT_NAMES: Final = (*rules.PAGE_EVENTS, *(name for name in EVENTS if name not in rules.PAGE_EVENTS))

_REFUSED: Final = re.escape("".join(c for c in rules.METACHARACTERS if c >= " "))
_NO_NUL: Final = {"type": "string", "pattern": r"^[^\u0000]*$"}

ACTION_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "What runs. Fields and limits are those of an action in hooks.json.",
    "required": ["command"],
    "additionalProperties": False,
    "properties": {
        "command": {
            "type": "string",
            "pattern": rf"^[^\u0000-\u001f\u007f{_REFUSED}]+$",
            "description": "Absolute path, path relative to the workspace, or a name on the PATH.",
        },
        "args": {"type": ["array", "null"], "items": _NO_NUL, "maxItems": rules.MAX_ARGS},
        "env": {
            "type": ["object", "null"],
            "additionalProperties": _NO_NUL,
            "maxProperties": rules.MAX_ENV,
        },
        "cwd": {"type": ["string", "null"], "pattern": r"^[^\u0000]*$"},
        "timeout_ms": {
            "type": ["integer", "null"],
            "minimum": rules.MIN_TIMEOUT_MS,
            "maximum": rules.MAX_TIMEOUT_MS,
        },
        "stdin_json": {"type": ["boolean", "null"]},
    },
}

STORED_ACTION_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "The documented fields as they stand in hooks.json, also those that keep it from running.",
}

Event = Annotated[str, WithJsonSchema({"type": "string", "enum": list(EVENT_NAMES)})]
Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Action = Annotated[dict[str, Any], WithJsonSchema(ACTION_SCHEMA)]
StoredAction = Annotated[dict[str, Any], WithJsonSchema(STORED_ACTION_SCHEMA)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class HookBody(_Document):
    """A hook to create, or what one becomes."""

    event: Event
    action: Action
    enabled: bool = True
    id: str | None = Field(default=None, json_schema_extra={"readOnly": True})
    created_at: str | None = Field(default=None, json_schema_extra={"readOnly": True})
    updated_at: str | None = Field(default=None, json_schema_extra={"readOnly": True})


class HookDocument(_Document):
    """A hook."""

    id: str
    event: str
    action: StoredAction
    enabled: bool
    created_at: Moment
    updated_at: Moment


class HookList(_Document):
    """All hooks, in file order."""

    hooks: list[HookDocument]


class ReplacedFile(_Document):
    """All hooks of the new file; ``broken_copy`` is where the broken file was put that it replaced."""

    hooks: list[HookDocument]
    broken_copy: str | None


class ToggledHook(_Document):
    """A hook after it was enabled or disabled."""

    id: str
    enabled: bool


class TestBody(_Document):
    """The event that a test gives the hook; without a payload, a sample of the hook's event."""

    __test__ = False  # it is no test case

    payload: dict[str, Any] | None = None
    session_id: str | None = Field(default=None, max_length=SESSION_ID_BYTES)


class TestOutcome(_Document):
    """How a test run ended. stdout and stderr are cut in the middle beyond 64 KiB."""

    __test__ = False

    id: str
    event: str
    status: Literal["ok", "failed", "signalled", "timeout", "not_started"]
    exit_code: int | None
    signal: int | None
    duration_ms: float
    stdout: str
    stderr: str
    reason: str | None
    envelope: dict[str, Any]


class EventBody(_Document):
    """An event to publish. Who publishes while handling an event gives that one's id and depth plus one."""

    topic: str = Field(max_length=TOPIC_BYTES, examples=["prx.lifecycle.tool_call"])
    payload: dict[str, Any] = Field(examples=[{"tool": "Bash", "success": True, "output": "ok"}])
    session_id: str | None = Field(default=None, max_length=SESSION_ID_BYTES)
    retain: bool = False
    depth: int = Field(default=0, ge=0, le=255)
    caused_by: str | None = Field(default=None, max_length=CAUSE_BYTES, pattern=r"^[!-~]+$")


class PublishedEvent(_Document):
    """What came of it: its id (null when it was too deep to be sent), and how many subscribers match."""

    id: str | None
    published: int
    over_depth: int
    matching: int


class Health(_Document):
    """The API is there, and so is the bus."""

    status: Literal["ok"]


class StatusDocument(BaseModel):
    """The bus as its broker knows it, and this process. ``problem`` says why ``broker`` is null."""

    model_config = ConfigDict(extra="forbid")

    version: str
    runtime_dir: str
    workspace: str | None
    hooks: int | None
    hooks_problem: str | None
    http: dict[str, Any]
    broker: dict[str, Any] | None
    problem: str | None


class FieldError(BaseModel):
    """One reason: where, what, and what to do."""

    field: str
    code: str
    message: str
    hint: str | None = None
    line: int | None = None
    column: int | None = None


class ProblemDocument(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    hint: str | None = None
    errors: list[FieldError] | None = None
    error_count: int | None = None
