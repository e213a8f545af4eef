"""The end of trust in a workspace that changes, and how it stands with one."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from subscribers.hooks.trust_record import Record
from subscribers.sources.trust_files import look
from subscribers.sources.trust_standing import Standing, standing
from subscribers.sources.trust_store import TrustStore
from subscribers.sources.trust_watch import WITHDRAWN, TrustWatch
from tests.integration.waiting import until

Edit = Callable[[Path], object]


def hooks(*commands: str) -> str:
    """A PRX file with these commands."""
    return json.dumps({"hooks": {"error": [{"command": command} for command in commands]}})


class Scene:
    """A workspace that was trusted."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.environ = {"PRXBUS_CONFIG_DIR": str(folder / "config"), "HOME": str(folder)}
        self.store = TrustStore(str(folder / "state"))
        (self.workspace / ".prxbus" / "handlers").mkdir(parents=True)
        (self.workspace / ".prxbus" / "handlers" / "x.py").write_text("1")
        (self.workspace / "hooks.json").write_text(hooks("./a.sh"))
        (self.workspace / "a.sh").write_text("true")
        (self.workspace / "a.sh").chmod(0o755)
        self.trust()

    def trust(self) -> None:
        """As ``prxbus trust`` does."""
        listing = look(str(self.workspace), self.environ)
        assert listing.faults == ()
        self.store.write(Record(os.path.realpath(self.workspace), "now", listing.digests()))

    def standing(self) -> Standing:
        """How it stands with the workspace now."""
        return standing(str(self.workspace), self.environ, self.store)

    @contextmanager
    def watched(self, before: Callable[[], object] = lambda: None) -> Iterator[list[tuple[str, ...]]]:
        """What a watch says; it begins after ``before``."""
        stands = self.standing()
        assert stands.state == "unchanged"
        assert stands.record is not None
        assert stands.listing is not None
        said: list[tuple[str, ...]] = []
        watch = TrustWatch(stands.record, stands.listing, self.environ, self.store, said.append)
        before()
        watch.start()
        try:
            yield said
        finally:
            watch.stop()
        assert "trust" not in [thread.name for thread in threading.enumerate()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A workspace that was trusted, with one handler, and one hook that runs a script."""
    return Scene(tmp_path)


EDITS: dict[str, Edit] = {
    "a.sh": lambda w: (w / "a.sh").write_text("false"),
    ".prxbus/handlers/x.py": lambda w: (w / ".prxbus" / "handlers" / "x.py").write_text("2"),
    ".prxbus/handlers/y.py (added)": lambda w: (w / ".prxbus" / "handlers" / "y.py").touch(),
    ".prxbus/handlers/x.py (removed)": lambda w: (w / ".prxbus" / "handlers" / "x.py").unlink(),
    ".prxbus/config.toml (added)": lambda w: (w / ".prxbus" / "config.toml").touch(),
}


@pytest.mark.parametrize("reason", EDITS)
def test_a_change_ends_the_trust_and_is_named(scene: Scene, reason: str) -> None:
    """Whether it comes before or after the watch begins; and then the workspace stands as changed."""
    with scene.watched(lambda: EDITS[reason](scene.workspace)) as said:
        until(lambda: said, "the end of the trust")
    assert said == [(reason,)]
    stands = scene.standing()
    assert (stands.state, stands.reasons) == ("changed", (reason,))
    scene.trust()
    assert scene.standing().state == "unchanged"


def test_hooks_json_may_change_and_name_other_scripts_while_it_is_watched(scene: Scene) -> None:
    """That and a file that was merely touched end nothing; a script that changes and is named does."""
    with scene.watched() as said:
        (scene.workspace / "b.sh").write_text("true")
        (scene.workspace / "hooks.json").write_text(hooks("./a.sh", "./b.sh"))
        os.utime(scene.workspace / "a.sh")
        (scene.workspace / "a.sh").write_text("false")
        until(lambda: said, "the end of the trust")
    assert said == [("a.sh",)]
    assert scene.standing().reasons == ("a.sh", "hooks.json", "b.sh (added)")


def test_withdrawn_trust_ends(scene: Scene) -> None:
    """Who removes the record means what runs now, too; trusting anew what is unchanged ends nothing."""
    with scene.watched() as said:
        scene.trust()
        scene.store.remove(str(scene.workspace))
        until(lambda: said, "the end of the trust")
    assert said == [(WITHDRAWN,)]
    assert scene.standing().state == "never"


def test_a_file_that_comes_to_lead_outside_ends_the_trust(scene: Scene, tmp_path: Path) -> None:
    """Even hooks.json, which may change, may not become a link out of the workspace."""
    (tmp_path / "else.json").write_text(hooks("./a.sh"))
    with scene.watched() as said:
        (scene.workspace / "hooks.json").unlink()
        (scene.workspace / "hooks.json").symlink_to(tmp_path / "else.json")
        until(lambda: said, "the end of the trust")
    assert f"a link out of the workspace, to {tmp_path}/else.json" in "".join(said[0])
    assert scene.standing().state == "changed"


def test_a_record_that_cannot_be_used_is_said(scene: Scene) -> None:
    """It neither counts as trust nor as none."""
    with scene.watched() as said:
        Path(scene.store.path_of(str(scene.workspace))).write_text("{")
        until(lambda: said, "the end of the trust")
    assert "it is not JSON" in said[0][0]
    assert scene.standing().state == "unusable"
