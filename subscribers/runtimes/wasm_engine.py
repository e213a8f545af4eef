"""Engines for components, and where their compiled code is kept.

Decides what of WebAssembly a plugin may use: components without threads, garbage collection and 64-bit
memories, because the memory limit does not reach those. Each plugin has an engine of its own, so that its
calls are interrupted at their own deadline and nobody else's. Refuses to know what is compiled.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Final

from wasmtime import Config, Engine

from .wasm_bindings import mend

CACHE_BYTES: Final = "1Gi"
"""Size at which wasmtime removes what was not used for longest from the cache, in its own notation."""

_OFF: Final = ("wasm_threads", "wasm_gc", "wasm_memory64")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def prepare_cache(directory: str) -> str:
    """Make ``directory`` a cache of compiled code, and return the path of its configuration.

    Compiled code is loaded as it is, so nobody else may write it: raises PermissionError where the folder
    is another user's or open to others, and OSError where it cannot be made.
    """
    os.makedirs(directory, mode=0o700, exist_ok=True)
    found = os.stat(directory)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & _OTHERS:
        raise PermissionError(f"{directory!r} must belong to this user alone (chmod 700)")
    path = os.path.join(directory, "cache.toml")
    text = "\n".join(
        (
            "[cache]",
            f"directory = {json.dumps(os.path.join(directory, 'code'))}",
            f"files-total-size-soft-limit = {json.dumps(CACHE_BYTES)}",
            "",
        )
    )
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
    return path


def new_engine(*, fuel: bool, cache: str | None) -> Engine:
    """An engine for one plugin. ``fuel``: instructions are counted. ``cache``: see :func:`prepare_cache`."""
    mend()
    config = Config()
    config.wasm_component_model = True
    for name in _OFF:
        setattr(config, name, False)
    config.epoch_interruption = True
    config.consume_fuel = fuel
    config.parallel_compilation = False  # a large plugin takes one processor from the others, not all
    if cache is not None:
        config.cache = cache
    return Engine(config)
