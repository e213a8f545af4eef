"""The wire document says what the code does: its examples byte for byte, its tables row for row."""

import json
import re
from pathlib import Path
from typing import Any

import msgpack
import pytest

import broker.protocol
from broker.client.core.asking import pack_answers, read_heard, redacted
from broker.control.bounds import HEARD_BYTES
from broker.control.peers import Peer
from broker.protocol import limits
from broker.protocol.batches import decode_batch, encode_batch
from broker.protocol.beacons import Beacon, decode_beacon, encode_beacons
from broker.protocol.control import DECIDER_LANE, FIELDS, KEY_BYTES, decode_message, encode_message
from broker.protocol.decisions import FAILURES, SILENCES, VERDICTS, Answer
from broker.protocol.envelope import PUBLISHER_BYTES, VERSION, Claim, encode_event, publisher_started
from broker.protocol.events import decode_event
from broker.protocol.framing import Splitter, framed
from broker.protocol.topics import (
    BATCH_MARK,
    BEACON_PREFIX,
    CANARY_KEY,
    DEPTH_BYTES,
    INBOX_PREFIX,
    WELCOME,
    Pattern,
)

DOCUMENT = (Path(broker.protocol.__file__).parent / "WIRE.md").read_text()

PUBLISHER = bytes.fromhex("18867251edfa00000123456789abcdef")
BEGAN = 1_767_225_600_000_000_000
TOOL_CALL = encode_event(
    "prx.lifecycle.tool_call",
    PUBLISHER,
    1,
    BEGAN + 1_500_000_000,
    b'{"tool":"Bash","success":true}',
    session_id="s1",
    source="my-agent/1.0",
)
TURN_COMPLETE = encode_event(
    "prx.lifecycle.turn_complete",
    PUBLISHER,
    1,
    BEGAN + 1_600_000_000,
    b"{}",
    session_id="s1",
    source="my-agent/1.0",
)
TOOL_RESULT = encode_event(
    "prx.lifecycle.tool_result",
    PUBLISHER,
    1,
    BEGAN + 2_000_000_000,
    Claim(70_000, bytes.fromhex("00112233445566778899aabbccddeeff" * 2), "0f1e2d3c", b'{"output":"'),
    source="my-agent/1.0",
    depth=1,
)


def example(name: str) -> bytes:
    """The bytes of an annotated example: hexadecimal up to the ';' of each line."""
    (text,) = re.findall(rf"```hex {name}\n(.*?)```", DOCUMENT, re.DOTALL)
    return bytes.fromhex("".join(line.partition(";")[0] for line in text.splitlines()))


def table(heading: str) -> list[list[str]]:
    """The rows, as cells, of the table whose first column is called ``heading``."""
    (text,) = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", DOCUMENT, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_the_event_is_what_the_code_writes() -> None:
    """The annotated event is the encoder's output, byte for byte, and reads as annotated."""
    assert example("event") == TOOL_CALL
    event = decode_event(example("event"))
    assert event.time.isoformat() == "2026-01-01T00:00:01.500000+00:00"
    assert publisher_started(bytes.fromhex(event.publisher)) == BEGAN
    assert event.payload == {"tool": "Bash", "success": True}


def test_the_claim_is_what_the_code_writes() -> None:
    """The annotated event with a claim is the encoder's output, byte for byte."""
    assert example("claim") == TOOL_RESULT


def test_the_batch_is_what_the_code_writes() -> None:
    """The annotated batch is the encoder's output for two events, byte for byte."""
    assert example("batch") == encode_batch([decode_event(TOOL_CALL), decode_event(TURN_COMPLETE)])
    assert [event.topic for event in decode_batch(example("batch"))] == [
        "prx.lifecycle.tool_call",
        "prx.lifecycle.turn_complete",
    ]


def test_the_beacon_is_what_the_code_writes() -> None:
    """The annotated beacon is the encoder's output, byte for byte."""
    beacon = Beacon(PUBLISHER, "my-agent/1.0", False, {"prx.lifecycle.tool_call": (BEGAN + 1_500_000_000, 1)})
    assert [example("beacon")] == list(encode_beacons(beacon))


def test_the_lane_is_what_the_code_reads() -> None:
    """The annotated stream is the framing of a name and a message, byte for byte."""
    name, message = Splitter().feed(example("lane"))
    assert (len(name), name[:1], message) == (KEY_BYTES + 3, b"\1", encode_message("cancel", 7))
    assert framed([name, message]) == example("lane")


def control_examples() -> list[list[Any]]:
    """Every control message of the document, its h'..' made bytes."""

    def value(item: Any) -> Any:
        if isinstance(item, str) and item.startswith("h'"):
            return bytes.fromhex(item[2:-1])
        if isinstance(item, list):
            return [value(part) for part in item]
        return {name: value(part) for name, part in item.items()} if isinstance(item, dict) else item

    texts = re.findall(r"```control\n(.*?)```", DOCUMENT, re.DOTALL)
    lines = [line for text in texts for line in text.splitlines()]
    return [value(json.loads(re.sub(r"(h'[0-9a-f]*')", r'"\1"', line))) for line in lines]


OPTIONAL = {"hello": {"priority", "failure"}}
"""Fields that a message may also have."""


def test_there_is_an_example_of_each_control_message() -> None:
    """Every kind is shown, and each example has the documented fields and no other."""
    shown = [(kind, set(body)) for _, kind, _, body in control_examples()]
    assert {kind for kind, _ in shown} == set(FIELDS)
    for kind, fields in shown:
        assert set(FIELDS[kind]) <= fields <= set(FIELDS[kind]) | OPTIONAL.get(kind, set()), kind
    hellos = [fields for kind, fields in shown if kind == "hello"]
    assert {"priority", "failure"} <= set.union(*hellos)


@pytest.mark.parametrize("fields", control_examples(), ids=lambda fields: fields[1])
def test_a_control_example_is_a_message(fields: list[Any]) -> None:
    """The code reads each example as it stands, and the frames inside are events or beacons."""
    message = decode_message(bytes(msgpack.packb(fields)))
    assert [VERSION, *message] == fields
    if message.kind == "beacon":
        assert decode_beacon(message.body["frame"]).closing
    elif message.kind in ("publish", "ask", "asked"):
        assert decode_event(message.body["frame"]).topic == "prx"
    elif message.kind == "answer":
        assert read_heard([["d", "open", None, 0, message.body["answers"]]], no_spool)[0].answers == (
            Answer("guards.py", "deny", "not here"),
        )
    elif message.kind == "answered":
        answered, late = read_heard(message.body["heard"], no_spool)
        assert (answered.answers[0].handler, answered.silence) == ("guards.py", None)
        assert (late.decider, late.silence) == ("slow", "timeout")
    elif message.kind == "hello":
        Peer(message.body, None, 0.0)
    for frame in message.body.get("frames", ()):
        assert decode_event(frame).topic == "prx"


def no_spool(claim: Claim) -> bytes:
    """No example has a claim."""
    raise AssertionError(claim)


def test_the_answers_are_what_the_code_writes() -> None:
    """The annotated answers are the packer's output for two answers, byte for byte."""
    answers = (
        Answer("guards.py", "deny", "not here"),
        Answer("hint.py", contexts=("use make",), updated_input={"command": "make"}, output=None, priority=5),
    )
    assert example("answers") == pack_answers(answers)
    assert read_heard([["d", "open", None, 0, example("answers")]], no_spool)[0].answers == answers


def test_the_parts_of_an_answer_are_the_code_s() -> None:
    """The table has the fields of an answer in their order; words for verdicts and silence are ours."""
    assert [row[0].replace(" ", "_") for row in table("Part")] == list(Answer._fields)
    for word in (*VERDICTS, *SILENCES, *FAILURES):
        assert f"`{word}`" in DOCUMENT


def test_the_copy_of_a_tool_s_result_is_the_code_s() -> None:
    """The fields whose values stay are those that the document names."""
    section = DOCUMENT.split("**The copy.**")[1].split("the\nvalues")[0]
    kept = set(re.findall(r"`([a-z_]+)`", section))
    given = dict.fromkeys([*kept, "output"], "x")
    copy = json.loads(redacted(given))
    assert {name for name in copy if copy[name] == "x"} == kept
    assert set(copy) - kept == {"output_bytes", "output_sha256"}


def test_the_lanes_are_the_code_s() -> None:
    """Names that mean something stand in the document as in the code, and so does an ask's room."""
    rows = [row[0] for row in table("Name")]
    assert rows == [f"{KEY_BYTES} bytes", f"those and `{DECIDER_LANE.hex()}`", "those and anything else"]
    assert f"at most {HEARD_BYTES:,} bytes" in DOCUMENT


def test_the_table_of_control_messages_is_the_code_s() -> None:
    """Each kind has its fields, their order and their types in the table, and the side that sends it."""
    names = {
        str: "str",
        int: "int",
        bool: "bool",
        bytes: "bin",
        list: "array",
        dict: "map",
        type(None): "nil",
    }

    def cell(kind: str) -> str:
        return ", ".join(
            f"`{field}`: " + " or ".join(names[t] for t in (types if isinstance(types, tuple) else (types,)))
            for field, types in FIELDS[kind].items()
        )

    assert [(row[0], row[3]) for row in table("Kind")] == [(f"`{kind}`", cell(kind)) for kind in FIELDS]
    assert {row[1] for row in table("Kind")} == {"client", "broker"}


def test_the_table_of_limits_is_the_code_s() -> None:
    """Each limit that the document names has the value that the code enforces."""
    rows = table("Limit")
    assert len(rows) > 15
    for name, value in rows:
        (constant,) = re.findall(r"`(\w+)`", name)
        assert int(value.replace(",", "")) == getattr(limits, constant), constant


def test_the_table_of_prefixes_is_the_code_s() -> None:
    """Each pattern of the table has the prefix and the channel that the code computes."""

    def prefix(cell: str) -> bytes:
        return cell.replace("`", "").replace(" NUL", "\0").replace("(empty)", "").encode()

    rows = table("Pattern")
    assert len(rows) > 5
    for pattern, events, channels in rows:
        compiled = Pattern(pattern.strip("`"))
        assert (prefix(events), prefix(channels)) == (compiled.prefix, compiled.channel)


def test_the_keys_are_the_code_s() -> None:
    """Keys that are not topics, the depths and the size of an id stand in the document as in the code."""
    keys = " ".join(row[0] for row in table("Key"))
    for key in (BATCH_MARK, b"0" + BEACON_PREFIX, b"0" + INBOX_PREFIX, CANARY_KEY.rstrip(b"\0")):
        assert f"`{key.decode()}`" in keys
    assert f"`{WELCOME.decode()}`" in DOCUMENT
    assert (DEPTH_BYTES[0], DEPTH_BYTES[-1]) == (b"0", b"7")
    assert f"bin, {PUBLISHER_BYTES} bytes" in DOCUMENT


def test_the_reasons_are_the_code_s() -> None:
    """The document lists every reason for which the protocol refuses bytes, and no other."""
    sources = Path(broker.protocol.__file__).parent.glob("*.py")
    raised = {
        reason
        for source in sources
        for reason in re.findall(r"(?:DecodeError|super\(\).__init__)\(\s*\"(\w+)\",", source.read_text())
    }
    assert {row[0].strip("`") for row in table("Reason")} == raised


def test_the_codes_are_the_code_s() -> None:
    """Each code of an error message is one that the code gives."""
    sources = [source.read_text() for source in Path(broker.protocol.__file__).parents[1].rglob("*.py")]
    given = {code for source in sources for code in re.findall(r'^ +code = "(\w+)"$', source, re.MULTILINE)}
    assert {row[0].strip("`") for row in table("Code")} <= given


def test_every_link_leads_somewhere() -> None:
    """Each link inside the document names the anchor of one of its headings."""
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^## (.+)$", DOCUMENT, re.MULTILINE)
    }
    links = re.findall(r"\]\(#([^)]+)\)", DOCUMENT)
    assert len(links) > 12
    assert set(links) <= anchors
