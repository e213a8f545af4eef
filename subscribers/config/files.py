"""Reading the configuration: which files, which variables, and a refusal that names every fault.

The user's file is ``prxbus.toml`` in the configuration directory (``$PRXBUS_CONFIG_DIR``, else the
platform's); a workspace's is ``.prxbus/config.toml``, read only for a workspace that the user named.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from ..dialects.toml_text import MAX_KEY_PARTS, has_endless_key
from ..hooks.diagnostics import Diagnostic
from . import hook_files, transforms
from .layers import Configured, Layer, combine, from_document, from_environment

FILE_BYTES: Final = 1_048_576


def user_file(environ: Mapping[str, str]) -> str:
    """Path of the user's configuration file, whether it exists or not."""
    directory = environ.get("PRXBUS_CONFIG_DIR")
    if not directory:
        import platformdirs

        directory = platformdirs.user_config_dir("prxbus", appauthor=False)
    return os.path.join(directory, "prxbus.toml")


def workspace_file(workspace: str) -> str:
    """Path of a workspace's configuration file, whether it exists or not."""
    return os.path.join(workspace, ".prxbus", "config.toml")


def load(environ: Mapping[str, str], flags: Mapping[str, Any], workspace: str | None) -> Configured:
    """The configuration in force. ``flags`` maps ``section.name`` to what the command line says.

    Faults are in ``diagnostics``; who starts something from it refuses to while there are any.
    """
    layers: list[Layer] = []
    faults: list[Diagnostic] = []
    chain: list[transforms.Transform] = []
    named: list[hook_files.HookFile] = []
    own = user_file(environ)
    sources = [(own, os.path.dirname(os.path.abspath(own)), False)]
    if workspace is not None:
        sources.append((workspace_file(workspace), os.path.abspath(workspace), True))
    for path, folder, is_workspace in sources:
        document, fault = _read(path)
        layer, found = from_document(document, path)
        layers.append(layer._replace(is_workspace=is_workspace))
        tables, wrong = transforms.read(document, path, folder)
        chain += tables
        files, bad = hook_files.read(document, path, folder, is_workspace=is_workspace)
        named += files
        faults += [*fault, *found, *wrong, *bad]
    layer, found = from_environment(environ)
    layers += [layer, Layer("flag", {key: value for key, value in flags.items() if value is not None})]
    configured = combine(layers)
    return configured._replace(
        diagnostics=(*faults, *found, *configured.diagnostics),
        transforms=tuple(chain),
        hook_files=tuple(named),
    )


def _read(path: str) -> tuple[Mapping[str, Any], list[Diagnostic]]:
    try:
        with open(path, "rb") as file:
            text = file.read(FILE_BYTES + 1)
        if len(text) > FILE_BYTES:
            return {}, [_unusable(path, f"the file has more than {FILE_BYTES:,} bytes")]
        if has_endless_key(text):
            return {}, [_unusable(path, f"a key in it has more than {MAX_KEY_PARTS} parts")]
        document = tomllib.loads(text.decode())
        if _has_endless_number(document):
            return {}, [_unusable(path, "a number in it has more than 64 bits")]
        return document, []
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [_unusable(path, f"the file cannot be read: {error.strerror}")]
    except UnicodeDecodeError as error:
        return {}, [_unusable(path, f"the file is not UTF-8 at byte {error.start}")]
    except tomllib.TOMLDecodeError as error:
        return {}, [_unusable(path, f"the file is not TOML: {error}")]
    except (RecursionError, ValueError):  # the parser recurses, and so does the look at what it made
        return {}, [_unusable(path, "the file is nested too deeply, or holds a number without end")]


def _has_endless_number(value: Any) -> bool:
    """Whether a whole number somewhere in ``value`` is one that cannot even be printed."""
    if isinstance(value, dict):
        return any(map(_has_endless_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_endless_number, value))
    return isinstance(value, int) and value.bit_length() > 64


def _unusable(path: str, message: str) -> Diagnostic:
    return Diagnostic("error", "unusable_file", path, None, None, None, message, None)
