"""What a source says, and what the files that its hooks name are like; read once, and nothing is changed.

Decides how a source becomes a plan: its text, what its agent was told not to run, the files that would be
copied with those that they name in turn, and what all this comes to. Nothing outside a hooks folder is ever
copied, and no link in one is followed.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from ..dialects.json_depth import is_too_deep
from ..dialects.json_text import JsonRefused, read_json
from ..dialects.toml_text import has_endless_key
from ..hooks.import_draft import Draft, draft
from ..hooks.import_paths import HooksFolder, Surroundings
from ..hooks.import_plan import (
    FILE_BYTES,
    HOOKS_NAME,
    MAX_FILES,
    TOTAL_BYTES,
    FileFact,
    FileFault,
    Found,
    Origin,
    Plan,
    Previous,
    plan,
    wanted,
)
from .discover import read
from .hook_source import Absent, Unreadable
from .import_files import Contents, NotRead, read_below
from .import_index import import_id
from .import_rules import rules_for, warnings_about
from .import_sources import Homes, Source, checkout_root

SOURCE_BYTES: Final = 1_048_576
"""Bytes of a source."""
MAX_LOOKS: Final = 1_024
"""Files that are read for one plan, and entries of a hooks folder that are looked at."""
_READ_BYTES: Final = 4 * TOTAL_BYTES

_WORD: Final = re.compile(r"[\w.-]+")
_MARKED: Final = re.compile(rb"\.(?:claude|codex)/+hooks\b")
_SCRIPTS: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
_RELATIVE: Final = re.compile(r"""["'`]\.{1,2}/([^"'`\n]+)["'`]""")
_IMPORT: Final = re.compile(r"^[ \t]*(?:from|import)[ \t]+([^\n#;]+)", re.MULTILINE)


class SourceUnavailable(Exception):
    """A source cannot be read, or is none: ``code`` is stable, the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Read:
    """A plan, and the bytes of every file of its snapshot."""

    plan: Plan
    contents: Mapping[str, Contents]


@dataclass(frozen=True, slots=True)
class Text:
    """A source: its bytes, and the document that they are."""

    content: bytes
    document: dict[str, Any]


def read_source(source: Source) -> Text:
    """What a source says. Raises :class:`SourceUnavailable`."""
    reading = read(source.path, SOURCE_BYTES)
    if isinstance(reading, Absent):
        raise SourceUnavailable("missing", f"there is no {source.path}")
    if isinstance(reading, Unreadable):
        raise SourceUnavailable(reading.code, f"{source.path}: {reading.message}")
    try:
        document = _toml(reading.text) if source.path.endswith(".toml") else read_json(reading.text)
    except (JsonRefused, ValueError, TypeError, RecursionError) as error:
        raise SourceUnavailable("not_readable", f"{source.path}: {_why(error)}") from None
    if not isinstance(document, dict) or is_too_deep(document):
        raise SourceUnavailable("not_readable", f"{source.path}: it is no object, or nested too deeply")
    return Text(reading.text, document)


def plan_source(source: Source, homes: Homes, root: str, previous: Previous | None) -> Read:
    """The plan for importing a source; ``root``: where snapshots of it lie.

    Raises :class:`SourceUnavailable`.
    """
    text = read_source(source)
    around = surroundings(source, homes)
    rules = rules_for(source, text.document, outer_settings(source))
    drafted = draft(text.document.get("hooks"), rules, around)
    found, names, contents = _look_at(drafted, around)
    origin = Origin(
        source.key,
        source.agent,
        source.scope,
        source.path,
        source.profile,
        warnings_about(source, text.content),
    )
    made = plan(drafted, found, names, origin, import_id(source.key, source.path), root, previous)
    kept = {file.name: contents[file.path] for file in made.files}
    return Read(made, {HOOKS_NAME: Contents(made.hooks, False), **kept})


def surroundings(source: Source, homes: Homes) -> Surroundings:
    """What the paths in a source's commands are relative to."""
    is_claude = source.agent == "claude-code"
    # People link their own folder from elsewhere; a repository has no business to lead out of itself.
    root = source.base if source.scope == "project" else source.config
    own = HooksFolder(os.path.join(source.config, "hooks"), "files", root)
    home = homes.claude if is_claude else homes.codex
    users = HooksFolder(os.path.join(home, "hooks"), "user", home)
    folders = (own,) if users.path == own.path else (own, users)
    variables = {"HOME": homes.home}
    variables |= {"CLAUDE_CONFIG_DIR": homes.claude} if is_claude else {"CODEX_HOME": homes.codex}
    is_project = source.scope == "project"
    if is_project and is_claude:
        variables["CLAUDE_PROJECT_DIR"] = source.base
    return Surroundings(
        home=homes.home,
        base=source.base,
        folders=folders,
        variables=variables,
        toplevel=checkout_root(source.base) if is_project else None,
        cwd=source.base if is_project else None,
    )


def outer_settings(source: Source) -> list[Mapping[str, Any]]:
    """The settings around a source that can be read, the widest first."""
    found: list[Mapping[str, Any]] = []
    for path in source.outer:
        if path == source.path:
            continue
        try:
            other = Source(source.key, source.agent, source.scope, path, source.config, source.base)
            found.append(read_source(other).document)
        except SourceUnavailable:
            continue
    return found


def _toml(text: bytes) -> Any:
    if has_endless_key(text):
        raise ValueError("a key in it has too many parts")
    # Dates become texts and infinities null: hooks have neither.
    return orjson.loads(orjson.dumps(tomllib.loads(text.decode())))


def _why(error: BaseException) -> str:
    if isinstance(error, JsonRefused):
        return f"{error.message} (line {error.line}, column {error.column})"
    return str(error) or "it is nested too deeply"


def _look_at(
    drafted: Draft, around: Surroundings
) -> tuple[dict[str, Found], dict[str, str], dict[str, Contents]]:
    """What every file is like that a draft names, or one of those; what they are called, and their bytes."""
    copied, external = wanted(drafted)
    found: dict[str, Found] = {}
    names = {each.path: each.name for handler in drafted.handlers for each in handler.copied}
    contents: dict[str, Contents] = {}
    budget = _READ_BYTES
    queue = list(copied)
    listings: dict[str, tuple[str, ...]] = {}
    for path in queue:  # grows meanwhile
        if path in found:
            continue
        folder = next(each for each in around.folders if _is_in(path, each.path))
        relative = os.path.relpath(path, folder.root)
        if len(contents) >= MAX_LOOKS or budget <= 0:
            found[path] = FileFault("too_many_files", f"more than {MAX_FILES} files, or too much in them")
            continue
        try:
            content = read_below(folder.root, relative, FILE_BYTES)
        except NotRead as error:
            found[path] = FileFault(error.code, str(error))
            continue
        budget -= len(content.content)
        if folder.path not in listings:
            listings[folder.path] = _listing(folder.path)
        mentions = _mentions(path, content.content, folder.path, listings[folder.path])
        for each in mentions:
            names.setdefault(each, f"{folder.name}/{os.path.relpath(each, folder.path)}")
        queue += mentions
        contents[path] = content
        back = _MARKED.search(content.content) is not None
        found[path] = FileFact(len(content.content), content.sha256, content.executable, mentions, back)
    for path in external:
        is_one_of_few = len(found) < 2 * MAX_LOOKS
        found[path] = _external(path) if is_one_of_few else FileFault("unread", "there are too many")
    return found, names, contents


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _external(path: str) -> Found:
    """A file that stays where it is; links are followed, as they will be when it runs."""
    reading = read(path, FILE_BYTES)
    if isinstance(reading, Absent):
        return FileFault("missing", "there is no such file")
    if isinstance(reading, Unreadable):
        return FileFault(reading.code, reading.message)
    return FileFact(len(reading.text), reading.digest, os.access(path, os.X_OK))


def _listing(folder: str) -> tuple[str, ...]:
    """The files of a hooks folder, relative to it; what is hidden, compiled or no UTF-8 does not count."""
    found: list[str] = []
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if _counts(name))
        below = os.path.relpath(where, folder)
        found += [os.path.normpath(os.path.join(below, name)) for name in sorted(files) if _counts(name)]
        if len(found) > MAX_LOOKS:
            break
    return tuple(found[:MAX_LOOKS])


def _counts(name: str) -> bool:
    return not name.startswith(".") and name not in ("__pycache__", "node_modules") and is_text(name)


def is_text(path: str) -> bool:
    """Whether a path is UTF-8, so that it can stand in a plan and an index."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mentions(path: str, content: bytes, folder: str, listing: Iterable[str]) -> tuple[str, ...]:
    """The other files of its hooks folder that a script names: as a word, or as a module that it imports."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return ()
    words = {word.rstrip(".-") for word in set(_WORD.findall(text))}
    modules: set[str] = set()
    if path.endswith(".py") or (text.startswith("#!") and "python" in text.partition("\n")[0]):
        modules = {word for line in _IMPORT.findall(text) for word in re.findall(r"\w+", line)}
    required = (
        {os.path.basename(each) for each in _RELATIVE.findall(text)} if path.endswith(_SCRIPTS) else set()
    )
    named = []
    for relative in listing:
        top, _, below = relative.partition("/")
        name = os.path.basename(relative)
        is_module = relative.endswith(".py") and (top if below else top.removesuffix(".py")) in modules
        is_required = name.endswith(_SCRIPTS) and os.path.splitext(name)[0] in required
        if name in words or is_module or is_required:
            named.append(os.path.join(folder, relative))
    return tuple(each for each in named if each != path)
