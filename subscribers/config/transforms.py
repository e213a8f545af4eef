"""The ``[[transform]]`` tables of a configuration file: commands that may replace a tool's result.

Each table is one handler of the chain, in file order. Those of the user's file stand before those of a
workspace's, so that no workspace can put a handler in front of a redaction that the user relies on; a
workspace can add to the chain and take nothing away. It refuses to know whether a program exists.

    [[transform]]
    command = ["python3", "redact.py"]   # or "python3 redact.py": words as a shell reads them, but no shell
    tools = ["Bash", "mcp__*"]           # names, * stands for any characters; left out: all
    agents = []
    timeout = 5.0                        # seconds
    name = "redact"                      # in records; left out: the file and the place of the table
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from ..hooks.diagnostics import Diagnostic
from .tables import Kind, Tables

KEY: Final = "transform"

TIMEOUT_S: Final = 5.0
"""Seconds of a table that does not say: what the LibreFang page gives a hook."""

MAX_TIMEOUT_S: Final = 300.0

Word = Annotated[str, StringConstraints(min_length=1, max_length=4_096, pattern=r"^[^\x00]*$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class Table(BaseModel):
    """What one table may say; the README's list comes from here."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    command: Annotated[list[Word], Field(min_length=1, max_length=128)] = Field(
        description="the program and its arguments; a string is split into words, and read by no shell",
        json_schema_extra={"shown": "array of strings, or a string"},
    )
    tools: Annotated[list[Name], Field(max_length=256)] = Field(
        [],
        description="tools that it is for, `*` standing for any characters; none: all",
        json_schema_extra={"shown": "array of strings"},
    )
    agents: Annotated[list[Name], Field(max_length=256)] = Field(
        [],
        description="agents that it is for, by id or name; none: all",
        json_schema_extra={"shown": "array of strings"},
    )
    timeout: float = Field(
        TIMEOUT_S,
        gt=0,
        le=MAX_TIMEOUT_S,
        description=f"seconds that it may take, at most {MAX_TIMEOUT_S:g}",
        json_schema_extra={"shown": "number"},
    )
    name: Annotated[str, StringConstraints(pattern=r"^[\w.:/#\[\] -]{1,100}$")] | None = Field(
        None,
        description="what it is called in answers and records; else its file and place",
        json_schema_extra={"shown": "string"},
    )

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return shlex.split(value)
        except ValueError as error:
            raise ValueError(f"its words cannot be told apart: {error}") from None


KIND: Final = Kind(
    KEY, Table, "transforms", "a transform needs a command", 'command = ["./program", "argument"]'
)


class Transform(NamedTuple):
    """One table that holds. ``path`` is its file, ``folder`` (absolute) where its command starts and
    where a relative one is looked for: the workspace, or the folder of the user's file.
    """

    name: str
    path: str
    folder: str
    table: Table


def read(
    document: Mapping[str, Any], path: str, folder: str
) -> tuple[tuple[Transform, ...], list[Diagnostic]]:
    """The tables of a parsed file in their order, and one diagnostic for everything that is wrong.

    A table with a fault is left out; the others hold.
    """
    tables = Tables(KIND, document, path)
    found: list[Transform] = []
    for place, table in tables.read():
        name = table.name or f"{os.path.basename(path)}:{place}"
        if any(name == other.name for other in found):
            tables.fault(f"{place}.name", "duplicate_name", f"{name!r} is another table's", "rename one")
        else:
            found.append(Transform(name, path, folder, table))
    return tuple(found), tables.faults
