"""Every benchmark still starts and answers its question. Runs without the peers' servers; figures mean
nothing here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / "benchmarks" / "run.py"
OURS = ("prxbus", "raw_proxy", "raw_pubsub", "bare_envelope")
COMMAND = importlib.util.find_spec("subscribers.cli.verbs") is not None
QUESTIONS = (
    "throughput",
    "latency",
    "stopped_subscriber",
    "patterns",
    "publish_cost",
    "burst",
    pytest.param("startup", marks=pytest.mark.skipif(not COMMAND, reason="there is no command yet")),
    "memory",
    "restart",
    "children",
    "hook_latency",
    "hook_flood",
    "wasm_call",
    "codex",
)


def run(out: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """Run the benchmarks and return the record and the table."""
    chosen = [word for name in OURS for word in ("--contender", name)]
    ended = subprocess.run(
        [sys.executable, "-P", RUN, "--tiny", *chosen, "--out", out, *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    record: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return record, ended.stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_is_answered(question: str, tmp_path: Path) -> None:
    """A tiny run answers the question for every contender that needs no server of its own."""
    record, table = run(tmp_path / "record.json", "--only", question)
    cells = record["cells"]
    assert cells
    for cell in cells:
        assert cell["question"] == question
        reasons = set(cell["skipped"].values())
        assert reasons <= (set() if os.environ.get("CI") else {"not installed"})  # CI installs every peer
        assert cell["runs"]
        for runs in cell["runs"].values():
            assert [sorted(figures) for figures in runs] == [sorted(runs[0])]
            assert all(figures.get("lost", 0) == 0 for figures in runs)
        for goal in cell["goals"]:
            assert goal["of"] in cell["runs"]
        assert cell["title"] in table or question == "throughput"


def test_the_table_of_an_earlier_run_can_be_printed_again(tmp_path: Path) -> None:
    """report.py prints the same table from the JSON file as the run printed."""
    out = tmp_path / "record.json"
    _, table = run(out, "--only", "latency")
    again = subprocess.run(
        [sys.executable, "-P", ROOT / "benchmarks" / "report.py", out],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert again.stdout == table


def test_a_file_that_is_no_record_is_a_usage_error(tmp_path: Path) -> None:
    """report.py says which file it could not read."""
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-P", ROOT / "benchmarks" / "report.py", wrong],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 2
    assert "wrong.json is not a benchmark record" in ended.stderr
