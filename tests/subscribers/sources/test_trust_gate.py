"""What a process asks before it loads or runs code of a workspace that was trusted."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from subscribers.dialects import prx
from subscribers.hooks.trust_record import Record
from subscribers.sources.plugins_workspace import WorkspacePlugins
from subscribers.sources.resolve import Resolved, Unresolved
from subscribers.sources.trust_files import look
from subscribers.sources.trust_gate import WITHDRAWN, TrustGate
from subscribers.sources.trust_store import TrustStore
from subscribers.sources.workspace_hooks import WorkspaceHooks

MANIFEST = '[plugin]\nname = "x"\nversion = "1"\n[[capabilities]]\ntype = "hook"\nevents = ["error"]\n'


class Scene:
    """A workspace that was trusted, and its gate."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.store = TrustStore(str(folder / "state"))
        self.gate = TrustGate(str(self.workspace), self.store)
        self.write("hooks.json", json.dumps({"hooks": {"error": [{"command": "./a.sh", "args": ["b.txt"]}]}}))
        self.write(".prxbus/handlers/x.py", "1")
        self.write("plugins/p/plugin.toml", MANIFEST)
        self.write("plugins/p/plugin.wasm", "w")
        self.write("b.txt", "b")
        self.write("a.sh", "a").chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        """A file of the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def trust(self) -> None:
        """As ``prxbus trust`` does."""
        environ = {"PRXBUS_CONFIG_DIR": str(self.store.folder), "HOME": str(self.store.folder)}
        listing = look(str(self.workspace), environ)
        self.store.write(Record(os.path.realpath(self.workspace), "now", listing.digests()))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A workspace as it was recorded."""
    made = Scene(tmp_path)
    made.trust()
    return made


def test_handlers_and_settings_are_loaded_as_recorded(scene: Scene, tmp_path: Path) -> None:
    """Whatever changes there, comes or leads outside is named; the rest of the workspace does not count."""
    assert scene.gate.of_loaded() is None
    scene.write("a.sh", "else")
    assert scene.gate.of_loaded() is None
    handler = scene.write(".prxbus/handlers/x.py", "2")
    assert scene.gate.of_loaded() == "changed since prxbus trust: .prxbus/handlers/x.py"
    handler.write_text("1")
    for name in (".prxbus/handlers/_new.py", ".prxbus/config.toml"):
        scene.write(name, "")
        assert scene.gate.of_loaded() == f"changed since prxbus trust: {name} (added)"
        (scene.workspace / name).unlink()
    assert scene.gate.of_loaded() is None
    (scene.workspace / ".prxbus" / "handlers" / "y.py").symlink_to(tmp_path)
    assert "handlers/y.py" in str(scene.gate.of_loaded())


def test_a_command_runs_with_the_files_that_were_recorded(scene: Scene) -> None:
    """What it names has to be as it was; what nobody recorded, a new hooks.json may name."""
    assert scene.gate.of_command("./a.sh", ("b.txt", "absent", "/etc/hostname"), None) is None
    scene.write("new.sh", "new")
    assert scene.gate.of_command("./new.sh", (), None) is None
    scene.write("b.txt", "else")
    assert scene.gate.of_command("./a.sh", ("b.txt",), None) == "changed since prxbus trust: b.txt"
    assert scene.gate.of_command("./a.sh", (), None) is None
    assert "b.txt" in str(scene.gate.of_command("cat", ("../b.txt",), str(scene.workspace / "plugins")))


def test_a_hook_file_that_has_to_be_recorded_is_asked_about_too(scene: Scene) -> None:
    """It must be there, be recorded and be the same."""
    path = scene.write(".prxbus/hooks.json", "{}")
    assert "hooks.json" in str(scene.gate.of_command("true", (), None, str(path)))
    scene.trust()
    assert scene.gate.of_command("true", (), None, str(path)) is None
    path.unlink()
    assert "hooks.json" in str(scene.gate.of_command("true", (), None, str(path)))


def test_content_counts_by_its_digest(scene: Scene) -> None:
    """The bytes that were read are compared, not what lies there a moment later."""
    path = str(scene.workspace / "plugins" / "p" / "plugin.wasm")
    assert scene.gate.of_content(path, hashlib.sha256(b"w").hexdigest()) is None
    assert "plugin.wasm" in str(scene.gate.of_content(path, hashlib.sha256(b"x").hexdigest()))


def test_without_a_record_that_counts_nothing_is_allowed(scene: Scene) -> None:
    """Neither where it was removed, nor where it is damaged; recorded anew, it counts at once."""
    questions = (
        scene.gate.of_loaded,
        lambda: scene.gate.of_command("true", (), None),
        lambda: scene.gate.of_content("x", ""),
    )
    Path(scene.store.path_of(str(scene.workspace))).write_text("{")
    assert all("not JSON" in str(question()) for question in questions)
    scene.store.remove(str(scene.workspace))
    assert {question() for question in questions} == {WITHDRAWN}
    scene.trust()
    assert scene.gate.of_loaded() is None


def test_a_hook_whose_script_was_changed_does_not_run(scene: Scene) -> None:
    """Its file may be reloaded meanwhile; the reason names the script."""
    hooks = WorkspaceHooks(
        str(scene.workspace), prx, "/nowhere", lambda _state: None, lambda _error: None, gate=scene.gate
    )
    (spec,) = hooks.load().specs
    assert isinstance(hooks.resolve(spec), Resolved)
    scene.write("a.sh", "else")
    found = hooks.resolve(spec)
    assert isinstance(found, Unresolved)
    assert (found.code, found.message) == ("trust_changed", "changed since prxbus trust: a.sh")


def test_a_plugin_that_was_changed_is_not_taken_in(scene: Scene) -> None:
    """The one before stays in force where its manifest changed, and a component is not handed out."""
    loaded = WorkspacePlugins(
        str(scene.workspace), lambda _update: None, lambda _error: None, gate=scene.gate
    )
    (plugin,) = loaded.load().plugins
    assert hasattr(loaded.read_component(plugin), "text")
    scene.write("plugins/p/plugin.wasm", "else")
    assert getattr(loaded.read_component(plugin), "code", None) == "trust_changed"
    scene.write("plugins/p/plugin.toml", MANIFEST.replace('"error"', '"*"'))
    after = loaded.load()
    assert [each.manifest for each in after.plugins] == [plugin.manifest]
    assert "trust_changed" in [said.code for said in after.news]
