"""Shell commands as words with places."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.hooks.import_words import NotWords, split_words


def shown(command: str) -> list[str]:
    """Each word as ``role:kind<text>...``."""
    return [
        f"{word.role}:" + "".join(f"{part.kind[0]}<{part.text}>" for part in word.parts)
        for word in split_words(command).words
    ]


@pytest.mark.parametrize(
    "command,words",
    [
        ("", []),
        ("  \t ", []),
        ("a b", ["program:t<a>", "argument:t<b>"]),
        ("a;b&c|d", ["program:t<a>", "program:t<b>", "program:t<c>", "program:t<d>"]),
        ("a && b || c\nd", ["program:t<a>", "program:t<b>", "program:t<c>", "program:t<d>"]),
        ("(a b)", ["program:t<a>", "argument:t<b>"]),
        ("a 'b c'\"d\"e", ["program:t<a>", "argument:t<b cde>"]),
        ("a ''", ["program:t<a>", "argument:t<>"]),
        (r"a\ b \$x", ["program:t<a b>", "argument:t<$x>"]),
        ("a\\\nb", ["program:t<ab>"]),
        ("a \\\n b", ["program:t<a>", "argument:t<b>"]),
        ("a \\", ["program:t<a>", "argument:t<\\>"]),
        (r'"\$ \` \" \\ \n"', ['program:t<$ ` " \\ \\n>']),
        ('"a\\\nb"', ["program:t<ab>"]),
        ("# c\na # d", ["program:t<a>"]),
        ("a#b", ["program:t<a#b>"]),
        ("#", []),
        ("$A/b", ["program:v<A>t</b>"]),
        ('"$A"/b "${B_1}"', ["program:v<A>t</b>", "argument:v<B_1>"]),
        ("${A:-.}/x ${A-b} ${A:?no}", ["program:v<A>t</x>", "argument:v<A>", "argument:v<A>"]),
        ('${A:-$(b "}")} ${#A} ${A%x}', ["program:v<A>", "argument:e<${#A}>", "argument:e<${A%x}>"]),
        ("$(a (b) ')')/c", ["program:s<a (b) ')'>t</c>"]),
        ('"$(a "b)" \\))"', ['program:s<a "b)" \\)>']),
        ("`a \\` b`", ["program:s<a \\` b>"]),
        ("a $1 $@ $$ $? $", ["program:t<a>", *(f"argument:e<${c}>" for c in "1@$?"), "argument:t<$>"]),
        (r"a $'x\'y'", ["program:t<a>", r"argument:e<$'x\'y'>"]),
        ('a $"x" "$\'"', ["program:t<a>", "argument:t<x>", "argument:t<$'>"]),
        (
            "~/a b~ '~/c' ~",
            [
                "program:t<~>t</a>",
                "argument:t<b~>",
                "argument:t<~/c>",
                "argument:t<~>",
            ],
        ),
        (
            "a *.sh [b] {c}",
            ["program:t<a>", "argument:p<*>t<.sh>", "argument:p<[>t<b>p<]>", "argument:p<{>t<c>p<}>"],
        ),
        (
            "a >b <c 2>&1 d",
            ["program:t<a>", "target:t<b>", "input:t<c>", "argument:t<2>", "target:t<1>", "argument:t<d>"],
        ),
        ("a &>b c", ["program:t<a>", "target:t<b>", "argument:t<c>"]),
        (">a b", ["target:t<a>", "program:t<b>"]),
        ("a > > b", ["program:t<a>", "target:t<b>"]),
        ("a <<<b", ["program:t<a>", "target:t<b>"]),
        ("X=1 Y= a", ["program:t<X=1>", "program:t<Y=>", "program:t<a>"]),
        (
            "if a; then exec b; fi",
            [
                "program:t<if>",
                "program:t<a>",
                "program:t<then>",
                "program:t<exec>",
                "program:t<b>",
                "program:t<fi>",
            ],
        ),
    ],
)
def test_a_command_is_its_words(command: str, words: list[str]) -> None:
    """Quotes, escapes, expansions, operators, redirections and comments are told apart as a shell does."""
    assert shown(command) == words


def test_a_tilde_is_told_from_a_text() -> None:
    """A tilde means a home only unquoted at the beginning of a word."""
    kinds = [word.parts[0].kind for word in split_words("~ ~/x '~' \\~ a~").words]
    assert kinds == ["tilde", "tilde", "text", "text", "text"]


def test_words_know_their_place_and_command() -> None:
    """A word is found again in the text, and knows which of the commands it belongs to."""
    text = "a 'b' && c"
    assert [(text[w.start : w.end], w.command) for w in split_words(text).words] == [
        ("a", 0),
        ("'b'", 0),
        ("c", 2),
    ]


def test_a_here_document_is_not_read_as_words() -> None:
    """From a here-document on the text is kept as it is."""
    words = split_words("cat <<E\n.claude/hooks/x\nE")
    assert ([w.parts[0].text for w in words.words], words.opaque) == (["cat"], "<<E\n.claude/hooks/x\nE")


@pytest.mark.parametrize("command", ["'a", '"a', "`a", "`a\\", "$(a", "${a:-'b}", "$'a", "$'a\\", '"a\\'])
def test_what_is_not_closed_is_no_command(command: str) -> None:
    """An open quote, backtick or bracket is refused."""
    with pytest.raises(NotWords):
        split_words(command)


@given(st.text("ab '\"\\\n\t", max_size=30))
def test_quoting_is_that_of_shlex(text: str) -> None:
    """Without expansions and operators, words say what the standard library's reader makes of them."""
    text = text.replace("\n", "")
    try:
        expected = shlex.split(text)
    except ValueError:
        if not text.endswith("\\"):  # a shell keeps a backslash at the end
            with pytest.raises(NotWords):
                split_words(text)
        return
    assert ["".join(part.text for part in word.parts) for word in split_words(text).words] == expected


@given(st.text(max_size=60))
@example("\\")
def test_any_text_is_words_or_refused(text: str) -> None:
    """Words never overlap, lie within the text, and are separated by what is no word."""
    try:
        words = split_words(text)
    except NotWords:
        return
    at = 0
    for word in words.words:
        assert at <= word.start < word.end <= len(text)
        assert word.parts
        at = word.end
