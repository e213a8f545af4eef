"""One hook file over time: what is in force, what is said, and that the last good set survives."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.base import ParsedFile
from subscribers.hooks.diagnostics import Diagnostic
from subscribers.hooks.spec import HookSpec
from subscribers.sources.hook_source import Absent, Content, Reading, SourceState, Unreadable, advance

START = SourceState("hooks.json")
UNREADABLE = Unreadable("unreadable", "the file cannot be read: Permission denied", "let this user read it")


def content(text: str) -> Content:
    """A reading of this text; equal texts have equal digests."""
    return Content(text.encode(), f"digest of {text}")


def spec(name: str) -> HookSpec:
    """A hook that is told from others by its name."""
    return HookSpec(
        id=name,
        dialect="test",
        path="hooks.json",
        line=1,
        event="error",
        command=name,
        args=(),
        env={},
        cwd=None,
        timeout_s=1.0,
        grace_s=0.0,
        stdin=False,
    )


def parse(text: bytes, path: str) -> ParsedFile:
    """A dialect of words: each is a hook, ``?word`` is a hook that cannot run, ``!`` refuses the file."""
    words = text.decode().split()
    said = tuple(
        Diagnostic("error", "bad_word", path, 1, None, None, word, None) for word in words if word[0] in "?!"
    )
    refused = "!" in words
    specs = () if refused else tuple(spec(word) for word in words if word[0] != "?")
    return ParsedFile(specs, said, refused)


def after(*readings: Reading, state: SourceState = START) -> SourceState:
    """The state after these readings."""
    for reading in readings:
        state = advance(state, reading, parse)
    return state


def commands(state: SourceState) -> list[str]:
    """What is in force."""
    return [hook.command for hook in state.specs]


def said(state: SourceState) -> list[tuple[str, str]]:
    """What is said, as severity and code."""
    return [(diagnostic.severity, diagnostic.code) for diagnostic in state.diagnostics]


def test_a_good_file_is_taken() -> None:
    """The hooks of a sound file are in force, and nothing is said."""
    state = after(content("a b"))
    assert (state.status, commands(state), state.generation, state.diagnostics) == ("good", ["a", "b"], 1, ())


def test_one_bad_hook_does_not_keep_the_file_out() -> None:
    """A file with one faulty hook is taken, and the fault is said."""
    state = after(content("a ?b"))
    assert (state.status, commands(state), said(state)) == ("good", ["a"], [("error", "bad_word")])


@pytest.mark.parametrize("bad", [content("!"), UNREADABLE])
def test_a_file_that_cannot_be_used_at_start_means_no_hooks(bad: Reading) -> None:
    """Without an earlier set nothing runs, and the first diagnostic is an error that says so."""
    state = after(bad)
    assert (state.status, state.specs, state.generation) == ("refused", (), 0)
    assert said(state)[0] == ("error", "no_hooks_run")
    assert len(state.diagnostics) == 2
    assert state.diagnostics[0].hint is not None


@pytest.mark.parametrize("bad", [content("!"), UNREADABLE])
def test_the_last_good_set_is_kept(bad: Reading) -> None:
    """A file that cannot be used while hooks are in force changes none of them, and says how many stay."""
    state = after(content("a b"), bad)
    assert (state.status, commands(state), state.generation) == ("kept", ["a", "b"], 1)
    assert said(state)[0] == ("error", "kept_last_good")
    assert "2 hooks" in state.diagnostics[0].message
    assert len(state.diagnostics) == 2


def test_a_kept_set_survives_any_number_of_bad_files() -> None:
    """One bad file after another leaves the set that was last good."""
    state = after(content("a"), content("!"), content("! !"), UNREADABLE)
    assert (state.status, commands(state)) == ("kept", ["a"])
    assert "1 hook of" in state.diagnostics[0].message


@pytest.mark.parametrize("between", [content("!"), UNREADABLE])
def test_a_corrected_file_is_taken_again(between: Reading) -> None:
    """After a bad file a good one replaces the set, also when it is the one from before."""
    same = after(content("a"), between, content("a"))
    assert (same.status, commands(same), same.generation, same.diagnostics) == ("good", ["a"], 2, ())
    assert commands(after(content("a"), between, content("b"))) == ["b"]


def test_a_file_that_was_never_there_is_only_mentioned() -> None:
    """No file means no hooks, which is information and no error."""
    state = after(Absent())
    assert (state.status, state.specs, said(state)) == ("absent", (), [("info", "no_file")])


@pytest.mark.parametrize("before", [[content("a b")], [content("a b"), content("!")]])
def test_a_deleted_file_leaves_no_hooks_and_says_so(before: list[Reading]) -> None:
    """Deleting the file ends its hooks, kept ones too, with a warning that counts them."""
    state = after(*before, Absent())
    assert (state.status, state.specs, said(state)) == ("absent", (), [("warning", "file_deleted")])
    assert "2 hooks" in state.diagnostics[0].message


def test_after_a_deletion_there_is_no_last_good_set() -> None:
    """A bad file that takes the place of a deleted one finds nothing to keep."""
    state = after(content("a"), Absent(), content("!"))
    assert (state.status, state.specs) == ("refused", ())
    assert said(after(Absent(), state=state)) == [("info", "no_file")]


@pytest.mark.parametrize("reading", [content("a ?b"), content("!"), UNREADABLE, Absent()])
def test_the_same_reading_twice_changes_and_says_nothing(reading: Reading) -> None:
    """An unchanged digest, the same error or still no file: the very same state, which nobody reports."""
    state = after(content("z"), reading)
    assert advance(state, reading, parse) is state


def test_equal_content_is_not_parsed_again() -> None:
    """The dialect is not asked about a digest that was just seen."""
    calls = []

    def counting(text: bytes, path: str) -> ParsedFile:
        calls.append(path)
        return parse(text, path)

    state = advance(START, content("a"), counting)
    advance(state, content("a"), counting)
    assert calls == ["hooks.json"]


readings = st.sampled_from(["a", "b c", "?d", "!", "a !", ""]).map(content) | st.sampled_from(
    [Absent(), UNREADABLE]
)


@given(st.lists(readings, max_size=7))
def test_what_is_in_force_follows_from_the_last_usable_reading(sequence: list[Reading]) -> None:
    """Law: the set in force is that of the last good file, or none when the file was deleted since."""
    state = after(*sequence)
    assert commands(state) == expected(sequence)
    assert state.status in ("unread", "good") or state.diagnostics


def expected(sequence: Iterable[Reading]) -> list[str]:
    """The plain statement of the law: forget on absence, replace on a good file, else keep."""
    force: list[str] = []
    for reading in sequence:
        if isinstance(reading, Absent):
            force = []
        elif isinstance(reading, Content) and b"!" not in reading.text:
            force = [word for word in reading.text.decode().split() if word[0] != "?"]
    return force


@given(st.lists(readings, max_size=7))
def test_the_generation_counts_replacements(sequence: list[Reading]) -> None:
    """The generation grows by one exactly when the hooks were replaced, never otherwise."""
    state = START
    for reading in sequence:
        following = advance(state, reading, parse)
        replaced = following is not state and following.status in ("good", "absent")
        assert following.generation == state.generation + replaced
        if not replaced:
            assert following.specs is state.specs
        state = following
