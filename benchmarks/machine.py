"""Facts about the machine and about processes, from /proc and the interpreter. Decides nothing; measures
nothing by itself.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from typing import Any

from .servers import program

_LIBRARIES = ("pyzmq", "msgpack", "msgspec", "orjson", "nats-py", "redis", "hiredis", "paho-mqtt")
_SERVERS = {"nats-server": "--version", "redis-server": "--version", "mosquitto": "-h"}  # how to ask


def facts() -> dict[str, Any]:
    """What a reader needs in order to judge a figure: processor, cores, memory, kernel, versions, load at
    the start.
    """
    return {
        "cpu": _first("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": len(os.sched_getaffinity(0)),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": _libraries(),
        "servers": {name: version for name, flag in _SERVERS.items() if (version := _version(name, flag))},
        "load_1min": round(os.getloadavg()[0], 2),
        "pinned": False,
    }


def resident_bytes(pid: int) -> tuple[int, int]:
    """Resident memory of a process now and at its peak, in bytes."""
    sizes = {}
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        for line in status:
            key, _, rest = line.partition(":")
            if key in ("VmRSS", "VmHWM"):
                sizes[key] = int(rest.split()[0]) * 1024
    return sizes["VmRSS"], sizes["VmHWM"]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all of its threads, in steps of a clock tick (10 ms)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _libraries() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if (zmq := sys.modules.get("zmq")) is not None:
        found["libzmq"] = zmq.zmq_version()
    return found


def _version(name: str, flag: str) -> str | None:
    path = program(name)
    if path is None:
        return None
    answer = subprocess.run([path, flag], capture_output=True, text=True, timeout=10, check=False)
    lines = (answer.stdout or answer.stderr).splitlines()
    found = re.search(r"\d+\.\d+[.\d]*", lines[0]) if lines else None
    return f"{name} {found[0]}" if found else None


def _first(path: str, key: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as table:
            return next((line.partition(":")[2].strip() for line in table if line.startswith(key)), None)
    except OSError:
        return None
