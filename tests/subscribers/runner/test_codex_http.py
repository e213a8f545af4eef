"""An ``http`` handler as a request, and its reply as an outcome."""

from __future__ import annotations

import http.server
import threading

import orjson
import pytest

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import PROFILES
from subscribers.dialects.codex_spec import CodexHandler
from subscribers.hooks.outcome import Captured
from subscribers.runner.codex_http import call, headers_of, outcome_of, refusal_of
from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.http_call import Reply

ENV = {"TOKEN": "t0k", "OTHER": "o", "BREAKS": "a\r\nX: y"}


def handler(**fields: object) -> CodexHandler:
    """One handler as a file says it."""
    one = {"type": "http", "url": "http://127.0.0.1:1/h", **fields}
    content = orjson.dumps({"hooks": {"PreToolUse": [{"hooks": [one]}]}})
    return read_document(content, "/c/settings.json", PROFILES["claude"]).handlers[0]


@pytest.mark.parametrize(
    "written, allowed, sent",
    [
        ("Bearer $TOKEN", ["TOKEN"], "Bearer t0k"),
        ("Bearer ${TOKEN}!", ["TOKEN"], "Bearer t0k!"),
        ("Bearer $OTHER", ["TOKEN"], "Bearer "),
        ("Bearer $GONE", ["GONE"], "Bearer "),
        ("Bearer $TOKEN", [], "Bearer $TOKEN"),
        ("$BREAKS", ["BREAKS"], "aX: y"),
        ("$", ["TOKEN"], "$"),
    ],
)
def test_headers_are_filled_in_from_the_variables_that_are_allowed(
    written: str, allowed: list[str], sent: str
) -> None:
    """Any other name is the empty text; without a list nothing is filled in; no value ends a header."""
    found = headers_of(handler(headers={"Authorization": written}, allowedEnvVars=allowed), ENV)
    assert found["Authorization"] == sent
    assert found["Content-Type"] == "application/json"


def test_some_headers_are_not_a_handlers_to_set() -> None:
    """The body is JSON and as long as it is."""
    found = headers_of(handler(headers={"content-type": "text/plain", "Content-Length": "1"}), ENV)
    assert found.keys() == {"User-Agent", "Content-Type"}


@pytest.mark.parametrize(
    "url, is_called",
    [
        ("http://127.0.0.1:8000/h", True),
        ("http://127.9.9.9/h", True),
        ("http://[::1]:80/h", True),
        ("https://localhost/h", True),
        ("http://hooks.example.com/team/a", True),
        ("http://hooks.example.com/other", False),
        ("http://localhost.example.com/h", False),
        ("http://127.0.0.1.example.com/h", False),
        ("http://127.0.0.1@example.com/h", False),
        ("http://[", False),
    ],
)
def test_only_this_machine_is_called_and_what_is_configured(url: str, is_called: bool) -> None:
    """A host that only looks like this machine is another one."""
    refusal = refusal_of(url, ("http://hooks.example.com/team/*",))
    assert (refusal is None) is is_called


@pytest.mark.parametrize(
    "status, body, outcome, reason",
    [
        (200, "", "ok", None),
        (204, " \n", "ok", None),
        (200, '{"decision": "block"}', "ok", None),
        (200, "ok", "not_started", "something else than a JSON object"),
        (200, "[]", "not_started", "something else than a JSON object"),
        (302, "", "not_started", "HTTP status 302"),
        (403, '{"decision": "block"}', "not_started", "HTTP status 403"),
        (500, "boom", "not_started", "HTTP status 500"),
    ],
)
def test_a_reply_as_an_outcome(status: int, body: str, outcome: str, reason: str | None) -> None:
    """2xx without a body or with an object is an answer; no status blocks, and no text is a context."""
    data = body.encode()
    found = outcome_of(Reply(status, Captured(data, b"", len(data))), 0.1)
    assert found.status == outcome
    assert (reason or "") in (found.reason or "")
    assert found.stdout.text() == (body if outcome == "ok" else "")


def test_a_handler_gets_what_a_command_reads() -> None:
    """The payload is posted as it is, the reply's body is the output; nobody is called elsewhere."""
    got: list[tuple[str, bytes]] = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    deadlines = Deadlines()
    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/h?x=1"
        outcome = call(handler(url=url), ENV, b'{"a":1}', 20.0, (), deadlines)
        thread.join()
    refused = call(handler(url="http://example.com/"), ENV, b"{}", 20.0, (), deadlines)
    deadlines.close()
    assert (outcome.status, outcome.stdout.text(), got) == ("ok", "{}", [("/h?x=1", b'{"a":1}')])
    assert refused.status == "not_started"
