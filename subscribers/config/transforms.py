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

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from ..dialects.nearest import nearest
from ..hooks.diagnostics import Diagnostic

KEY: Final = "transform"

TABLES: Final = 64
"""Tables in one file."""

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
    written = document.get(KEY, [])
    if not isinstance(written, list) or not all(isinstance(table, Mapping) for table in written):
        fault = _fault(path, KEY, "not_a_table", "transforms are tables of their own", "write [[transform]]")
        return (), [fault]
    found: list[Transform] = []
    faults: list[Diagnostic] = []
    if len(written) > TABLES:
        faults.append(_fault(path, KEY, "too_many", f"there are {len(written)} tables; {TABLES} are read"))
    for index, table in enumerate(written[:TABLES]):
        place = f"{KEY}[{index}]"
        checked = _check(table, path, place)
        if not isinstance(checked, Table):
            faults.extend(checked)
        elif (name := checked.name or f"{os.path.basename(path)}:{place}") in (t.name for t in found):
            faults.append(
                _fault(path, f"{place}.name", "duplicate_name", f"{name!r} is another table's", "rename one")
            )
        else:
            found.append(Transform(name, path, folder, checked))
    return tuple(found), faults


def _check(table: Mapping[str, Any], path: str, place: str) -> Table | list[Diagnostic]:
    try:
        return Table.model_validate(table)
    except ValidationError as error:
        return [
            _explain(path, place, fault["type"], fault["loc"], fault["msg"])
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        ]


def _explain(path: str, place: str, kind: str, where: tuple[int | str, ...], message: str) -> Diagnostic:
    field = place + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    if kind == "extra_forbidden":
        near = nearest(str(where[-1]), Table.model_fields)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(Table.model_fields)}"
        return _fault(path, field, "unknown_setting", "there is no such setting", hint)
    if kind == "missing":
        return _fault(
            path, field, "missing", "a transform needs a command", 'write command = ["./program", "argument"]'
        )
    return _fault(path, field, "bad_value", f"it is refused: {message}", "correct or remove it")


def _fault(path: str, field: str, code: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic("error", code, path, None, None, field, message, hint)
