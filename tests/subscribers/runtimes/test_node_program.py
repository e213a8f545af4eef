"""Finding Node: which one, whether it will do, and how the host is started with it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from subscribers.runtimes import node_program
from subscribers.runtimes.node_program import (
    HOST,
    NodeMissing,
    NodeProgram,
    find_node,
    node_environment,
)


def program(folder: Path, answer: str, name: str = "node") -> Path:
    """A program that answers every question alike, and notes that it was asked."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\n{answer}\n")
    path.chmod(stat.S_IRWXU)
    return path


@pytest.mark.parametrize(
    "answer,found",
    [
        ("echo v20.0.0", (20, 0, 0)),
        ("echo v26.1.12", (26, 1, 12)),
        ("echo v25.0.0-nightly2026", (25, 0, 0)),
        ("echo v18.20.4", "is v18.20.4"),
        ("echo v19.9.9", "is v19.9.9"),
        ("echo 20", "does not say its version"),
        ("exit 1", "does not say its version"),
        ("printf '\\377'", "does not say its version"),
    ],
)
def test_a_node_will_do_from_20_on(tmp_path: Path, answer: str, found: tuple[int, int, int] | str) -> None:
    """What the program says of its version decides; the reason names the program and what is needed."""
    path = program(tmp_path, answer)
    node = find_node(None, {"PATH": str(tmp_path)})
    if isinstance(found, str):
        assert node == NodeMissing(f"needs Node 20 or newer: {path} {found}")
    else:
        assert node == NodeProgram(str(path), found)


def test_the_setting_comes_before_the_path(tmp_path: Path) -> None:
    """A setting is a path or a name on the PATH; without one it is ``node``."""
    environ = {"PATH": str(tmp_path)}
    program(tmp_path, "echo v20.1.0")
    other = program(tmp_path, "echo v22.1.0", "node22")
    far = program(tmp_path / "far", "echo v24.1.0")
    assert find_node("node22", environ) == NodeProgram(str(other), (22, 1, 0))
    assert find_node(str(far), environ) == NodeProgram(str(far), (24, 1, 0))


def test_a_missing_node_is_named(tmp_path: Path) -> None:
    """Not on the PATH, no program, a program that cannot start: there is a reason for each."""
    environ = {"PATH": str(tmp_path)}
    assert find_node(None, environ) == NodeMissing("needs Node 20 or newer: node is not on the PATH")
    (tmp_path / "file").touch()
    missing = find_node(str(tmp_path / "file"), environ)
    assert missing == NodeMissing(f"needs Node 20 or newer: {tmp_path}/file is no program")
    broken = tmp_path / "node"
    broken.write_text("#!/nowhere/sh\n")
    broken.chmod(stat.S_IRWXU)
    assert find_node(None, environ) == NodeMissing(
        f"needs Node 20 or newer: {broken} does not say its version"
    )


def test_a_node_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that says nothing in time will not do."""
    monkeypatch.setattr(node_program, "_VERSION_S", 0.05)
    path = program(tmp_path, "exec /bin/sleep 20")
    assert find_node(str(path), {}) == NodeMissing(f"needs Node 20 or newer: {path} does not say its version")


def test_a_version_is_asked_for_once_while_the_file_is_the_same(tmp_path: Path) -> None:
    """The answer is kept until the program is another one."""
    path = program(tmp_path, "echo v20.1.0")
    first, again = find_node(str(path), {}), find_node(str(path), {})
    assert first == again == NodeProgram(str(path), (20, 1, 0))
    assert (tmp_path / "asked").read_text().split() == ["asked"]
    program(tmp_path, "echo v22.13.0")
    os.utime(path, ns=(1, 1))
    assert find_node(str(path), {}) == NodeProgram(str(path), (22, 13, 0))


@pytest.mark.parametrize(
    "version,strips",
    [
        ((20, 20, 2), False),
        ((22, 12, 0), False),
        ((22, 13, 0), True),
        ((23, 1, 0), False),
        ((23, 2, 0), True),
        ((24, 0, 0), True),
    ],
)
def test_typescript_needs_a_node_that_strips_types(version: tuple[int, int, int], strips: bool) -> None:
    """A ``.ts``, ``.mts`` or ``.cts`` is refused with the version that it needs; JavaScript never is."""
    node = NodeProgram("/bin/node", version)
    assert node.strips_types is strips
    for name in ("a.ts", "/r/b.mts", "c.cts"):
        assert (node.problem_of(name) is None) is strips
        assert strips or "needs Node 22.13 or newer, and /bin/node is v" in str(node.problem_of(name))
    assert {node.problem_of(name) for name in ("a.js", "b.mjs", "c.cjs", "ts")} == {None}


def test_the_command_limits_what_the_host_may_take() -> None:
    """The limit of its data is below the 2 GB that a runaway buffer asks for."""
    argv = NodeProgram("/bin/node", (20, 0, 0)).argv()
    script, limit_kb, path, *rest = argv[2:]
    assert argv[:2] == ["/bin/sh", "-c"]
    assert 'ulimit -S -d "$0"' in script
    assert path == "/bin/node"
    assert 4 * 256 < int(limit_kb) // 1_024 < 2_048
    assert rest[-7:] == [str(HOST), "--workers", "4", "--memory-mb", "256", "--load-ms", "5000"]
    newer = NodeProgram("/bin/node", (24, 0, 0)).argv(workers=1, memory_mb=64, load_ms=100)
    assert int(newer[3]) // 1_024 == 192 + 12 * 16 + 128 + 512 + 13 * 16
    assert newer[-6:] == ["--workers", "1", "--memory-mb", "64", "--load-ms", "100"]


def test_the_environment_holds_no_secret_of_ours() -> None:
    """The host inherits the environment without what opens prxbus's own doors."""
    environ = {"PATH": "/bin", "PRXBUS_API_TOKEN": "t", "prxbus_hook_token": "t"}
    assert node_environment(environ) == {"PATH": "/bin"}


def test_the_host_and_its_modules_lie_in_the_package() -> None:
    """Every script that one of the host's scripts names is there."""
    scripts = {path.name: path.read_text() for path in HOST.parent.glob("node_*.mjs")}
    assert HOST.name in scripts
    named = {name for name in scripts for text in scripts.values() if f"./{name}'" in text}
    assert named == scripts.keys() - {HOST.name}
