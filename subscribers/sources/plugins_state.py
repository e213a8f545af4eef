"""One plugin over time: which version of it is in force after what was just seen.

A pure state machine. A manifest that can be used, its component beside it, replaces the version in force; one
that cannot changes nothing but what is said; a folder that is gone takes its plugin along. Whether the
component itself is any good shows when it is loaded: that is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dialects.prx_plugin import Manifest, ParsedManifest
from ..hooks.diagnostics import Diagnostic, Severity
from .discover import Signature
from .hook_source import Absent, Unreadable


@dataclass(frozen=True, slots=True)
class Plugin:
    """A version of a plugin. Equal ones are the same version.

    ``folder`` is its name below ``plugins``, ``path`` that of its manifest; ``component`` is what the
    component looked like from outside.
    """

    folder: str
    path: str
    manifest: Manifest
    component: Signature


@dataclass(frozen=True, slots=True)
class PluginState:
    """What is in force for one folder, and what there is to say about it.

    ``plugin`` None: nothing is. ``wasm`` is the component that the latest manifest names, to be watched also
    while it is missing. ``seen`` is what was last seen, so that the same is not said twice.
    """

    folder: str
    path: str
    plugin: Plugin | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    wasm: str | None = None
    seen: tuple[object, ...] | None = None


def unusable(state: PluginState, reading: Absent | Unreadable) -> PluginState:
    """The state after a manifest that cannot be read; the same object when that is known."""
    seen = (reading,)
    if seen == state.seen:
        return state
    if isinstance(reading, Absent):
        hint = "write one, or move the folder away"
        why = _remark(state, "error", "no_manifest", "there is no plugin.toml", hint)
    else:
        why = _remark(state, "error", reading.code, reading.message, reading.hint)
    return _kept(state, (why,), seen, state.wasm)


def advance(
    state: PluginState, digest: str, parsed: ParsedManifest, component: Signature | Unreadable
) -> PluginState:
    """The state after a manifest was read and its component looked at."""
    manifest = parsed.manifest
    seen = (digest, component)
    if manifest is None:
        return _kept(state, parsed.diagnostics, seen, state.wasm)
    if component is None or isinstance(component, Unreadable):
        what = f"its component {manifest.wasm}"
        if component is None:
            hint = "build it; it is loaded as soon as it is there"
            why = _remark(state, "error", "no_component", f"{what} is not there", hint)
        else:
            why = _remark(state, "error", component.code, f"{what}: {component.message}", component.hint)
        return _kept(state, (*parsed.diagnostics, why), seen, manifest.wasm)
    plugin = Plugin(state.folder, state.path, manifest, component)
    return replace(state, plugin=plugin, diagnostics=parsed.diagnostics, wasm=manifest.wasm, seen=seen)


def _kept(
    state: PluginState, why: tuple[Diagnostic, ...], seen: tuple[object, ...], wasm: str | None
) -> PluginState:
    hint = "correct it; it is read again as soon as it changes"
    if state.plugin is not None:
        message = "the last good version of the plugin stays in force"
        said = _remark(state, "error", "kept_last_good", message, hint)
    else:
        said = _remark(state, "error", "not_loaded", "the plugin is not loaded", hint)
    return replace(state, diagnostics=(said, *why), seen=seen, wasm=wasm)


def _remark(state: PluginState, severity: Severity, code: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic(severity, code, state.path, None, None, None, message, hint)
