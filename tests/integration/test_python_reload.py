"""Files of handlers that change while at work: nothing is lost, nothing done twice, nobody unguarded."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client import Publisher
from tests.integration.python_scene import Scene, gone, handlers, scene
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(180)

START = "prx.lifecycle.tool_call_start"
LONG_S = 30.0


def guard(version: int) -> str:
    """A guard that says which version it is."""
    return f'@decide("tool_call_start")\ndef guard(event, ctx):\n    return ctx.deny("{version}")\n'


def noting(version: int, notes: Path, failure: str = "open") -> str:
    """A guard and a watcher that note each event which they are called for."""
    return (
        "import os\n"
        f"notes = os.open({str(notes)!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
        f'@decide("tool_call_start", failure="{failure}")\n'
        "def guard(event, ctx):\n"
        '    os.write(notes, f"guard {event.id}\\n".encode())\n'
        f'    return ctx.deny("{version}")\n'
        '@on("tool_call")\n'
        'def watch(event, ctx): os.write(notes, f"watch {event.id}\\n".encode())\n'
    )


def says(on: Scene, reason: str) -> bool:
    """Whether the guard in force gives this reason; there is always one."""
    decision = on.agent.ask(START, {}, timeout=LONG_S)
    assert decision.denied, decision
    return decision.reason == reason


def test_an_edit_takes_over_without_a_gap() -> None:
    """Every ask is answered by the version before or the one after, and the process before ends."""
    with scene() as on:
        on.write("guard.py", guard(1))
        with handlers(on) as service:
            assert says(on, "1")
            on.write("guard.py", guard(2))
            until(lambda: says(on, "2"), "the new version")
            first, second = service.pids()
            until(lambda: gone(first), "the old worker's end")
            assert says(on, "2")
            assert not gone(second)


def test_what_cannot_be_loaded_leaves_the_version_before_in_force() -> None:
    """Three kinds of broken files: each is told with file and line, and the good one goes on."""
    broken = {
        "def f(:\n": ("syntax_error", 2),
        "1/0\n": ("cannot_load", 2),
        '@on("tool*")\ndef f(e, c): pass\n': ("cannot_load", 2),
    }
    with scene() as on:
        path = on.write("guard.py", guard(1))
        with handlers(on) as service:
            for known, (source, (code, line)) in enumerate(broken.items()):
                on.write("guard.py", source)
                until(
                    lambda known=known: service.count("the version before stays in force") > known,  # type: ignore[misc]
                    "the word of it",
                )
                assert service.count(f"{path}:{line}: error:") > 0
                assert service.count(f"[{code}]") > 0
                assert says(on, "1")
            on.write("guard.py", guard(2))
            until(lambda: says(on, "2"), "the mended version")


def test_files_come_and_go() -> None:
    """A new file is noticed, a deleted one ends, and one that was broken at the start can be mended."""
    with scene() as on:
        on.write("broken.py", "1/0\n")
        with handlers(on) as service:
            assert (service.said["handlers"], service.said["refused"]) == (0, 1)
            path = on.write("new.py", guard(7))
            service.in_force(1)
            assert says(on, "7")
            (pid,) = service.pids()
            path.unlink()
            until(lambda: gone(pid), "the end of the deleted file's worker")
            until(lambda: on.agent.ask(START, {}, timeout=LONG_S).heard == (), "nobody left to ask")
            on.write("broken.py", guard(8))
            service.in_force(2)
            assert says(on, "8")


def test_an_edited_neighbour_reloads_who_imports_it() -> None:
    """A file is loaded again when something that it imports from its folder changes."""
    source = "from ._rules import REASON\n" + guard(0).replace('"0"', "REASON")
    with scene() as on:
        on.folder.mkdir(parents=True)
        (on.folder / "_rules.py").write_text('REASON = "before"\n')
        on.write("guard.py", source)
        with handlers(on):
            assert says(on, "before")
            (on.folder / "_rules.py").write_text('REASON = "after!"\n')
            until(lambda: says(on, "after!"), "the new rule")


def test_an_emptied_file_says_which_guards_are_gone() -> None:
    """It is meant when it stays so: the guard goes, with a warning that names it."""
    with scene() as on:
        path = on.write("guard.py", guard(1))
        with handlers(on) as service:
            assert says(on, "1")
            path.write_text("")
            until(lambda: not on.agent.ask(START, {}, timeout=LONG_S).heard, "an ask that nobody is asked")
            (line,) = [line for line in service.log.read_text().splitlines() if "no longer in force" in line]
    assert (orjson.loads(line)["level"], orjson.loads(line)["guards"]) == ("warning", ["guard"])


def test_a_touched_file_is_not_loaded_again() -> None:
    """What has the same content as before is left alone, also on SIGHUP."""
    with scene() as on:
        path = on.write("guard.py", guard(1))
        with handlers(on) as service:
            path.touch()
            on.write("other.py", '@on("x")\ndef x(e, c): pass\n')  # noticed together with the touch, or later
            service.in_force(2)
            assert says(on, "1")
            assert len(service.pids()) == 2


def test_a_hangup_says_what_there_is_and_what_is_still_refused() -> None:
    """SIGHUP: which files were looked at, and once more why one of them is not in force."""

    def lines(words: str) -> list[Any]:
        return [orjson.loads(line) for line in service.log.read_text().splitlines() if words in line]

    def has_said(times: int) -> bool:
        return len(lines("still refused")) == times

    with scene() as on:
        good, bad = on.write("guard.py", guard(1)), on.write("bad.py", "1 / 0\n")
        on.write("ends.py", "import os\nos._exit(3)\n")
        with handlers(on) as service:
            assert says(on, "1")
            for times in (2, 4):
                service.process.send_signal(signal.SIGHUP)
                until(partial(has_said, times), "what is refused")
            first = lines("looked at the places")[0]
            (ends, *_) = lines("could not be loaded")
            refused = [line["reason"] for line in lines("still refused")[:2]]
            assert len(service.pids()) == 1
    assert set(first["files"]) == {str(good), str(bad), str(on.folder / "ends.py")}
    assert (first["in_force"], first["refused"]) == (1, 2)
    assert any(str(bad) in line and "ZeroDivisionError" in line for line in refused)
    assert any("ends.py" in line and "it ended by itself with 3" in line for line in refused)
    assert (ends["kept"], ends["again_in_s"]) == ("nothing of it is in force", 1.0)


@pytest.mark.parametrize("failure", ["open", "closed"])
def test_no_event_is_lost_or_handled_twice_while_versions_change(tmp_path: Path, failure: str) -> None:
    """Under a steady load of asks and events, five edits: each ask denied, each event noted exactly once."""
    notes = tmp_path / "notes"
    stop = threading.Event()
    decisions: list[Any] = []
    published: list[str] = []

    def load(on: Scene) -> None:
        with Publisher("load", runtime_dir=on.bus, on_absent="raise") as agent:
            count = 0
            while not stop.wait(0.005):
                count += 1
                decisions.append(agent.ask(START, {"n": count}, timeout=LONG_S))
                assert agent.publish("prx.lifecycle.tool_call", {"tool": "Bash", "n": count})
                assert agent.publish(START, {"n": -count})
                published.append("x")

    with scene() as on:
        on.write("guard.py", noting(0, notes, failure))
        with handlers(on) as service:
            thread = threading.Thread(target=load, args=(on,))
            thread.start()
            try:
                for version in range(1, 6):
                    on.write("guard.py", noting(version, notes, failure))
                    service.in_force(version + 1)
            finally:
                stop.set()
                thread.join(60)
            pids = service.pids()
            until(lambda: all(gone(pid) for pid in pids[:-1]), "the end of the versions before")
            expected = 3 * len(published)
            until(lambda: len(notes.read_text().splitlines()) >= expected, f"{expected} notes")
    counts = Counter(notes.read_text().splitlines())
    assert {decision.verdict for decision in decisions} == {"deny"}
    assert [decision for decision in decisions if decision.partial] == []
    assert [(note, count) for note, count in counts.items() if count != 1] == []
    assert len(counts) == expected
    reasons = {decision.reason for decision in decisions}
    assert len(reasons) > 1
    assert reasons <= {str(version) for version in range(6)}


def test_a_guard_runs_once_for_an_event_whichever_way_it_comes(tmp_path: Path) -> None:
    """Asks and their published copies, five hundred of them: one run for each event id."""
    notes = tmp_path / "notes"
    with scene() as on:
        on.write("guard.py", noting(0, notes))
        with handlers(on):
            for n in range(500):
                assert on.agent.ask(START, {"n": n}, timeout=LONG_S).denied
            on.agent.publish(START, {"last": True})
            until(lambda: len(notes.read_text().splitlines()) >= 501, "the last one")
            runs = on.monitor.wait("prx.hooks.run", 501)
    assert set(Counter(notes.read_text().splitlines()).values()) == {1}
    reasons = Counter(run["reason"] for run in runs)
    assert reasons == {None: 500, "observed, decision ignored": 1}
