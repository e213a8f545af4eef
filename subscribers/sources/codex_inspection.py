"""A hook file of the Codex family on this machine explained: what it means, and whether it is in force.

It decides which profile a file is read in, which files of a folder belong to the family, and why a file does
not run although nothing is wrong in it: it is switched off, nobody reads it where it lies, or it is the file
of an agent. It refuses to start anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ..config.hook_files import owner
from ..dialects.codex_explanation import explain
from ..dialects.codex_place import is_of_family, placed
from ..dialects.codex_profiles import BITFUN, CLAUDE, CODEX, PROFILES, Profile
from ..dialects.codex_rules import CLAUDE_SETTINGS
from ..hooks.diagnostics import Diagnostic, Severity
from ..hooks.explanation import Explained, Handler, faulted
from . import discover
from .codex_documents import circle, denied
from .codex_guards import stand_ins
from .codex_layers import OWN_FILE, WARNING, Layer, Switches, config_folder, layers, run_once
from .codex_records import records
from .codex_switches import BitFunSwitches, app_file, bitfun_folder, read_switches
from .hook_source import Content, Reading
from .import_places import ImportPlaces, import_root
from .import_rules import is_own
from .import_store import enabled_imports
from .inspect_world import World

IN_FOLDER: Final[Mapping[str, tuple[str, ...]]] = {
    CODEX.name: (".prxbus/hooks.json", ".codex/hooks.json", ".codex/config.toml"),
    BITFUN.name: (".bitfun/config/hooks.json",),
    CLAUDE.name: (".claude/settings.json", ".claude/settings.local.json"),
}
"""Where the files of each profile lie in a workspace or home directory."""

_FOLDERS: Final[Mapping[str, Callable[[Mapping[str, str]], str]]] = {
    "prxbus": config_folder,
    "bitfun": bitfun_folder,
}
"""Where the folders of configuration really are."""

_WORD: Final = b"hooks"
_LOOKED_AT: Final = 1_048_576


def own_file(environ: Mapping[str, str] = os.environ) -> str:
    """The user's own hook file for every agent, whether it exists or not."""
    return os.path.join(config_folder(environ), OWN_FILE)


def is_named(profile: str, path: str) -> bool:
    """Whether a path is that of a hook file of this profile."""
    found = placed(path)
    if found is not None:
        return found.profile.name == profile
    return profile == CODEX.name and path == own_file()


def because(path: str) -> str:
    """Why a path is that of a hook file."""
    found = placed(path)
    return "it is your own hook file" if found is None else found.because


def is_like(profile: str, ending: str, document: Mapping[str, Any]) -> str | None:
    """Why a decoded document is a hook file of this profile; None where it is not."""
    if ending != ".json" or not is_of_family(document):
        return None
    is_settings = bool(CLAUDE_SETTINGS & document.keys())
    if profile != (CLAUDE.name if is_settings else CODEX.name):
        return None
    return "it is JSON with hooks and settings" if is_settings else "it is JSON with groups of handlers"


def foreign(path: str, document: Mapping[str, Any]) -> Explained | None:
    """What is said of a hook file of the family that lies where PRX's is read; None where it is none."""
    if not is_of_family(document):
        return None
    message = "this is a hook file of the Codex family: its events have groups of handlers, not actions"
    places = (
        f"no hook of this file runs from where it lies: hook files are read at {', '.join(_places(CODEX))}"
    )
    hint = f"{places}; move it there, or name its kind with --dialect"
    return Explained((), (_said("error", "not_in_place", path, message, hint),), refused=True)


def files_in(profile: str, folder: str) -> Iterator[str]:
    """The hook files of a profile in a folder. A file that is more than that counts where it has hooks."""
    names = list(IN_FOLDER[profile])
    if profile == CODEX.name and os.path.join(folder, OWN_FILE) == own_file():
        names.insert(0, OWN_FILE)
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.lexists(path):
            continue
        reading = discover.read(path, _LOOKED_AT)
        is_pure = name.endswith(OWN_FILE)
        if is_pure or not isinstance(reading, Content) or _WORD in reading.text:
            yield path


def workspace_of(path: str) -> str:
    """The workspace or home directory that a hook file lies in; of one elsewhere, its folder."""
    for names in IN_FOLDER.values():
        for name in names:
            if path.endswith(f"/{name}"):
                return path[: -len(name) - 1] or "/"
    return os.path.dirname(path)


def read(profile: str, path: str) -> Reading:
    """A hook file, read as the runner reads it."""
    return discover.read(path, PROFILES[profile].max_file_bytes)


def explain_file(profile: str, text: bytes, path: str, workspace: str, world: World) -> Explained:
    """A hook file of the family, with what there is to say about its place and the switches."""
    known = all_layers(world.environ, workspace, world)
    named = sorted((each for each in known if each.path == path), key=lambda each: each.off is not None)
    layer = named[0] if named else None
    hooks = world.configured(workspace).settings.hooks
    kind = PROFILES[profile if layer is None else layer.profile]
    states = records(world.environ) if kind.reviews else None
    explained = explain(text, path, kind, strict=hooks.strict, states=states)
    if layer is not None:  # Codex does not read it
        in_layer = (_in_layer(handler, layer) for handler in explained.handlers)
        explained = replace(explained, handlers=tuple(in_layer))
        if explained.refused and layer.off is None:
            said = tuple(denied(layer, found) for found in (stand_ins(layer, "", {}, 0),) if found)
            explained = replace(explained, diagnostics=(*said, *explained.diagnostics))
    if world.is_trial:
        return explained
    said = _app_faults(path, world) if layer is not None and layer.profile == BITFUN.name else ()
    said += tuple(_again(path, each) for each in named[1:] if layer is not None and layer.off is None)
    remark, keeps = _about_place(path, layer, PROFILES[profile])
    if remark is None or keeps or not any(handler.status == "ok" for handler in explained.handlers):
        remarks = () if remark is None else (remark,)
        return replace(explained, diagnostics=(*remarks, *said, *explained.diagnostics))
    handlers = tuple(_skipped(handler, remark) for handler in explained.handlers)
    return replace(explained, handlers=handlers, diagnostics=(*said, *explained.diagnostics))


def _skipped(handler: Handler, remark: Diagnostic) -> Handler:
    """A handler that would run, and does not because of where its file lies."""
    if handler.status != "ok":
        return handler
    return replace(handler, status="skipped", diagnostics=(remark, *handler.diagnostics))


def _in_layer(handler: Handler, layer: Layer) -> Handler:
    """A handler of a file that we read: Codex's record does not count, and what asks us is not run by us."""
    said = tuple(each for each in handler.diagnostics if not each.code.startswith("review_"))
    handler = replace(handler, diagnostics=said)
    written: dict[str, object] = {"command": handler.command}
    if handler.runtime == "http":
        written = {"url": handler.command}
    elif handler.args:
        written["args"] = list(handler.args)
    return faulted(handler, "refused", circle(layer)) if is_own(written) else handler


def all_layers(environ: Mapping[str, str], workspace: str | None, world: World) -> tuple[Layer, ...]:
    """Every layer for a workspace, BitFun's places among them, as the configuration there says.

    A place of BitFun's where ``hooks.bitfun`` is false is switched off by that.
    """
    configured = world.configured(workspace or "/")
    hooks = configured.settings.hooks
    switches = Switches(hooks.enabled, hooks.project_hooks_enabled, True, hooks.strict)
    app = read_switches(app_file(environ))
    places = ImportPlaces(import_root(None, environ), workspace)
    found = layers(
        config_folder(environ),
        workspace,
        switches,
        app,
        configured.hook_files,
        lambda scope: enabled_imports(scope, places).imports,
        environ,
    )
    return run_once(found if hooks.bitfun else tuple(map(_asked_for, found)))


def users_own(environ: Mapping[str, str], world: World) -> list[tuple[str, str | None]]:
    """The user's hook files that are there, in the order in which they run.

    Each with its profile, where that is not what its name says.
    """
    found = [layer for layer in all_layers(environ, None, world) if os.path.lexists(layer.path)]
    named = [is_named(layer.profile, layer.path) for layer in found]
    return [
        (layer.path, None if is_its_name else layer.profile)
        for layer, is_its_name in zip(found, named, strict=True)
    ]


def _asked_for(layer: Layer) -> Layer:
    if layer.profile != BITFUN.name or "BitFun" not in layer.name:
        return layer
    return layer._replace(
        off=layer.off or "BitFun's places are read only with --bitfun, or hooks.bitfun = true"
    )


def _about_place(path: str, layer: Layer | None, profile: Profile) -> tuple[Diagnostic | None, bool]:
    """What is said of where a file lies, and whether its handlers keep their status nevertheless."""
    if layer is not None and layer.off is None:
        return None, True
    if layer is not None:
        hint = WARNING if layer.scope == "project" else None
        return _said("info", "switched_off", path, f"its hooks do not run: {layer.off}", hint), False
    agent = owner(path)
    if agent is not None:
        message = f"{agent} runs these hooks itself; prxbus does not run them behind its back"
        hint = "copy them with `prxbus hooks import`, or have the agent ask here with `prxbus attach`"
        return _said("info", "agents_own_file", path, message, hint), False
    places = ", ".join(_places(profile))
    message = f"no hook of this file runs from where it lies: hook files are read at {places}"
    hint = "move it there, or name it in [[hook_file]] of prxbus.toml"
    return _said("warning", "not_in_place", path, message, hint), True


def _again(path: str, layer: Layer) -> Diagnostic:
    """What is said of a file that runs, and was named once more."""
    message = f"it is also named as {layer.name}, and runs once"
    return _said("info", "named_twice", path, message, "name it in one place")


def _places(profile: Profile) -> tuple[str, ...]:
    """Where files of a profile are read: the user's, and that of a workspace."""
    folder, _, name = profile.user_file.partition("/")
    return (os.path.join(_FOLDERS[folder](os.environ), name), profile.workspace_file)


def _app_faults(path: str, world: World) -> tuple[Diagnostic, ...]:
    """What is wrong with BitFun's switches, told where they count."""
    app: BitFunSwitches = read_switches(app_file(world.environ))
    return tuple(replace(each, message=f"{each.path}: {each.message}", path=path) for each in app.diagnostics)


def _said(severity: Severity, code: str, path: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic(severity, code, path, None, None, None, message, hint)
