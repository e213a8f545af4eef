"""Arrays of tables in a configuration file, such as ``[[transform]]``: each checked by itself.

A table with a fault is left out, the others hold. Decides how faults are worded and where they are said to
be. Refuses to know what a table is for: which fields it has is a model's, what must be unique its caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from ..dialects.nearest import nearest
from ..hooks.diagnostics import Diagnostic

M = TypeVar("M", bound=BaseModel)

TABLES: Final = 64
"""Tables of one kind in one file."""


class Kind(NamedTuple, Generic[M]):
    """A kind of table: its ``key``, the ``model`` of its fields, and how to speak of it.

    ``plural``: "transforms"; ``needs``: what a table without it lacks, "a transform needs a command", and
    ``example`` how to write that.
    """

    key: str
    model: type[M]
    plural: str
    needs: str
    example: str


class Tables(Generic[M]):
    """The tables of one kind in the parsed ``document`` of the file ``path``; ``faults`` is what is wrong."""

    def __init__(self, kind: Kind[M], document: Mapping[str, Any], path: str) -> None:
        self.faults: list[Diagnostic] = []
        self._kind = kind
        self._path = path
        self._written = document.get(kind.key, [])

    def read(self) -> Iterator[tuple[str, M]]:
        """Each table that holds, with its place, such as ``transform[0]``."""
        kind, written = self._kind, self._written
        if not isinstance(written, list) or not all(isinstance(table, Mapping) for table in written):
            self.fault(
                kind.key, "not_a_table", f"{kind.plural} are tables of their own", f"write [[{kind.key}]]"
            )
            return
        if len(written) > TABLES:
            self.fault(kind.key, "too_many", f"there are {len(written)} tables; {TABLES} are read")
        for index, table in enumerate(written[:TABLES]):
            place = f"{kind.key}[{index}]"
            try:
                checked = kind.model.model_validate(table)
            except ValidationError as error:
                for found in error.errors(include_url=False, include_input=False, include_context=False):
                    self._explain(place, found["type"], found["loc"], found["msg"])
            else:
                yield place, checked

    def fault(self, field: str, code: str, message: str, hint: str | None = None) -> None:
        """Say what is wrong at ``field``."""
        self.faults.append(Diagnostic("error", code, self._path, None, None, field, message, hint))

    def _explain(self, place: str, kind: str, where: tuple[int | str, ...], message: str) -> None:
        field = place + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
        if kind == "extra_forbidden":
            names = self._kind.model.model_fields
            near = nearest(str(where[-1]), names)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
            self.fault(field, "unknown_setting", "there is no such setting", hint)
        elif kind == "missing":
            self.fault(field, "missing", self._kind.needs, f"write {self._kind.example}")
        else:
            self.fault(field, "bad_value", f"it is refused: {message}", "correct or remove it")
