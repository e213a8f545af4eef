"""Logging: one record a line, and never in the way."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from broker import logs


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Where the records of a test go."""
    stream = io.StringIO()
    logs.configure("info", stream=stream)
    yield stream
    logs.configure()


def test_a_record_is_one_json_object(written: io.StringIO) -> None:
    """Away from a terminal each record is a line of JSON with time, level, part, text and fields."""
    log = logs.get_logger("part", fixed=1).bind(more=2)
    log.info("something happened", path=Path("/x"), data=b"\xff", number={1: 2})
    log.error("and failed")
    first, second = (orjson.loads(line) for line in written.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "event": "something happened",
        "level": "info",
        "logger": "part",
        "fixed": 1,
        "more": 2,
        "path": "PosixPath('/x')",
        "data": "b'\\xff'",
        "number": {"1": 2},
    }
    assert second["level"] == "error"


@pytest.mark.parametrize("level,expected", [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_records_below_the_level_are_not_written(level: str, expected: int) -> None:
    """Only records of the level that is set, or heavier ones, are written."""
    stream = io.StringIO()
    logs.configure(level, stream=stream)
    log = logs.get_logger("part")
    for write in (log.debug, log.info, log.warning, log.error):
        write("text")
    logs.configure()
    assert len(stream.getvalue().splitlines()) == expected


def test_an_unknown_level_is_refused() -> None:
    """Another level is an error that lists those there are."""
    with pytest.raises(ValueError, match="debug, info, warning, error"):
        logs.configure("loud")


@pytest.mark.parametrize("json", [True, False])
def test_an_exception_has_its_traceback(json: bool) -> None:
    """In both forms the traceback of the exception at hand is part of the record."""
    stream = io.StringIO()
    logs.configure(json=json, stream=stream)
    try:
        raise KeyError("lost")
    except KeyError:
        logs.get_logger("part").exception("failed")
    logs.configure()
    assert "Traceback" in stream.getvalue()
    assert "lost" in stream.getvalue()


def test_a_reader_gets_plain_text() -> None:
    """The readable form is no JSON, holds text and fields, and has no colours away from a terminal."""
    stream = io.StringIO()
    logs.configure(json=False, stream=stream)
    logs.get_logger("part").warning("look", at="this")
    logs.configure()
    assert "look" in stream.getvalue()
    assert "at=this" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_a_broken_stream_stops_nobody() -> None:
    """A record that cannot be written is lost without an error."""
    stream = io.StringIO()
    logs.configure(stream=stream)
    logs.warm_up()
    stream.close()
    logs.get_logger("part").error("nobody hears")
    logs.configure()


def test_nothing_heavy_is_imported_before_the_first_record() -> None:
    """A process that writes nothing does not pay for the machinery."""
    code = (
        "import sys; from broker import logs; logs.configure('warning'); log = logs.get_logger('x');"
        "log.info('no'); assert 'structlog' not in sys.modules;"
        "log.error('yes'); assert 'structlog' in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert orjson.loads(run.stderr)["event"] == "yes"
