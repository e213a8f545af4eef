"""A process that is killed while it changes a store of imports, for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys
from pathlib import Path
from subscribers.sources.import_places import ImportPlaces
from subscribers.sources.import_store import ImportStore, enabled_imports
from tests.subscribers.sources.import_scene import contents, record, stored

root = Path(sys.argv[1])
runs = 0
while True:
    places = ImportPlaces(str(root / str(runs)))
    folder = Path(places.folder("user"))
    old = stored(folder, "a")
    left = [runs]

    def step(name):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    child = os.fork()
    if child == 0:
        files = contents("b")
        store = ImportStore(str(folder), "user", step)
        with store.locked():
            store.put(record(files), files, 0.0)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    (found,) = enabled_imports("user", places).imports
    digest = os.path.basename(os.path.dirname(found.path))
    assert digest in (old.snapshot, record(contents("b")).snapshot)
    stored(folder, "c")  # nobody holds the lock any more
    assert not [each for each in os.listdir(folder) if each.startswith("staging")]
    if os.WIFEXITED(status):
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
    runs += 1
print(runs)
"""


def test_a_killed_update_leaves_the_old_import_or_the_new(tmp_path: Path) -> None:
    """SIGKILL between any two steps: what runs is whole, the lock is free, and the next change sweeps."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 7
