"""Which words of a command are tried as files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.trust_words import WORDS, file_words


@pytest.mark.parametrize(
    "command, args, names",
    [
        ("./run.sh", (), {"./run.sh"}),
        ("my prog", (), {"my prog", "my", "prog"}),
        ("python3", ("check.py", "--config=c.toml"), {"python3", "check.py", "c.toml"}),
        ("python3 a.py && FILE=b.json ./c < d.txt > e", (), {"a.py", "b.json", "./c", "d.txt", "e"}),
        ('"$CLAUDE_PROJECT_DIR"/x.sh', (), {"x.sh"}),
        ("${ROOT:-.}/tools/x.sh", (), {"tools/x.sh"}),
        ("$ROOT", (), {"$ROOT"}),
        ("a/$NAME.sh", (), {"a/"}),
        ("/bin/sh", ("-c", "sh -c 'python3 deep.py'"), {"deep.py"}),
        ("echo $(./inner.sh x)", (), {"./inner.sh"}),
        ('echo "it is not closed', (), {'echo "it is not closed'}),
        ("with space.sh", (), {"with space.sh"}),
        (None, ("a",), {"a"}),
    ],
)
def test_words_that_may_name_files_are_found(
    command: str | None, args: tuple[str, ...], names: set[str]
) -> None:
    """Programs, arguments, redirections, and what nested commands name; a leading variable is a folder."""
    assert names <= set(file_words(command, args))


def test_a_nul_names_no_file() -> None:
    """No file can be called so."""
    assert file_words("a\0b", ()) == ()


def test_nesting_and_number_of_words_are_bounded() -> None:
    """What stands too deep, or too far behind, is not tried."""
    assert len(file_words(" ".join(map(str, range(2 * WORDS))), ())) == WORDS
    assert "a.sh" not in file_words("$(x $(x $(x $(x $(./a.sh)))))", ())


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_read(command: str, args: list[str]) -> None:
    """Nothing is raised, and no word comes twice."""
    found = file_words(command, args)
    assert len(set(found)) == len(found)
