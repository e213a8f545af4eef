"""What is wrong with our entries in an agent's settings, and what is said about it."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CODEX, PROFILES
from subscribers.hooks.withheld import HOOK_TOKEN
from subscribers.sources.attach_diagnosis import Diagnosis, Expected, diagnose
from subscribers.sources.attach_files import Place
from subscribers.sources.attach_plan import Wanted, all_events, attach, default_events

SHIM = "/opt/prxbus/prxbus_hook.py"
PLACES = {
    "claude": Place("claude-code", "claude", "/home/user/.claude/settings.json", False),
    "codex": Place("codex", "codex", "/home/user/.codex/hooks.json", False),
}
EXPECTED = Expected(
    SHIM, "/run/prxbus/hook.sock", "http://127.0.0.1:16831", "s3cret", {SHIM, "/usr/bin/python3"}.__contains__
)
WANTED = Wanted("/usr/bin/python3", SHIM, EXPECTED.socket, ())
HTTP = WANTED._replace(url="http://127.0.0.1:16831/hooks/claude", authorization="Bearer s3cret")


def settings(profile: str, wanted: Wanted = WANTED, **more: Any) -> bytes:
    """Settings in which we are attached, with other keys."""
    wanted = wanted if wanted.events else wanted._replace(events=default_events(PROFILES[profile]))
    return attach(orjson.dumps(more), wanted, PROFILES[profile]).text


def faults(found: Diagnosis) -> list[str]:
    """The faults, without the path before each."""
    return [each.text.rpartition(".json: ")[2] for each in found.findings if each.level == "fault"]


def trusting(text: bytes, *, enabled: str = "") -> bytes:
    """What Codex's config.toml says when the hooks of a file are trusted."""
    document = read_document(text, PLACES["codex"].path, CODEX)
    rows = [
        f"[hooks.state.{json.dumps(each.key)}]\ntrusted_hash = {json.dumps(each.digest)}\n{enabled}"
        for each in document.handlers
    ]
    return "\n".join(rows).encode()


@pytest.mark.parametrize("profile,wanted", [("claude", WANTED), ("claude", HTTP), ("codex", WANTED)])
def test_settings_as_we_write_them_are_right(profile: str, wanted: Wanted) -> None:
    """Nothing is wrong with them, and their entries are told by event."""
    text = settings(profile, wanted)
    found = diagnose(PLACES[profile], text, EXPECTED, trusting(text))
    assert {each.level for each in found.findings} == {"ok"}
    assert tuple(found.entries) == default_events(PROFILES[profile])


def test_settings_without_us_are_not_our_affair() -> None:
    """Whatever they say; what is no settings file at all is told."""
    text = b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}, "disableAllHooks": true}'
    assert diagnose(PLACES["claude"], text, EXPECTED) == ((), {})
    assert faults(diagnose(PLACES["claude"], b"{", EXPECTED)) == [
        "it is not JSON: unexpected end of data: line 1 column 2 (char 1); mend it first"
    ]


@pytest.mark.parametrize(
    "wanted,said",
    [
        (WANTED._replace(python="/gone/python3"), "its interpreter /gone/python3 is not there"),
        (WANTED._replace(shim="/gone/prxbus_hook.py"), "its file /gone/prxbus_hook.py is not there"),
        (
            WANTED._replace(socket="/run/2/hook.sock"),
            "it calls the bus at /run/2/hook.sock, and this one is at ",
        ),
        (
            HTTP._replace(url="http://127.0.0.1:1/hooks/claude"),
            "it calls http://127.0.0.1:1, and the HTTP API is",
        ),
        (HTTP._replace(authorization="Bearer old"), "its token is not the one of this user's bus"),
    ],
)
def test_an_outdated_entry_is_told_once(wanted: Wanted, said: str) -> None:
    """Whatever it is outdated in, however many entries are, and what to do."""
    found = diagnose(PLACES["claude"], settings("claude", wanted), EXPECTED)
    (fault,) = [each for each in found.findings if each.level == "fault"]
    assert said in fault.text
    http = " --http" if wanted.url is not None else ""
    assert fault.hint == f"attach again: prxbus attach claude-code{http}"


PROJECT = Place("claude-code", "claude", "/my shop/.claude/settings.local.json", False, "/my shop")


@pytest.mark.parametrize(
    "place,wanted,flags",
    [
        (PROJECT, HTTP, "--project '/my shop' --http"),
        (PLACES["claude"], HTTP._replace(authorization=f"Bearer ${HOOK_TOKEN}"), "--http --token-variable"),
        (PLACES["claude"], HTTP._replace(closed=True), "--http --fail-closed"),
        (PLACES["claude"], WANTED._replace(closed=True), "--fail-closed"),
        (PLACES["claude"], WANTED._replace(events=all_events(PROFILES["claude"])), "--events all"),
        (PLACES["codex"], WANTED._replace(events=("Stop", "PreToolUse")), "--events PreToolUse,Stop"),
    ],
)
def test_what_to_do_repeats_the_flags_that_were_said(place: Place, wanted: Wanted, flags: str) -> None:
    """The same events in the same way, into the same file; and the bus, where it has to be named."""
    text = settings(place.profile, wanted)
    here = EXPECTED._replace(socket="/run/2/hook.sock", address="http://127.0.0.1:2", runtime_dir="/run/2")
    found = diagnose(place, text, here, trusting(text))
    hints = {each.hint for each in found.findings if each.level == "fault"}
    assert hints == {f"attach again: prxbus attach {place.agent} {flags} --runtime-dir /run/2"}


def test_an_api_that_is_not_served_is_to_be_served() -> None:
    """Attaching again would change nothing: the port that is called is what it is to be served at."""
    text = settings("claude", HTTP._replace(events=("Stop",)))
    found = diagnose(PLACES["claude"], text, EXPECTED._replace(address=None))
    assert [each.hint for each in found.findings if each.level == "fault"] == [
        "serve it: prxbus up --http 16831"
    ]


def test_each_fault_is_told_with_its_events() -> None:
    """A file of another installation, another dialect, another form; and what no API can answer."""
    other = WANTED._replace(shim="/other/prxbus_hook.py", events=("Stop",))
    expected = EXPECTED._replace(exists=lambda _: True)
    text = settings("claude", other)
    assert faults(diagnose(PLACES["claude"], text, expected)) == [
        "its file /other/prxbus_hook.py is that of another installation"
    ]
    wrong = orjson.loads(settings("claude"))
    wrong["hooks"]["Stop"][0]["hooks"][0]["command"] = f"exec {SHIM}"
    wrong["hooks"]["PreToolUse"] = orjson.loads(settings("codex"))["hooks"]["PreToolUse"]
    assert faults(diagnose(PLACES["claude"], orjson.dumps(wrong), EXPECTED)) == [
        "it speaks as codex (PreToolUse)",
        "a command of ours has another form than this version writes (Stop)",
    ]
    served = EXPECTED._replace(address=None)
    (fault,) = faults(diagnose(PLACES["claude"], settings("claude", HTTP), served))
    assert fault.startswith("it calls the HTTP API, and none is served (PreToolUse, ")


def test_what_keeps_hooks_still_is_told() -> None:
    """All of them turned off; of Codex the feature, the trust that it waits for, a file that it refuses."""
    off = diagnose(PLACES["claude"], settings("claude", disableAllHooks=True), EXPECTED)
    assert faults(off) == ["disableAllHooks is true, so no hook runs"]
    place, text = PLACES["codex"], settings("codex")
    untrusted = "Codex does not run our hooks, they are untrusted: all of them"
    assert faults(diagnose(place, text, EXPECTED)) == [untrusted]
    assert faults(diagnose(place, text, EXPECTED, b"[hooks]\nstate = 5")) == [untrusted]
    turned_off = b"[features]\nhooks = false\n" + trusting(text)
    assert faults(diagnose(place, text, EXPECTED, turned_off)) == [
        "config.toml of Codex turns hooks off ([features] hooks = false)"
    ]
    modified = trusting(text).replace(b"sha256:", b"sha256:0", 1)
    assert faults(diagnose(place, text, EXPECTED, modified)) == [
        "Codex does not run our hooks, they are modified: PreToolUse"
    ]
    disabled = trusting(text, enabled="enabled = false")
    assert faults(diagnose(place, text, EXPECTED, disabled)) == [
        "Codex does not run our hooks, they are disabled: all of them"
    ]
    assert "config.toml of Codex cannot be read" in faults(diagnose(place, text, EXPECTED, b"[["))[0]
    refused = faults(diagnose(place, settings("codex", model="x"), EXPECTED, trusting(text)))
    assert len(refused) == 1
    assert refused[0].startswith("Codex refuses the whole file: ")


def test_events_that_do_not_come_are_noted() -> None:
    """It is nobody's fault: they may have been left out on purpose."""
    found = diagnose(PLACES["claude"], settings("claude", WANTED._replace(events=("Stop",))), EXPECTED)
    (note,) = [each for each in found.findings if each.level == "note"]
    assert "these events do not come here: PreToolUse, " in note.text
