"""What explaining a file may ask of this machine, and of the configuration in force.

It is a value that whoever explains is handed; it decides nothing but that Python which nobody named is not
executed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import Explained
from .role_modules import Languages

if TYPE_CHECKING:
    from ..config.layers import Configured


@dataclass(frozen=True, slots=True)
class World:
    """What else there is on this machine.

    ``prxbus_folder``: where the running command lies. ``environ``: what a LibreFang hook inherits.
    ``configured``: the configuration in force for a workspace. ``has_wasmtime``: whether components can be
    called at all. ``load`` executes a file of Python, of which the path and the workspace are given, and
    tells what it registers. ``is_trial``: a file is tried, whether or not it is in force where it lies.
    ``languages``: in which of them modules of roles can be run.
    """

    prxbus_folder: str
    environ: Mapping[str, str]
    configured: Callable[[str], Configured]
    has_wasmtime: bool
    load: Callable[[str, str], Explained]
    is_trial: bool = False
    languages: Callable[[], Languages] = Languages


def not_loaded(path: str, _workspace: str) -> Explained:
    """What is known of a file of Python that may not be executed."""
    message = "not loaded: loading executes it, and nobody has named the place"
    hint = "name it, as with: prxbus check ."
    return Explained((), (Diagnostic("info", "not_loaded", path, None, None, None, message, hint),), False)
