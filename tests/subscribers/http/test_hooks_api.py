"""The calls of the PRX page and what they refuse, against the application itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from subscribers.dialects import prx_rules
from tests.subscribers.http.scene import NOW, TODAY, Scene, scene

EVENT: dict[str, Any] = {
    "event": "llm_response",
    "action": {"command": "python3", "args": ["/opt/track.py"], "stdin_json": True, "timeout_ms": 3000},
    "enabled": True,
}
TIMES = {"created_at": TODAY, "updated_at": TODAY}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Scene]:
    """The application over an empty workspace."""
    with scene(tmp_path) as found:
        yield found


def test_an_empty_workspace_has_no_hooks(api: Scene) -> None:
    """The list is there, and no file is made."""
    answer = api.client.get("/api/hooks")
    assert (answer.status_code, answer.content) == (200, b'{"hooks":[]}')
    assert not (api.workspace / "hooks.json").exists()


def test_the_five_calls_of_the_page(api: Scene) -> None:
    """Bodies, ids and codes are the page's, byte for byte in the order of its fields."""
    made = api.client.post("/api/hooks", json=EVENT)
    assert made.status_code == 201
    assert made.headers["location"] == "/api/hooks/hook_01"
    assert made.content == orjson.dumps({"id": "hook_01", **EVENT, **TIMES})
    assert api.client.get("/api/hooks").content == orjson.dumps({"hooks": [made.json()]})
    body = {**EVENT, "action": {**EVENT["action"], "args": ["/opt/track_v2.py"], "timeout_ms": 5000}}
    changed = api.client.put("/api/hooks/hook_01", json=body)
    assert (changed.status_code, changed.content) == (200, orjson.dumps({"id": "hook_01", **body, **TIMES}))
    toggled = api.client.patch("/api/hooks/hook_01/toggle")
    assert (toggled.status_code, toggled.content) == (200, b'{"id":"hook_01","enabled":false}')
    assert api.client.patch("/api/hooks/hook_01/toggle").json() == {"id": "hook_01", "enabled": True}
    gone = api.client.delete("/api/hooks/hook_01")
    assert (gone.status_code, gone.content) == (204, b"")
    assert api.client.get("/api/hooks").json() == {"hooks": []}


def test_one_hook_can_be_read(api: Scene) -> None:
    """By its id; what was read can be sent back as it is."""
    api.client.post("/api/hooks", json=EVENT)
    found = api.client.get("/api/hooks/hook_01")
    assert found.json() == {"id": "hook_01", **EVENT, **TIMES}
    assert api.client.put("/api/hooks/hook_01", json=found.json()).json() == found.json()


def test_reading_leaves_a_hand_written_file_alone(api: Scene) -> None:
    """It is listed with ids, and its bytes stay; nothing is filled in, unknown keys are not shown."""
    text = api.write({"hooks": {"tool-call": [{"command": "ls", "why": "x", "cwd": None}]}})
    (hook,) = api.client.get("/api/hooks").json()["hooks"]
    assert (hook["id"], hook["event"], hook["action"]) == ("hook_01", "tool_call", {"command": "ls"})
    assert api.client.get("/api/hooks/hook_01").status_code == 200
    assert (api.workspace / "hooks.json").read_text() == text
    api.client.patch("/api/hooks/hook_01/toggle")
    (action,) = api.read()["hooks"]["tool-call"]
    assert list(action)[:3] == ["command", "why", "cwd"]
    assert (action["id"], action["enabled"]) == ("hook_01", False)


@pytest.mark.parametrize(
    "body,code,field",
    [
        ({}, "wrong_shape", "event"),
        ({"event": "error"}, "wrong_shape", "action"),
        ({"event": "error", "action": 5}, "wrong_shape", "action"),
        ({"event": "error", "action": {"command": "a"}, "enabled": 1}, "wrong_shape", "enabled"),
        ({"event": "error", "action": {"command": "a"}, "extra": 1}, "wrong_shape", "extra"),
        ([], "wrong_shape", "body"),
        ({"event": "eror", "action": {"command": "a"}}, "hook_refused", "event"),
        ({"event": "error", "action": {}}, "hook_refused", "action"),
        ({"event": "error", "action": {"command": "a; b"}}, "hook_refused", "action.command"),
        (
            {"event": "error", "action": {"command": "a", "timeout_ms": 0}},
            "hook_refused",
            "action.timeout_ms",
        ),
        ({"event": "error", "action": {"command": "a", "timeout": 1}}, "hook_refused", "action.timeout"),
        ({"event": "error", "action": {"command": "a", "cwd": "../b"}}, "hook_refused", "action.cwd"),
        (
            {"event": "error", "action": {"command": "a", "env": {"PATH": "b"}}},
            "hook_refused",
            "action.env.PATH",
        ),
        ({"event": "error", "action": {"command": "a", "args": ["\0"]}}, "hook_refused", "action.args[0]"),
    ],
)
def test_a_refusal_names_the_field(api: Scene, body: Any, code: str, field: str) -> None:
    """422, by whatever call, and the file is what it was."""
    text = api.write({"hooks": {"error": [{"command": "ls"}]}})
    for answer in (api.client.post("/api/hooks", json=body), api.client.put("/api/hooks/hook_01", json=body)):
        assert api.problem(answer) == (422, code, field)
    assert (api.workspace / "hooks.json").read_text() == text


def test_every_fault_of_a_body_is_told(api: Scene) -> None:
    """With its code and what to do."""
    body = {"event": "error", "action": {"command": "", "timeuot_ms": 1, "stdin_json": "yes"}}
    errors = api.client.post("/api/hooks", json=body).json()["errors"]
    assert [(error["field"], error["code"], error["hint"]) for error in errors] == [
        ("action.timeuot_ms", "unknown_key", "did you mean timeout_ms?"),
        ("action.command", "empty_command", "name an executable"),
        ("action.stdin_json", "wrong_type", "write true or false"),
    ]


@pytest.mark.parametrize(
    "content,words",
    [
        (b'{"event": ', "line 1, column"),
        (b'{\n"event": NaN}', "line 2, column"),
        (b'{"event": "\\ud800"}', "line 1, column"),
        (b"\xff", "the body is not JSON"),
        (b"[" * 201 + b"]" * 201, "nested more than 200 levels deep"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(api: Scene, content: bytes, words: str) -> None:
    """400; also for what only some parsers take."""
    headers = {"content-type": "application/json"}
    answer = api.client.post("/api/hooks", content=content, headers=headers)
    assert api.problem(answer) == (400, "not_json", "body")
    assert words in answer.json()["detail"]


def nested(levels: int) -> str:
    """An array in an array, so many of them."""
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [250, 300, 1_000])
@pytest.mark.parametrize(
    "method,path,body",
    [
        ("POST", "/api/hooks", '{"event": "error", "action": {"command": "ls", "args": %s}}'),
        ("PUT", "/api/hooks", '{"hooks": {"error": [{"command": "ls", "args": %s}]}}'),
        ("PUT", "/api/hooks/hook_01", '{"event": "error", "action": {"args": %s}}'),
        ("POST", "/api/hooks/hook_01/test", '{"payload": {"a": %s}}'),
        ("POST", "/api/events", '{"topic": "prx.x", "payload": {"a": %s}}'),
    ],
)
def test_a_body_that_is_nested_too_deep_is_refused(
    api: Scene, method: str, path: str, body: str, levels: int
) -> None:
    """Whichever call it is sent to: it could not be written again."""
    api.client.post("/api/hooks", json=EVENT)
    headers = {"content-type": "application/json"}
    answer = api.client.request(method, path, content=body % nested(levels), headers=headers)
    assert api.problem(answer) == (400, "not_json", "body")


def test_what_is_less_deep_is_judged_as_ever(api: Scene) -> None:
    """A payload goes to the hook, an argument that is no string is named."""
    deep = orjson.loads(nested(150))
    api.client.post("/api/hooks", json=EVENT)
    answer = api.client.post("/api/hooks/hook_01/test", json={"payload": {"a": deep}})
    assert answer.json()["envelope"]["payload"] == {"a": deep}
    body = {"event": "error", "action": {"command": "ls", "args": deep}}
    refused = api.client.post("/api/hooks", json=body)
    assert api.problem(refused) == (422, "hook_refused", "action.args[0]")


def test_a_file_that_is_nested_too_deep_is_told(api: Scene) -> None:
    """409, as for any file that cannot be edited."""
    api.write('{"hooks": {"error": [{"command": "ls", "mine": ' + nested(300) + "}]}}")
    for answer in (api.client.get("/api/hooks"), api.client.post("/api/hooks", json=EVENT)):
        assert api.problem(answer) == (409, "hooks_file_broken", "hooks.json")
        assert answer.json()["errors"][0]["field"] == "hooks.error[0]"


def test_what_is_not_there_is_404(api: Scene) -> None:
    """For each call on one hook."""
    answers = (
        api.client.get("/api/hooks/hook_09"),
        api.client.put("/api/hooks/hook_09", json=EVENT),
        api.client.delete("/api/hooks/hook_09"),
        api.client.patch("/api/hooks/hook_09/toggle"),
        api.client.post("/api/hooks/hook_09/test"),
    )
    assert [api.problem(answer) for answer in answers] == [(404, "no_such_hook", "id")] * 5


def test_a_body_of_another_hook_is_refused(api: Scene) -> None:
    """An id in the body must be that of the path."""
    api.client.post("/api/hooks", json=EVENT)
    answer = api.client.put("/api/hooks/hook_01", json={**EVENT, "id": "hook_02"})
    assert api.problem(answer) == (422, "other_id", "id")


def test_entity_tags_guard_and_spare(api: Scene) -> None:
    """If-Match with an old tag is 412 and changes nothing; If-None-Match with the present one is 304."""
    made = api.client.post("/api/hooks", json=EVENT)
    whole = api.client.get("/api/hooks")
    for path, tag in (("/api/hooks/hook_01", made.headers["etag"]), ("/api/hooks", whole.headers["etag"])):
        spared = api.client.get(path, headers={"If-None-Match": f'"other", {tag}'})
        assert (spared.status_code, spared.content, spared.headers["etag"]) == (304, b"", tag)
        assert api.client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    old = {"If-Match": made.headers["etag"]}
    assert api.client.patch("/api/hooks/hook_01/toggle", headers=old).status_code == 200
    for answer in (
        api.client.patch("/api/hooks/hook_01/toggle", headers=old),
        api.client.put("/api/hooks/hook_01", json=EVENT, headers=old),
        api.client.delete("/api/hooks/hook_01", headers=old),
        api.client.post("/api/hooks", json=EVENT, headers={"If-Match": whole.headers["etag"]}),
        api.client.put("/api/hooks", json={}, headers={"If-Match": f"W/{whole.headers['etag']}"}),
    ):
        assert api.problem(answer) == (412, "stale", "If-Match")
    assert api.client.delete("/api/hooks/hook_01", headers={"If-Match": "*"}).status_code == 204


def test_a_broken_file_is_told_and_repaired(api: Scene) -> None:
    """409 with line and column on every call, until a whole file is put in its place."""
    api.write('{\n  "hooks": {,\n}')
    for answer in (api.client.get("/api/hooks"), api.client.post("/api/hooks", json=EVENT)):
        assert api.problem(answer) == (409, "hooks_file_broken", "hooks.json")
        assert (answer.json()["errors"][0]["line"], answer.json()["errors"][0]["column"]) == (2, 13)
    refused = api.client.put("/api/hooks", json={"hooks": {"error": [{"command": "a|b"}]}})
    assert api.problem(refused) == (422, "hook_refused", "hooks.error[0].command")
    fixed = api.client.put("/api/hooks", json={"hooks": {"error": [{"command": "ls"}]}, "mine": 1})
    assert fixed.status_code == 200
    assert fixed.json()["broken_copy"] == str(api.workspace / "hooks.json.broken")
    assert [hook["id"] for hook in fixed.json()["hooks"]] == ["hook_01"]
    assert api.read()["mine"] == 1
    assert api.client.get("/api/hooks").headers["etag"] == fixed.headers["etag"]


@pytest.mark.parametrize("text", ["{", " " * (prx_rules.MAX_FILE_BYTES + 1)])
def test_a_repair_can_say_what_it_repairs(api: Scene, text: str) -> None:
    """The 409 brings the tag of the broken file, a too large one too; another file is not replaced by it."""
    api.write(text)
    answer = api.client.get("/api/hooks")
    assert api.problem(answer) == (409, "hooks_file_broken", "hooks.json")
    assert "PUT /api/hooks" in answer.json()["hint"]
    tag = {"if-match": answer.headers["etag"]}
    api.write("{,")
    assert api.client.put("/api/hooks", json={}, headers=tag).status_code == 412
    api.write(text)
    assert api.client.put("/api/hooks", json={}, headers=tag).status_code == 200


def test_what_is_known_is_compared_weakly(api: Scene) -> None:
    """A cache on the way may have made the tag a weak one: 304 all the same, yet no edit is let through."""
    hook = api.client.post("/api/hooks", json=EVENT)
    for path in ("/api/hooks", "/api/hooks/hook_01"):
        weak = f'"x", W/{api.client.get(path).headers["etag"]}'
        assert api.client.get(path, headers={"if-none-match": weak}).status_code == 304
    edit = api.client.patch("/api/hooks/hook_01/toggle", headers={"if-match": f"W/{hook.headers['etag']}"})
    assert api.problem(edit) == (412, "stale", "If-Match")


def test_an_action_that_would_not_run_is_listed_and_repaired(api: Scene) -> None:
    """What the runtime leaves out is shown as it stands; a good body makes it run."""
    api.write({"hooks": {"error": [{"command": "a|b", "timeout_ms": "5"}], "eror": [{"command": "ls"}]}})
    first, second = api.client.get("/api/hooks").json()["hooks"]
    assert first["action"] == {"command": "a|b", "timeout_ms": "5"}
    assert api.problem(api.client.post("/api/hooks/hook_01/test")) == (422, "hook_refused", "action.command")
    body = {"event": "error", "action": {"command": "ls"}}
    for hook in (first, second):
        assert api.client.put(f"/api/hooks/{hook['id']}", json=body).status_code == 200
    assert [action["command"] for action in api.read()["hooks"]["error"]] == ["ls", "ls"]


def test_a_full_file_takes_no_more(api: Scene) -> None:
    """The 257th hook is refused, by its field."""
    api.write({"hooks": {"error": [{"command": "ls"}] * prx_rules.MAX_ACTIONS}})
    assert api.problem(api.client.post("/api/hooks", json=EVENT)) == (422, "hook_refused", "action")


def test_a_file_that_cannot_be_read_is_told(api: Scene) -> None:
    """503: it is the machine's matter, not the caller's."""
    (api.workspace / "hooks.json").mkdir()
    assert api.problem(api.client.get("/api/hooks")) == (503, "hooks_not_a_file", "hooks.json")


def test_a_test_runs_the_hook_on_a_sample(api: Scene) -> None:
    """Once, disabled or not, with a payload of the event's documented fields; the outcome is told."""
    api.client.post("/api/hooks", json={**EVENT, "enabled": False})
    answer = api.client.post("/api/hooks/hook_01/test")
    ((spec, view),) = api.trial.asked
    assert (spec.command, view.event, view.time_ns, view.depth) == (
        "python3",
        "llm_response",
        int(NOW * 1e9),
        0,
    )
    assert answer.json() == {
        "id": "hook_01",
        "event": "llm_response",
        "status": "failed",
        "exit_code": 3,
        "signal": None,
        "duration_ms": 12.5,
        "stdout": "out\ufffd",
        "stderr": "err",
        "reason": None,
        "envelope": {
            "event": "llm_response",
            "timestamp": "2026-03-21T08:00:00.000Z",
            "session_id": "sess_test",
            "payload": {"provider": "openai", "model": "gpt-4o", "duration_ms": 1842, "success": True},
        },
    }


def test_a_test_runs_what_the_runtime_runs(api: Scene) -> None:
    """With the timeout of the file, and without a variable that no hook may set."""
    action = {"command": "ls", "env": {"PATH": "x", "A": "1"}, "enabled": False}
    api.write({"timeout_ms": 1_500, "hooks": {"error": [action]}})
    assert api.client.post("/api/hooks/hook_01/test").status_code == 200
    ((spec, _),) = api.trial.asked
    assert (spec.timeout_s, spec.env) == (1.5, {"A": "1"})


def test_a_test_can_bring_its_own_event(api: Scene) -> None:
    """Payload and session are the caller's then."""
    api.client.post("/api/hooks", json=EVENT)
    body = {"payload": {"model": "m"}, "session_id": "s1"}
    envelope = api.client.post("/api/hooks/hook_01/test", json=body).json()["envelope"]
    assert (envelope["payload"], envelope["session_id"]) == ({"model": "m"}, "s1")
    assert api.problem(api.client.post("/api/hooks/hook_01/test", json={"payload": 5})) == (
        422,
        "wrong_shape",
        "payload",
    )


def test_without_a_workspace_there_are_no_hooks(tmp_path: Path) -> None:
    """409 says how to have some."""
    with scene(tmp_path, named=False) as api:
        for answer in (
            api.client.get("/api/hooks"),
            api.client.post("/api/hooks", json=EVENT),
            api.client.put("/api/hooks", json={}),
            api.client.get("/api/hooks/hook_01"),
            api.client.delete("/api/hooks/hook_01"),
            api.client.post("/api/hooks/hook_01/test"),
        ):
            assert api.problem(answer) == (409, "no_workspace", None)
            assert answer.json()["hint"] == "start with prxbus up --workspace DIR"
