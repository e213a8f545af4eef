"""The calls of the PRX page, from the page itself: requests sent as they stand, answers as it shows them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from tests.conformance.prx import page
from tests.subscribers.http.scene import LETTER, scene

_CALL = re.compile(r"^(GET|POST|PUT|DELETE|PATCH) (/api/\S+)$", re.MULTILINE)


def calls(text: str) -> list[tuple[str, str, list[bytes]]]:
    """Method, path and the JSON documents that follow, of each call of the page."""
    found = list(_CALL.finditer(text))
    ends = [match.start() for match in found[1:]] + [text.index("LD_PRELOAD", found[-1].end())]
    return [
        (match[1], match[2], documents(text[match.end() : end]))
        for match, end in zip(found, ends, strict=True)
    ]


def documents(text: str) -> list[bytes]:
    """The JSON objects in a text, as they are written."""
    starts = (match.start() for match in re.finditer(r"^\{", text, re.MULTILINE))
    return [text[start : json.JSONDecoder().raw_decode(text, start)[1]].encode() for start in starts]


def moment(written: str) -> float:
    """Seconds since the epoch of a time on the page."""
    return datetime.fromisoformat(written).timestamp()


def compact(document: bytes) -> bytes:
    """The same document, the order of its keys kept, without blanks."""
    return orjson.dumps(orjson.loads(document))


def test_the_page_s_calls_are_answered_as_it_says(pages: Path, tmp_path: Path) -> None:
    """Sent in its order, with its bytes: ids, bodies, codes, times and the order of fields are the page's."""
    listing, creating, updating, deleting, toggling = calls(page.find(pages))
    (listed,) = listing[2]
    creation, created = creating[2]
    (update,) = updating[2]
    (toggled,) = toggling[2]
    first: dict[str, Any] = orjson.loads(listed)["hooks"][0]
    headers = {**LETTER, "Content-Type": "application/json"}
    with scene(tmp_path) as api:
        api.now = moment(first["created_at"])
        api.client.post("/api/hooks", json={name: first[name] for name in ("event", "action", "enabled")})
        answer = api.client.request(listing[0], listing[1])
        assert (answer.status_code, answer.content) == (200, compact(listed))

        api.now = moment(orjson.loads(created)["created_at"])
        answer = api.client.request(creating[0], creating[1], content=creation, headers=headers)
        assert (answer.status_code, answer.content) == (201, compact(created))

        api.now += 60
        answer = api.client.request(updating[0], updating[1], content=update, headers=headers)
        assert answer.status_code == 200
        assert answer.json().items() >= orjson.loads(update).items()
        assert answer.json()["created_at"] < answer.json()["updated_at"]
        assert api.client.get(updating[1]).json() == answer.json()

        answer = api.client.request(deleting[0], deleting[1])
        assert (answer.status_code, answer.content) == (204, b"")
        answer = api.client.request(toggling[0], toggling[1])
        assert (answer.status_code, answer.content) == (200, compact(toggled))
        assert api.client.get(listing[1]).json()["hooks"] == [
            {**first, "enabled": False, "updated_at": answer_time(api.now)}
        ]


def answer_time(seconds: float) -> str:
    """A time as the page writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
