"""A thousand edits of one hooks.json from eight clients: none lost, and the file whole at every instant."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from broker.testing import running_broker
from subscribers.dialects import prx
from tests.integration.http_scene import SECONDS, Served, served, write_hooks

CLIENTS = 8
EDITS = 125
BY_HAND = [{"command": "ls", "why": "a person wrote this"}]


@pytest.fixture
def api(runtime_dir: Path, tmp_path: Path) -> Iterator[Served]:
    """A service on a workspace with one hook that a person wrote."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    write_hooks(workspace, error=BY_HAND)
    with running_broker(runtime_dir) as bus, served(bus, tmp_path, workspace) as found:
        yield found


class Reader:
    """Reads the file again and again, as fast as it can, and keeps what was wrong."""

    def __init__(self, path: Path) -> None:
        self.looks = 0
        self.faults: list[str] = []
        self._path = path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._stop.is_set():
            parsed = prx.parse(self._path.read_bytes(), "hooks.json")
            self.looks += 1
            errors = [found.render() for found in parsed.diagnostics if found.severity == "error"]
            if parsed.refused or errors:
                self.faults.append("; ".join(errors))


def edit(address: str, letter: dict[str, str], number: int) -> tuple[dict[str, Any], int]:
    """Make EDITS edits as one client; what its hooks must be in the end, and how many edits were done."""
    kept: dict[str, Any] = {}
    mine: list[str] = []
    done = 0
    with httpx2.Client(base_url=address, headers=letter, timeout=SECONDS) as client:
        for step in range(EDITS):
            body = {"event": "tool_call", "action": {"command": "true", "args": [f"{number}", f"{step}"]}}
            kind = step % 5
            if kind == 0:
                answer = client.post("/api/hooks", json=body)
                assert answer.status_code == 201, answer.text
                kept[answer.json()["id"]] = answer.json()
                mine.append(answer.json()["id"])
            elif kind in (1, 2):
                answer = client.put(f"/api/hooks/{mine[-1]}", json=body)
                assert answer.status_code == 200, answer.text
                kept[mine[-1]] = answer.json()
            elif kind == 3:
                answer = client.patch(f"/api/hooks/{mine[-1]}/toggle")
                assert answer.status_code == 200, answer.text
                kept[mine[-1]] = {**kept[mine[-1]], "enabled": answer.json()["enabled"]}
            elif step % 2:
                answer = client.delete(f"/api/hooks/{mine[0]}")
                assert answer.status_code == 204, answer.text
                del kept[mine.pop(0)]
            else:
                before = client.get(f"/api/hooks/{mine[-1]}")
                headers = {"If-Match": before.headers["etag"]}
                answer = client.put(f"/api/hooks/{mine[-1]}", json=body, headers=headers)
                assert answer.status_code == 200, answer.text
                kept[mine[-1]] = answer.json()
            done += 1
    return kept, done


def without_times(hook: dict[str, Any]) -> dict[str, Any]:
    """A hook without the time of its last edit, which a toggle does not tell."""
    return {name: value for name, value in hook.items() if name != "updated_at"}


@pytest.mark.timeout(300)
def test_a_thousand_edits_of_eight_clients_are_all_there(api: Served, tmp_path: Path) -> None:
    """Each client finds its hooks as it left them, the person's is untouched, no reader saw a broken file."""
    path = tmp_path / "workspace" / "hooks.json"
    with Reader(path) as reader, ThreadPoolExecutor(CLIENTS) as clients:
        results = list(clients.map(lambda number: edit(api.address, api.letter, number), range(CLIENTS)))
    assert sum(done for _, done in results) == CLIENTS * EDITS == 1_000
    assert reader.faults == []
    assert reader.looks >= 100
    expected = {name: without_times(hook) for kept, _ in results for name, hook in kept.items()}
    first, *others = api.client.get("/api/hooks").json()["hooks"]
    assert {hook["id"]: without_times(hook) for hook in others} == expected
    assert (first["id"], first["action"]) == ("hook_01", {"command": "ls"})
    assert '"why": "a person wrote this"' in path.read_text()


def test_edits_of_two_services_and_a_person_are_all_there(
    runtime_dir: Path, tmp_path: Path, api: Served
) -> None:
    """Two processes edit the same file and a person saves between them: nobody's work is lost."""
    workspace = tmp_path / "workspace"
    (tmp_path / "other").mkdir()
    body = {"event": "tool_call", "action": {"command": "true"}}
    with served(str(runtime_dir), tmp_path / "other", workspace) as second:
        with ThreadPoolExecutor(2) as clients:
            made = list(
                clients.map(
                    lambda service: [
                        service.client.post("/api/hooks", json=body).json()["id"] for _ in range(20)
                    ],
                    (api, second),
                )
            )
        text = (workspace / "hooks.json").read_text()
        (workspace / ".editor").write_text(text.replace("a person wrote this", "a person wrote that"))
        (workspace / ".editor").rename(workspace / "hooks.json")
        last = second.client.post("/api/hooks", json=body).json()["id"]
        ids = [hook["id"] for hook in api.client.get("/api/hooks").json()["hooks"]]
    assert sorted(ids) == sorted(["hook_01", *made[0], *made[1], last])
    assert len(set(ids)) == 42
    assert "a person wrote that" in (workspace / "hooks.json").read_text()
