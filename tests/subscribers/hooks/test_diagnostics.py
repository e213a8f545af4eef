"""Diagnostics: the one line that people read, and the escaping of what somebody else wrote."""

from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.diagnostics import QUOTE_CHARACTERS, Diagnostic, printable, quote


def diagnostic(
    path: str = "hooks.json",
    line: int | None = 3,
    column: int | None = 7,
    field: str | None = "hooks.error[0].args",
    message: str = "args is an array, not a string",
    hint: str | None = "write an array",
) -> Diagnostic:
    """A diagnostic that has everything unless told otherwise."""
    return Diagnostic("error", "wrong_type", path, line, column, field, message, hint)


def test_a_full_diagnostic_reads_from_the_place_to_the_remedy() -> None:
    """Place, severity, field, message, hint and code stand in this order."""
    place = "hooks.json:3:7: error: hooks.error[0].args"
    assert diagnostic().render() == f"{place}: args is an array, not a string; write an array [wrong_type]"


def test_what_is_unknown_leaves_no_trace_in_the_line() -> None:
    """Without line, column, field and hint the line has none of their punctuation."""
    bare = diagnostic(line=None, column=None, field=None, hint=None)
    assert bare.render() == "hooks.json: error: args is an array, not a string [wrong_type]"


def test_a_line_without_a_column_is_shown() -> None:
    """A diagnostic about a whole line names the line alone."""
    assert diagnostic(column=None).render().startswith("hooks.json:3: error: ")


@given(st.text(), st.text(), st.none() | st.text(), st.none() | st.text())
def test_a_rendered_diagnostic_is_one_printable_line(
    path: str, message: str, field: str | None, hint: str | None
) -> None:
    """Whatever text is in it, a rendered diagnostic has no line break and nothing a terminal acts on."""
    assert diagnostic(path=path, message=message, field=field, hint=hint).render().isprintable()


def test_printable_text_stays_as_it_is() -> None:
    """Letters of any script pass; only what is not printable becomes an escape."""
    assert printable("审计 é") == "审计 é"
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


def test_a_quote_escapes_its_own_marks() -> None:
    """Quotes and backslashes inside a quoted text cannot end it."""
    assert quote('say "hi" \\') == '"say \\"hi\\" \\\\"'


def test_a_long_text_is_cut_in_a_quote() -> None:
    """A quoted text repeats at most the stated number of characters."""
    assert quote("x" * QUOTE_CHARACTERS) == '"' + "x" * QUOTE_CHARACTERS + '"'
    assert quote("x" * (QUOTE_CHARACTERS + 1)) == '"' + "x" * (QUOTE_CHARACTERS - 3) + '..."'
