"""Which files are read, and that a file that cannot be used says why."""

from pathlib import Path

import pytest

from subscribers.config.files import FILE_BYTES, load, user_file, workspace_file


def test_the_layers_are_found_where_they_are_documented(tmp_path: Path) -> None:
    """User file, workspace file, variable and flag, each over the one before."""
    environ = {"PRXBUS_CONFIG_DIR": str(tmp_path / "config"), "PRXBUS_HOOKS_QUEUE": "3"}
    workspace = tmp_path / "w"
    for path, text in {
        user_file(environ): "[hooks]\nruns = 9\nruns_per_hook = 9\nqueue = 9\n",
        workspace_file(str(workspace)): "[hooks]\nruns = 8\nruns_per_hook = 8\n",
    }.items():
        Path(path).parent.mkdir(parents=True)
        Path(path).write_text(text)
    found = load(environ, {"hooks.runs": 7, "log.level": None}, str(workspace)).settings.hooks
    assert (found.runs, found.runs_per_hook, found.queue) == (7, 8, 3)
    without = load(environ, {}, None).settings.hooks
    assert (without.runs, without.runs_per_hook) == (9, 9)


def test_the_default_place_is_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without $PRXBUS_CONFIG_DIR it is the platform's configuration directory."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_file({}) == str(tmp_path / "prxbus" / "prxbus.toml")


@pytest.mark.parametrize(
    "content, words",
    [
        (b"[hooks\n", "the file is not TOML"),
        (b"a." * 40_000 + b"a = 1\n", "a key in it has more than 32 parts"),
        (b"x = " + b"[" * 5_000, "the file is nested too deeply"),
        (b"[hooks]\nruns = 0x" + b"f" * 20_000 + b"\n", "a number in it has more than 64 bits"),
        (b"x = [1, {y = -0x1" + b"0" * 16 + b"}]\n", "is not TOML"),
        (b"x = [1, {y = 0x1" + b"0" * 16 + b"}]\n", "a number in it has more than 64 bits"),
        (b"\xff", "the file is not UTF-8 at byte 0"),
        (b"#" * (FILE_BYTES + 1), "the file has more than 1,048,576 bytes"),
        (None, "the file cannot be read: Is a directory"),
    ],
)
def test_an_unusable_file_says_why(tmp_path: Path, content: bytes | None, words: str) -> None:
    """A file that cannot be used is one diagnostic, and the defaults hold."""
    path = tmp_path / "prxbus.toml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    (fault,) = load({"PRXBUS_CONFIG_DIR": str(tmp_path)}, {}, None).diagnostics
    assert fault.path == str(path)
    assert words in fault.message
