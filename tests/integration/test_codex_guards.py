"""Guards that a shell really runs: one that ran blocks; one that is not there, or unreadable, does not."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import closing
from pathlib import Path

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CODEX
from subscribers.hooks.outcome import Outcome
from subscribers.runner.codex_invocation import Scene
from subscribers.runner.codex_runs import Runs
from subscribers.runner.codex_selection import Chosen
from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.reaper import Reaper
from subscribers.sources.codex_layers import Layer

GUARD = "echo 'not on my watch' >&2; exit 2\n"

BLOCKS = (
    "D=hooks; sh $D/g.sh",
    'DIR=$(git rev-parse --show-toplevel); sh "$DIR/sub/g.sh"',
    "test -f optional.sh && sh optional.sh; sh sub/g.sh",
    "pushd sub >/dev/null; sh g.sh",
    "H=sub; cd $H && sh g.sh",
    "PATH=$PWD/bin:$PATH; sh guard.sh",
    "export D=hooks && sh $D/g.sh",
    "sh g.{sh,x}",
    "true || sh nothere.sh; sh sub/g.sh",
    "cp sub/g.sh made.sh; sh made.sh; S=$?; rm made.sh; exit $S",
    "sh itself.sh",
    "python3 x.py || exit 2",
    "sh wrapper.sh",
    "sh liar.sh",
    "sh nothere.sh; exit 2",
    "sh inner.sh",
    ". ./unreadable.sh",
    "sh sub/g.sh\nif; then",
)
NEVER_RAN = {
    "/bin/sh ./nothere.sh": "is not there",
    'dash "$HOME/nothere.sh" --strict': "is not there",
    "python3 nothere.py": "is not there",
    "perl nothere.pl": "is not there",
    "sh sub/g.sh; echo 'unbalanced": "its command cannot be read by ",
    "if; then sh sub/g.sh": "its command cannot be read by ",
}


def furnish(folder: Path) -> None:
    """The scripts that the commands speak of."""
    files = {
        "hooks/g.sh": GUARD,
        "sub/g.sh": GUARD,
        "g.sh": GUARD,
        "itself.sh": "rm itself.sh; " + GUARD,
        "bin/sh": "#!/bin/sh\n" + GUARD,
        "wrapper.sh": "sh helper.sh; exit 2\n",
        "liar.sh": "echo 'sh: 0: cannot open liar.sh: No such file' >&2; exit 2\n",
        "inner.sh": f'{GUARD.partition(";")[0]}; /bin/sh -c "if; then"\n',
        "unreadable.sh": "if; then\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "bin/sh").chmod(0o755)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def run(runs: Runs, folder: Path, command: str, shell: str) -> Outcome:
    """Run a command as a handler of the Codex family."""
    handler = {"type": "command", "command": command}
    text = json.dumps({"hooks": {"PreToolUse": [{"hooks": [handler]}]}}).encode()
    (found,) = read_document(text, str(folder / "hooks.json"), CODEX).handlers
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "SHELL": shell}
    scene = Scene(env, str(folder), str(folder), "/run", "id", 0)
    layer = Layer("x", str(folder / "hooks.json"), "codex", "user")
    return runs.run(Chosen(found, CODEX, layer, b"{}", None), scene, 30.0)


def test_a_guard_that_ran_blocks_however_it_was_called(tmp_path: Path) -> None:
    """Exit code 2 is a block wherever a shell had anything to work out, with either shell."""
    found: dict[str, object] = {}
    with Reaper() as reaper, closing(Deadlines()) as deadlines:
        runs = Runs(reaper, deadlines)
        furnish(tmp_path)
        for command in BLOCKS:
            needs_bash = command.startswith(("pushd", "sh g.{"))
            outcome = run(runs, tmp_path, command, "/bin/bash" if needs_bash else "/bin/sh")
            found[command] = outcome.exit_code if outcome.stderr.total else "says nothing"
    assert found == dict.fromkeys(BLOCKS, 2)


def test_what_never_was_there_does_not_block(tmp_path: Path) -> None:
    """A script that is all of a command and missing, or a command that no shell can read, is no block."""
    with Reaper() as reaper, closing(Deadlines()) as deadlines:
        runs = Runs(reaper, deadlines)
        furnish(tmp_path)
        for command, why in NEVER_RAN.items():
            outcome = run(runs, tmp_path, command, "/bin/sh")
            assert (command, outcome.status, outcome.exit_code) == (command, "not_started", None)
            assert why in str(outcome.reason)
        bash = run(runs, tmp_path, "sh sub/g.sh; echo 'unbalanced", "/bin/bash")
        assert bash.status == "not_started"
