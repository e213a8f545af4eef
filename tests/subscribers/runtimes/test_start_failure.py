"""Whatever keeps a program from starting is said in words that name it and what to change."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from subscribers.hooks.invocation import Invocation
from subscribers.runtimes.spawn import StartFailed, spawn
from subscribers.runtimes.start_failure import explain, missing_interpreter


def _reason(program: object, *arguments: str, cwd: object = "/", env: dict[str, str] | None = None) -> str:
    """Why the program really cannot be started here."""
    invocation = Invocation((str(program), *arguments), env or {}, str(cwd), b"{}", 10.0, 0.0)
    with pytest.raises(StartFailed) as failure:
        spawn(invocation)
    return str(failure.value)


def _script(path: Path, text: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(text)
    path.chmod(mode)
    return path


def test_a_missing_program(tmp_path: Path) -> None:
    """A path to nothing is said to be one, and so is a link to nothing."""
    assert _reason(tmp_path / "none") == f"{tmp_path}/none does not exist"
    (tmp_path / "link").symlink_to("none")
    assert _reason(tmp_path / "link") == f"{tmp_path}/link is a link to {tmp_path}/none, which does not exist"
    (tmp_path / "loop").symlink_to("loop")
    assert _reason(tmp_path / "loop") == f"{tmp_path}/loop is a link that leads back to itself"
    _script(tmp_path / "file", b"")
    assert "a part of its path is not a directory" in _reason(tmp_path / "file" / "x")
    assert "the path of" in _reason("/" + "x" * 300)


def test_a_program_that_may_not_be_run(tmp_path: Path) -> None:
    """A directory and a file without the executable bit are told apart."""
    assert _reason(tmp_path) == f"{tmp_path} is a directory, not a program"
    script = _script(tmp_path / "a.sh", b"#!/bin/sh\n", 0o644)
    assert _reason(script) == f"{script} is not executable; chmod +x {script}"


def test_a_script_whose_interpreter_is_the_problem(tmp_path: Path) -> None:
    """The interpreter is named when it is missing, unusable, or spoilt by Windows line endings."""
    missing = _script(tmp_path / "a", b"#! /no/such/python3 -u\nx\n")
    assert (
        _reason(missing)
        == f"{missing} cannot be run: its first line names /no/such/python3, which does not exist"
    )
    windows = _script(tmp_path / "b", b"#!/bin/sh\r\necho\r\n")
    assert "has Windows line endings" in _reason(windows)
    plain = _script(tmp_path / "plain", b"", 0o644)
    unusable = _script(tmp_path / "c", b"#!%s\n" % os.fsencode(plain))
    assert _reason(unusable).endswith(f"permission denied for it or for its interpreter {plain}")


@pytest.mark.parametrize("text", [b"echo no first line\n", b""])
def test_a_file_that_is_no_program(tmp_path: Path, text: bytes) -> None:
    """A script without #! is told what is missing."""
    assert "its first line must name an interpreter, such as #!/bin/sh" in _reason(
        _script(tmp_path / "a", text)
    )


def test_a_binary_without_its_loader(tmp_path: Path) -> None:
    """A program built for another system's loader is not called missing."""
    binary = bytearray(Path("/bin/true").read_bytes())
    at = binary.find(b"/lib64/ld-")
    if at < 0:
        pytest.skip("/bin/true here does not name its loader the usual way")
    binary[at : at + 6] = b"/nolib"
    path = _script(tmp_path / "a", bytes(binary))
    assert _reason(path) == f"{path} exists, but the loader that it was built for does not"


def test_a_bad_working_directory(tmp_path: Path) -> None:
    """The working directory is named when it is the problem, not the program."""
    assert (
        _reason("/bin/true", cwd=tmp_path / "none") == f"the working directory {tmp_path}/none does not exist"
    )
    file = _script(tmp_path / "file", b"")
    assert _reason("/bin/true", cwd=file) == f"the working directory {file} is not a directory"
    (tmp_path / "loop").symlink_to("loop")
    assert f"{tmp_path}/loop cannot be entered: Too many levels" in _reason(
        "/bin/true", cwd=tmp_path / "loop"
    )


def test_too_long_arguments() -> None:
    """A list that is too long says how long, where most of it is, and what to do instead."""
    reason = _reason("/bin/true", env={"ZERO_HOOK_PAYLOAD": "x" * 140_000})
    assert "140018 of them in 'ZERO_HOOK_PAYLOAD=x" in reason
    assert "Pass large data through a file or standard input" in reason


@pytest.mark.parametrize(
    "arguments,env,complaint",
    [
        (("a\0b",), {}, "null byte"),
        ((), {"A": "b\0"}, "null byte"),
        ((), {"A=B": "c"}, "illegal environment variable name"),
        (("\ud83d",), {}, "surrogates not allowed"),
    ],
)
def test_strings_that_cannot_be_passed(
    arguments: tuple[str, ...], env: dict[str, str], complaint: str
) -> None:
    """What the kernel or UTF-8 cannot express is refused before anything starts."""
    assert complaint in _reason("/bin/true", *arguments, env=env)


@pytest.mark.parametrize(
    "code,words",
    [
        (errno.EAGAIN, "no room for another process"),
        (errno.ENOMEM, "no room for another process"),
        (errno.EMFILE, "too many open files"),
        (errno.ENFILE, "too many open files"),
        (errno.ETXTBSY, "is being written right now"),
        (errno.EIO, "/bin/true cannot be run: Input/output error"),
        (None, "/bin/true cannot be run: strange"),
    ],
)
def test_failures_of_the_machine(code: int | None, words: str) -> None:
    """Errors that cannot be provoked here have words as well."""
    error = OSError("strange") if code is None else OSError(code, os.strerror(code))
    assert words in explain(error, "/bin/true", "/", [])


def test_what_may_not_even_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Explaining never fails itself: what cannot be read or reached is described from outside."""
    denied = OSError(errno.EACCES, "Permission denied", "/bin/true")
    assert "directory on its path may not be entered" in explain(denied, str(tmp_path / "x"), "/", [])
    assert "its file system forbids programs" in explain(denied, "/bin/true", "/", [])

    def refuse(path: str, flags: int) -> int:
        raise denied

    monkeypatch.setattr(os, "open", refuse)
    assert "its file system forbids programs" in explain(denied, "/bin/true", "/", [])


def test_a_missing_interpreter_is_found_without_a_start(tmp_path: Path) -> None:
    """The same words as after a failed start; a program, and a script that can be run, are no obstacle."""
    missing = _script(tmp_path / "a", b"#!/no/such/python3\n")
    assert missing_interpreter(str(missing)) == _reason(missing)
    assert missing_interpreter(str(_script(tmp_path / "b", b"#!/bin/sh\n"))) is None
    assert missing_interpreter("/bin/true") is None
