"""Which words of a hook's command are files, and what an import does about each.

A file in a hooks folder is copied; any other file that can be named is external and stays where it is; what
nobody can name without running something is refused, with the reason. Paths are reckoned as text alone: it
refuses to know which files exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, NamedTuple, TypeAlias

from .import_words import Part, Word

MAX_PARTS: Final = 8
"""Folders and name of a copied file, below its hooks folder."""

TOPLEVEL: Final = "git rev-parse --show-toplevel"
"""The command by which hooks of Codex name the root of the checkout."""

_INTERPRETERS: Final = re.compile(
    r"(?:sh|bash|zsh|dash|ksh|python|pypy|node|nodejs|deno|bun|ruby|perl|php|lua|source|\.)[0-9.]*"
)
_OPTION: Final = re.compile(r"[A-Za-z_-][\w-]*=")
_CODE_OPTIONS: Final = frozenset({"-c", "-e", "-m", "-p", "--eval", "--print"})
_MARKED: Final = re.compile(r"\.(?:claude|codex)/+hooks(?![\w-])")


@dataclass(frozen=True, slots=True)
class HooksFolder:
    """A folder whose files are copied: its absolute ``path``, and what it is called in a snapshot.

    ``root`` is the folder below which no link is followed on the way to a file; ``path`` lies in it.
    """

    path: str
    name: str
    root: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the paths of one source's commands are relative to. All paths are absolute.

    ``variables`` are those whose value is known where the agent runs a hook, ``home`` is what ``~`` means,
    ``toplevel`` the root of the checkout (None: not known). ``base`` is the folder that holds the ``.claude``
    or ``.codex`` that a relative path begins with, ``cwd`` where any other relative path begins (None: it
    differs from run to run). ``folders`` are those whose files are copied, the source's own first.
    """

    home: str
    base: str
    folders: tuple[HooksFolder, ...]
    variables: Mapping[str, str]
    toplevel: str | None = None
    cwd: str | None = None


class Copied(NamedTuple):
    """A file that is copied: ``path`` where it is, ``name`` in the snapshot. ``prefix`` stays before it."""

    path: str
    name: str
    prefix: str = ""
    is_loose: bool = False


class External(NamedTuple):
    """A file that stays where it is; ``path`` None: relative to wherever the hook runs.

    ``is_output``: a redirection names it, so what is in it is no part of the hook.
    """

    path: str | None
    shown: str
    is_output: bool = False


class Refused(NamedTuple):
    """A word for which the whole handler is left out."""

    code: str
    reason: str


Reference: TypeAlias = Copied | External | Refused | None

_ENTERED: Final = Refused(
    "dynamic_path", "it enters the hooks folder, so what runs there depends on the place"
)


@dataclass(slots=True)
class Context:
    """What the words before it make of a word: the program of its command, and whether a ``cd`` came.

    ``has_code``: an option of the program gave it what it runs.
    """

    program: str = ""
    has_code: bool = False
    has_operand: bool = False
    command: int = -1
    moved: bool = False
    expects_folder: bool = False


def refer(word: Word, around: Surroundings, context: Context) -> Reference:
    """What an import does about a word; ``context`` is brought up to date for the next one of the command."""
    is_operand = _follow(word, context)
    prefix, parts = _without_prefix(word.parts)
    path, unknown = _expanded(parts, around)
    raw = "".join(part.text for part in word.parts)
    is_marked = bool(_MARKED.search(raw)) or any(_within(path, folder.path) for folder in around.folders)
    if context.expects_folder and word.role == "argument" and not path.startswith("--"):
        context.expects_folder = False
        context.moved = context.moved or unknown is not None or path not in (around.base, around.toplevel)
        return _ENTERED if is_marked else None
    if unknown is not None:
        is_bracket = word.role == "program" and unknown.kind == "pattern"  # `[ -f x ]`, `{ a; }`
        return _unknown(unknown) if is_marked or (is_operand and not is_bracket) else None
    found = _file(path, prefix, is_marked, is_operand, around, context)
    return found._replace(is_output=True) if isinstance(found, External) and word.role == "target" else found


def refer_argument(text: str, around: Surroundings) -> Reference:
    """The same of an argument that no shell reads: only ``${NAME}`` at its beginning is a variable."""
    found = re.match(r"\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)", text)
    parts: tuple[Part, ...] = (Part("text", text),)
    if found is not None:
        parts = (Part("variable", found[1] or found[2]), Part("text", text[found.end() :]))
    elif text.startswith("~"):
        parts = (Part("expansion", "~"), Part("text", text[1:]))
    return refer(Word(0, len(text), parts, "argument", 0), around, Context(command=0))


def _follow(word: Word, context: Context) -> bool:
    """Note what a word does to those after it; whether it is a program, or a script that one is given."""
    if word.command != context.command:
        context.command, context.program = word.command, ""
        context.has_code, context.has_operand = False, False
        context.expects_folder = False
    said = "".join(part.text for part in word.parts)
    if word.role == "program":
        context.program = PurePosixPath(said).name or said
        context.expects_folder = False
        if said in ("cd", "pushd"):
            context.expects_folder = True
            context.program = said
            return False
        return True
    if word.role in ("input", "target") or context.has_operand:
        return False
    if said.startswith("-") and len(said) > 1:
        context.has_code = context.has_code or said in _CODE_OPTIONS
        return False
    context.has_operand = True
    is_script = _INTERPRETERS.fullmatch(context.program) is not None
    return is_script and not context.has_code


def _without_prefix(parts: tuple[Part, ...]) -> tuple[str, tuple[Part, ...]]:
    """``NAME=`` or ``--option=`` at the beginning, and the rest of the word."""
    first = parts[0] if parts else Part("text", "")
    found = _OPTION.match(first.text) if first.kind == "text" else None
    if found is None:
        return "", parts
    rest = first.text[found.end() :]
    tail = parts[1:]
    if rest.startswith("~/"):
        return found[0], (Part("tilde", "~"), Part("text", rest[1:]), *tail)
    return found[0], (Part("text", rest), *tail)


def _expanded(parts: tuple[Part, ...], around: Surroundings) -> tuple[str, Part | None]:
    """The text that parts come to, and the first of them that is not known."""
    text = ""
    unknown: Part | None = None
    for part in parts:
        value: str | None = None
        if part.kind == "text":
            value = part.text
        elif part.kind == "tilde":
            value = around.home
        elif part.kind == "variable":
            value = around.variables.get(part.text)
        elif part.kind == "substitution" and " ".join(_without_quiet(part.text).split()) == TOPLEVEL:
            value = around.toplevel
        if value is None:
            unknown = unknown or part
            value = part.text
        text += value
    return text, unknown


def _without_quiet(command: str) -> str:
    return command.replace("2>/dev/null", "")


def _unknown(part: Part) -> Refused:
    if part.kind == "pattern":
        return Refused("wildcard", f"{part.text!r} in a path is a pattern: which files it means is not fixed")
    shown = {"variable": f"${part.text}", "substitution": f"$({part.text})"}.get(part.kind, part.text)
    return Refused("dynamic_path", f"what {shown} means is only known when it runs")


def _file(
    path: str, prefix: str, is_marked: bool, is_operand: bool, around: Surroundings, context: Context
) -> Reference:
    """A word whose text is known."""
    if "\0" in path:
        return Refused("dynamic_path", "it holds a NUL")
    pure = PurePosixPath(path)
    is_relative = not path.startswith("/")
    place = path
    if is_relative and is_marked:
        if _MARKED.match("/".join(pure.parts)) is None:
            return _marked_elsewhere(path, around, context)
        if context.moved:
            return Refused("dynamic_path", "it is relative, and a cd comes before it")
        place = f"{around.base}/{path}"
    if is_marked and ".." in pure.parts:
        return Refused("escapes", "'..' in a path into the hooks folder leads out of it")
    for folder in around.folders:
        if _within(place, folder.path):
            return _copied(PurePosixPath(place), folder, prefix, is_relative)
    if is_relative:
        return _relative(path, is_operand, around, context)
    if path == "/" or path.startswith(("/dev/", "//")) or "\n" in path:
        return None
    return External(str(pure), path)


def _marked_elsewhere(path: str, around: Surroundings, context: Context) -> Reference:
    """A relative path through a hooks folder that is not the source's, or code that names one."""
    if re.fullmatch(r"[\w.@+/-]+", path) and around.cwd is not None and not context.moved:
        return External(str(PurePosixPath(around.cwd, path)), path)
    return Refused(
        "dynamic_path", "the hooks folder is named inside a longer text, which something else reads"
    )


def _copied(path: PurePosixPath, folder: HooksFolder, prefix: str, is_relative: bool) -> Reference:
    relative = path.relative_to(folder.path)
    if not relative.parts:
        return Refused("dynamic_path", "it names the hooks folder itself, not a file in it")
    if len(relative.parts) > MAX_PARTS:
        return Refused("too_deep", f"it lies more than {MAX_PARTS} levels deep")
    return Copied(str(path), f"{folder.name}/{relative}", prefix, is_relative)


def _relative(path: str, is_operand: bool, around: Surroundings, context: Context) -> Reference:
    """A relative path that does not lead into a hooks folder: a dependency only where something runs it."""
    if not is_operand or "/" not in path or "://" in path:
        return None
    if around.cwd is None or context.moved:
        return External(None, path)
    return External(str(PurePosixPath(around.cwd, path)), path)


def _within(path: str, folder: str) -> bool:
    return path == folder or (path.startswith("/") and PurePosixPath(path).is_relative_to(folder))
