"""Edited, broken, added and deleted files of transforms: each holds soon, and the last good one stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.transform_scene import Scene, scene, transforms
from tests.integration.waiting import until

FUNCTION = (
    "import os, time\nfrom subscribers.handlers import transform\n"
    "@transform(timeout=0.3, tools=['Stuck'])\ndef stuck(event, ctx): time.sleep(1000)\n"
    "@transform\ndef f(event, ctx): return '{0}'\n"
)
TABLE = "[[transform]]\ncommand = ['printf', '{{\"content\": \"{0}\"}}']\n"


@pytest.fixture(name="stage")
def _stage() -> Iterator[Scene]:
    with scene() as found:
        yield found


def becomes(stage: Scene, text: str | None) -> None:
    """Wait until that is the answer."""

    def is_so() -> bool:
        decision = stage.ask("raw")
        return text == (decision.output if decision.replaced else None)

    until(is_so, f"the answer to be {text!r}")


def test_an_edited_file_holds_and_a_broken_one_leaves_the_last_good(stage: Scene) -> None:
    """A file that breaks changes nothing, even when a function has to be ended and replaced meanwhile."""
    path = stage.handlers("f.py", FUNCTION.format("one"))
    other = stage.handlers("g.py", FUNCTION.format("other"))
    with transforms(stage) as service:
        assert stage.ask("raw").output == "one"
        stage.handlers("f.py", FUNCTION.format("two"))
        becomes(stage, "two")
        stage.handlers("f.py", FUNCTION.format("three") + "this is no Python\n")
        until(lambda: service.logged("the last good transforms of a file stay in force"), "the word of it")
        assert service.logged(f"{path}:7: error")
        for _ in range(4):  # more than there are idle workers
            assert stage.ask("raw", tool="Stuck").output == "two"
        stage.handlers("f.py", FUNCTION.format("three"))
        becomes(stage, "three")
        path.unlink()
        becomes(stage, "other")
        other.unlink()
        becomes(stage, None)
        stage.handlers("h.py", FUNCTION.format("new"))
        becomes(stage, "new")


def test_an_edited_neighbour_counts_as_an_edit(stage: Scene) -> None:
    """A file that is imported relatively is followed too."""
    stage.handlers("_words.py", "WORD = 'one'\n")
    stage.handlers(
        "f.py",
        "from subscribers.handlers import transform\nfrom ._words import WORD\n"
        "@transform\ndef f(event, ctx): return WORD\n",
    )
    with transforms(stage):
        assert stage.ask("raw").output == "one"
        stage.handlers("_words.py", "WORD = 'two'\n")
        becomes(stage, "two")


def test_an_edited_configuration_holds_and_a_broken_one_leaves_the_last_good(stage: Scene) -> None:
    """Tables are followed like files, the user's and the workspace's, each for itself."""
    stage.tables(TABLE.format("workspace"))
    with transforms(stage) as service:
        assert stage.ask("raw").output == "workspace"
        stage.own_tables(TABLE.format("user"))
        becomes(stage, "user")
        stage.own_tables(TABLE.format("user 2") + "[[transform]]\ncomand = 'x'\n")
        until(lambda: service.logged("did you mean command?"), "the fault to be told")
        assert service.logged("the last good transforms of a file stay in force")
        assert stage.ask("raw").output == "user"
        stage.tables(TABLE.format("workspace 2"))
        (stage.config / "prxbus.toml").unlink()
        becomes(stage, "workspace 2")


def test_a_call_under_way_ends_with_the_version_it_began_with(stage: Scene) -> None:
    """A new version does not end the old one's calls."""
    gate = stage.workspace / "gate"
    os.mkfifo(gate)
    slow = (
        "from subscribers.handlers import transform\n"
        f"@transform(timeout=60, tools=['Slow'])\ndef slow(event, ctx): return open({str(gate)!r}).read()\n"
    )
    stage.handlers("f.py", slow + "@transform\ndef f(event, ctx): return 'one'\n")
    with transforms(stage), ThreadPoolExecutor(1) as threads:
        asked = threads.submit(stage.ask, "raw", 60.0, tool="Slow")
        opened: list[int] = []

        def is_reading() -> bool:
            try:
                opened.append(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                return False
            return True

        until(is_reading, "the function to be called")
        stage.handlers(
            "f.py", "from subscribers.handlers import transform\n@transform\ndef f(e, c): return 'two'\n"
        )
        becomes(stage, "two")
        assert not asked.done()
        os.write(opened[0], b"as it began")
        os.close(opened[0])
        assert asked.result(40).output == "as it began"


def test_sighup_looks_at_everything_again(stage: Scene) -> None:
    """After SIGHUP a file is loaded again although nothing of it looks different."""
    rules = stage.workspace / "rules.txt"
    rules.write_text("one")
    stage.handlers(
        "f.py",
        "from pathlib import Path\nfrom subscribers.handlers import transform\n"
        f"RULES = Path({str(rules)!r}).read_text()\n@transform\ndef f(event, ctx): return RULES\n",
    )
    with transforms(stage) as service:
        assert stage.ask("raw").output == "one"
        rules.write_text("two")
        service.process.send_signal(signal.SIGHUP)
        becomes(stage, "two")


def test_a_stem_that_dies_is_started_again(stage: Scene) -> None:
    """When the process that holds a file's functions is killed, the file is loaded anew by itself."""
    note = stage.workspace / "parent"
    stage.handlers(
        "f.py",
        "import os\nfrom pathlib import Path\nfrom subscribers.handlers import transform\n@transform\n"
        f"def f(event, ctx):\n    Path({str(note)!r}).write_text(str(os.getppid()))\n    return 'there'\n",
    )
    with transforms(stage):
        assert stage.ask("raw").output == "there"
        first = note.read_text()
        os.kill(int(first), signal.SIGKILL)
        until(lambda: stage.ask("raw").output == "there" and note.read_text() != first, "another stem")


def test_a_file_without_transforms_is_not_executed(stage: Scene) -> None:
    """Guards and observers are loaded by the process that runs them, and not once more here."""
    sign = stage.workspace / "executed"
    stage.handlers("guard.py", f"open({str(sign)!r}, 'w').close()\n")
    with transforms(stage) as service:
        assert service.said["transforms"] == 0
        assert not stage.ask("raw").replaced
    assert not Path(sign).exists()
