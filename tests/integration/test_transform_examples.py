"""The transforms in examples/: what they take out, what they cut, and that they run as they say."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from subscribers.runtimes.python_loader import load, unload
from tests.integration.transform_scene import Scene, scene, transforms

EXAMPLES = Path(__file__).parents[2] / "examples" / "transforms"

# Put together here, so that no scanner takes this file for one that holds secrets.
SECRETS = {
    "AWS key": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "GitLab token": "glpat-" + "x" * 20,
    "Slack token": "xoxb-" + "1234567890-abc",
    "API key": "sk-" + "proj-" + "a" * 24,
    "Google key": "AIza" + "b" * 35,
    "JSON web token": "eyJ" + "hbGciOiJI." + "eyJ" + "zdWIiOiIx." + "c2lnbmF0dXJl",
}
KEY = ["-----BEGIN RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA", "7f3a91c2", "-----END RSA PRIVATE KEY-----"]


@pytest.fixture(scope="module")
def parts() -> Iterator[Callable[[str], Any]]:
    """A function from a name to what the example files call so."""
    loaded = [load(str(EXAMPLES / name)) for name in ("redact_secrets.py", "head_and_tail.py")]
    assert [each.error for each in loaded] == [None, None]
    found: dict[str, Any] = {}
    for each in loaded:
        found |= each.registrations[0].function.__globals__
    yield found.__getitem__
    for each in loaded:
        unload(each)


@pytest.mark.parametrize("kind", SECRETS)
def test_tokens_are_taken_out_of_a_diff(parts: Callable[[str], Any], kind: str) -> None:
    """Whatever stands around it, the token goes and the rest stays."""
    secret = SECRETS[kind]
    for before, after in [("+key = ", "\n"), ('-"', '",'), ("", ""), ("a\n", "\nb")]:
        redacted = parts("redact")(before + secret + after)
        assert redacted == f"{before}[redacted: {kind}]{after}"


@pytest.mark.parametrize(
    "text, redacted",
    [
        ("+DB_PASSWORD = 'hunter22'\n", "+DB_PASSWORD = '[redacted: secret]'\n"),
        ('{"apiKey": "abcd1234", "a": 1}', '{"apiKey": "[redacted: secret]", "a": 1}'),
        ('"{\\"password\\": \\"hunter22\\"}"', '"{\\"password\\": \\"[redacted: secret]\\"}"'),
        ("İ secret: hunter22 İ", "İ secret: [redacted: secret] İ"),
        ("postgres://me:hunter2@db/x", "postgres://me:[redacted: password]@db/x"),
        ("\n".join(KEY) + "\nrest", "[redacted: private key]\nrest"),
        ("\n".join(f"+{line}" for line in KEY), "+[redacted: private key]"),
        ("a " + "\\n".join(KEY) + " b", "a [redacted: private key] b"),
        ("\n".join(KEY[:2]), "[redacted: private key]"),
    ],
)
def test_assignments_urls_and_keys_are_taken_out(
    parts: Callable[[str], Any], text: str, redacted: str
) -> None:
    """Values go and their names stay; a key goes with all its lines, also one that was cut off."""
    assert parts("redact")(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the password is asked for later\n",
        "https://example.org/a?b=c",
        "sk-short",
        "risk-" + "a" * 30,
        "api: ok",
    ],
)
def test_what_is_no_secret_stays(parts: Callable[[str], Any], text: str) -> None:
    """Ordinary text is returned as it was."""
    assert parts("redact")(text) == text


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY\n",
        "eyJ",
        "eyJaaaaaaaaaaaa.",
        "password",
        "password  ",
        "api_key_",
        "://a:",
        "a",
        "gh",
        " ",
    ],
)
def test_no_text_takes_long(parts: Callable[[str], Any], piece: str) -> None:
    """Texts of 3 MB that are made to be difficult take seconds; in quadratic time it would be hours."""
    text = piece * (3_000_000 // len(piece))
    began = time.monotonic()
    for start in ("", "://", "eyJ", "password=", "ghp_", "-----BEGIN "):
        parts("redact")(start + text)
    assert time.monotonic() - began < 200


def test_a_dump_becomes_two_hundred_lines(parts: Callable[[str], Any]) -> None:
    """Head and tail stay, the rest is counted; one line of JSON is laid out first, a long line is cut."""
    rows = [{"id": n, "name": f"item {n}"} for n in range(100_000)]
    for indent in (1, None):
        lines = parts("head_and_tail")(json.dumps(rows, indent=indent)).splitlines()
        assert len(lines) == 200
        assert (lines[0], lines[-1]) == ("[", "]")
        assert lines[149] == "[... 399,803 lines left out ...]"
    (line,) = parts("head_and_tail")("x" * 1_000_000).splitlines()
    assert len(line) <= 500
    assert "999,550 characters left out" in line
    assert parts("head_and_tail")("[" * 5_000).startswith("[" * 200)


@pytest.fixture(name="stage")
def _stage() -> Iterator[Scene]:
    with scene() as found:
        yield found


def test_the_examples_run_together(stage: Scene) -> None:
    """On a bus, as functions and as a command: a secret goes, a dump shrinks redacted, a stub stands in."""
    shutil.copytree(EXAMPLES, stage.workspace / "examples" / "transforms")
    usage = (EXAMPLES / "stub_tool.py").read_text().split('"""')[1]
    stage.tables("\n".join(line.strip() for line in usage.splitlines() if line.startswith("    ")))
    secret = SECRETS["GitHub token"]
    with transforms(stage, "--handlers", str(EXAMPLES)) as service:
        assert service.said["transforms"] == 3
        redacted = stage.ask(f"+token {secret}\n")
        assert (redacted.output, redacted.output_by) == (
            "+token [redacted: GitHub token]\n",
            "redact_secrets.py:redact_secrets",
        )
        assert not stage.ask("nothing to see").replaced
        dump = json.dumps([{"id": n, "token": secret} for n in range(80_000)], indent=0)
        short = stage.ask(dump)
        assert short.output_by == "head_and_tail.py:shorten"
        assert len(short.output.splitlines()) == 200
        assert secret not in short.output
        for city, content in (("Oslo", '{"celsius": 4, "city": "Oslo", "sky": "clear"}'), ("Rom", None)):
            asked = stage.ask("raw", tool="mcp__weather__forecast", arguments={"city": city})
            assert asked.output == (content or '{"celsius": null, "sky": "unknown"}')
        assert not stage.ask("raw", tool="mcp__other").replaced
