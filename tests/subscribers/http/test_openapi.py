"""The API against its own description: every operation is tried with what it allows and forbids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from subscribers.dialects.prx_edit import EditRefused, check_action
from subscribers.http.models import ACTION_SCHEMA
from tests.subscribers.http.scene import LETTER, Scene, scene

STREAM = "GET /api/events"
"""Ends when the client leaves, so it is tried in the integration tests."""

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    ignored_auth,
    unsupported_method,
    missing_required_header,
]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Scene]:
    """The application over a workspace with two hooks; as many wrong tokens as a test likes."""
    with scene(tmp_path, attempts=10**9) as found:
        found.write({"hooks": {"error": [{"command": "ls"}], "tool_call": [{"command": "true"}]}})
        yield found


@pytest.fixture
def document(api: Scene) -> Any:
    """The OpenAPI document as it is served."""
    return api.client.get("/openapi.json").json()


def test_the_document_tells_every_path(document: Any) -> None:
    """All operations, problem documents for whatever goes wrong, and the token where it is needed."""
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert sorted(operations) == sorted(
        [
            "GET /api/hooks",
            "POST /api/hooks",
            "PUT /api/hooks",
            "GET /api/hooks/{id}",
            "PUT /api/hooks/{id}",
            "DELETE /api/hooks/{id}",
            "PATCH /api/hooks/{id}/toggle",
            "POST /api/hooks/{id}/test",
            "GET /api/events",
            "POST /api/events",
            "POST /api/ask",
            "GET /api/status",
            "GET /metrics",
            "GET /healthz",
        ]
    )
    for name, operation in operations.items():
        assert operation["responses"]["default"]["content"].keys() == {"application/problem+json"}
        assert ("security" in operation) is (name != "GET /healthz")
        assert operation["description"]


CASES = settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(240)
@pytest.mark.may_leak("the client of schemathesis keeps its event loop")
@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value
)
def test_every_operation_keeps_its_description(api: Scene, document: Any, mode: GenerationMode) -> None:
    """Codes, media types and bodies are as described; what is not allowed is refused; nothing breaks."""
    schema = schemathesis.openapi.from_dict(document)
    schema.app = api.app
    tried = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if operation.label == STREAM:
            continue

        @CASES
        @given(case=operation.as_strategy(generation_mode=mode))
        def try_it(case: Any) -> None:
            answer = case.call(headers=LETTER, base_url=str(api.client.base_url))
            # Without a bus 503 is what is promised; anything else of this kind is a fault of ours.
            excluded = [not_a_server_error] if answer.status_code == 503 else []
            case.validate_response(
                answer, checks=[c for c in [not_a_server_error, *CHECKS] if c not in excluded]
            )

        with suppress(Unsatisfiable):  # an operation without parameters can be called in no wrong way
            try_it()
            tried += 1
    assert tried >= (13 if mode is GenerationMode.POSITIVE else 9)


commands = st.text(max_size=6) | st.sampled_from(["ls", "/bin/true"])
actions = st.fixed_dictionaries(
    {},
    optional={
        "command": commands | st.none() | st.integers(0, 9),
        "args": st.none() | st.lists(st.text(max_size=3) | st.booleans(), max_size=2) | st.just(["x"] * 129),
        "env": st.none() | st.dictionaries(st.sampled_from(["A", "B"]), st.text(max_size=2) | st.none()),
        "cwd": st.none() | st.sampled_from([".", "sub", "a\0b"]) | st.integers(0, 9),
        "timeout_ms": st.none() | st.integers(-1, 300_002) | st.sampled_from([300_000, 300_001, "5", 1.5]),
        "stdin_json": st.none() | st.booleans() | st.just("yes"),
        "timeout": st.just(5),
    },
)


@given(actions)
def test_the_described_action_is_the_dialect_s(action: dict[str, Any]) -> None:
    """Where JSON Schema can say a rule of the dialect, both say the same of every action."""
    try:
        check_action("error", action)
    except EditRefused:
        is_taken = False
    else:
        is_taken = True
    blank = isinstance(action.get("command"), str) and not action["command"].strip()
    described = jsonschema.Draft202012Validator(ACTION_SCHEMA).is_valid(action) and not blank
    assert described == is_taken
