"""Which words of a command are files, and what an import does about each."""

from __future__ import annotations

import pytest

from subscribers.hooks.import_paths import (
    Context,
    Copied,
    External,
    HooksFolder,
    Refused,
    Surroundings,
    refer,
    refer_argument,
)
from subscribers.hooks.import_words import split_words

OWN = HooksFolder("/p/.claude/hooks", "files", "/p")
USERS = HooksFolder("/h/.claude/hooks", "user", "/h/.claude")
PROJECT = Surroundings(
    home="/h",
    base="/p",
    folders=(OWN, USERS),
    variables={"HOME": "/h", "CLAUDE_PROJECT_DIR": "/p"},
    toplevel="/p",
    cwd="/p",
)
USER = Surroundings(
    home="/h",
    base="/h",
    folders=(HooksFolder("/h/.claude/hooks", "files", "/h/.claude"),),
    variables={"HOME": "/h"},
)


def found(command: str, around: Surroundings = PROJECT) -> list[str]:
    """What each word comes to, in short; words that mean no file are left out."""
    context = Context()
    said = []
    for word in split_words(command).words:
        reference = refer(word, around, context)
        if isinstance(reference, Copied):
            said.append(f"{reference.prefix}{reference.name}")
        elif isinstance(reference, External):
            said.append(f"external {reference.path or reference.shown}")
        elif isinstance(reference, Refused):
            said.append(reference.code)
    return said


@pytest.mark.parametrize(
    "command,said",
    [
        (".claude/hooks/a.sh", ["files/a.sh"]),
        ("./.claude/hooks/a.sh x", ["files/a.sh"]),
        (".claude//hooks/./b/a.sh", ["files/b/a.sh"]),
        ("bash '.claude/hooks/a b.sh'", ["files/a b.sh"]),
        ('"$CLAUDE_PROJECT_DIR"/.claude/hooks/a.sh', ["files/a.sh"]),
        ('python3 "${CLAUDE_PROJECT_DIR:-.}/.claude/hooks/a.py" --x', ["files/a.py"]),
        ('"$(git rev-parse --show-toplevel)/.claude/hooks/a"', ["files/a"]),
        ('"$(git rev-parse --show-toplevel 2>/dev/null)"/.claude/hooks/a', ["files/a"]),
        ("/p/.claude/hooks/a", ["files/a"]),
        ("~/.claude/hooks/a", ["user/a"]),
        ("$HOME/.claude/hooks/a", ["user/a"]),
        ("CONF=.claude/hooks/c x --at=.claude/hooks/d", ["CONF=files/c", "--at=files/d"]),
        ("X=~/.claude/hooks/c y", ["X=user/c"]),
        ("a && .claude/hooks/a | .claude/hooks/b", ["files/a", "files/b"]),
        ('cd "$CLAUDE_PROJECT_DIR" && .claude/hooks/a', ["files/a"]),
        ("cd -- /p && .claude/hooks/a", ["files/a"]),
        (". .claude/hooks/env.sh", ["files/env.sh"]),
        # refused, with the whole handler
        (".claude/hooks/*.sh", ["wildcard"]),
        (".claude/hooks/[ab]", ["wildcard"]),
        (".claude/hooks/../x", ["escapes"]),
        ("$CLAUDE_PROJECT_DIR/.claude/hooks/../../x", ["escapes"]),
        (".claude/hooks/$X", ["dynamic_path"]),
        ("$X/.claude/hooks/a", ["dynamic_path"]),
        ("$X/a", ["dynamic_path"]),
        ('python3 "$S"', ["dynamic_path"]),
        ("python3 ${S%x}", ["dynamic_path"]),
        ("`which python3` a", ["dynamic_path"]),
        ("bash scripts/*.sh", ["wildcard"]),
        ("run-parts .claude/hooks/", ["dynamic_path"]),
        ("cd .claude/hooks && ./a", ["dynamic_path", "external ./a"]),
        ("cd /tmp && .claude/hooks/a", ["dynamic_path"]),
        ('pushd "$X"; .claude/hooks/a', ["dynamic_path"]),
        ("bash -c 'x && .claude/hooks/a'", ["dynamic_path"]),
        ("echo $(.claude/hooks/a)", ["dynamic_path"]),
        (".claude/hooks/1/2/3/4/5/6/7/8/9", ["too_deep"]),
        # external, and stays where it is
        ("/usr/bin/jq .", ["external /usr/bin/jq"]),
        ("~/bin/x", ["external /h/bin/x"]),
        ("python3 scripts/x.py", ["external /p/scripts/x.py"]),
        ("./x.sh", ["external /p/x.sh"]),
        ("python3 $CLAUDE_PROJECT_DIR/scripts/x.py", ["external /p/scripts/x.py"]),
        ("sub/.claude/hooks/a", ["external /p/sub/.claude/hooks/a"]),
        ("/other/.claude/hooks/a", ["external /other/.claude/hooks/a"]),
        (".codex/hooks/a", ["external /p/.codex/hooks/a"]),
        ("jq . >> ~/x.log", ["external /h/x.log"]),
        ("x </etc/passwd", ["external /etc/passwd"]),
        ("cd x && ./y", ["external ./y"]),
        # no files at all
        ("echo hi >/dev/null 2>&1", []),
        ("jq -r '.tool_input.command'", []),
        ("echo $X */ {a,b}", []),
        ("[ -f $X ] && { a; }", []),
        ("curl https://x/y", []),
        ("bash -c 'echo /x/y; z'", []),
        ("cat a/b", []),
        ("cd / && pwd", []),
        ("echo '/a\nb' / //x", []),
        ("python3 -m http.server", []),
        ("cd", []),
        ("", []),
    ],
)
def test_words_of_a_project_come_to_files(command: str, said: list[str]) -> None:
    """Files of a hooks folder are copied, others stay, and what nobody can name is refused."""
    assert found(command) == said


@pytest.mark.parametrize(
    "command,said",
    [
        ("~/.claude/hooks/a", ["files/a"]),
        (".claude/hooks/a", ["files/a"]),
        ("$CLAUDE_PROJECT_DIR/.claude/hooks/a", ["dynamic_path"]),
        ('"$(git rev-parse --show-toplevel)/.claude/hooks/a"', ["dynamic_path"]),
        ("'~/.claude/hooks/a'", ["dynamic_path"]),
        ("python3 scripts/x.py", ["external scripts/x.py"]),
        ("sub/.claude/hooks/a", ["dynamic_path"]),
    ],
)
def test_words_of_a_user_do_not_depend_on_a_project(command: str, said: list[str]) -> None:
    """What would be another file in each project is never copied for all of them."""
    assert found(command, USER) == said


def test_a_relative_path_of_a_user_is_marked() -> None:
    """A path that the agent looks for where it works is told from one that is fixed."""
    loose, fixed = (
        refer(split_words(text).words[0], USER, Context())
        for text in (".claude/hooks/a", "~/.claude/hooks/a")
    )
    assert isinstance(loose, Copied)
    assert isinstance(fixed, Copied)
    assert (loose.is_loose, fixed.is_loose) == (True, False)


def test_what_is_written_to_is_no_dependency() -> None:
    """A file that output goes to is marked; one that input comes from is not."""
    written, read = (
        refer(split_words(text).words[1], PROJECT, Context()) for text in ("a >>/x/log", "a </x/list")
    )
    assert isinstance(written, External)
    assert isinstance(read, External)
    assert (written.is_output, read.is_output) == (True, False)


@pytest.mark.parametrize(
    "argument,said",
    [
        (".claude/hooks/a", "files/a"),
        ("${CLAUDE_PROJECT_DIR}/.claude/hooks/a b", "files/a b"),
        ("$CLAUDE_PROJECT_DIR/.claude/hooks/a", "files/a"),
        ("--x=.claude/hooks/a", "files/a"),
        ("~/.claude/hooks/a", "dynamic_path"),
        ("$X/.claude/hooks/a", "dynamic_path"),
        ("/usr/bin/x", "/usr/bin/x"),
        ("a'b", None),
        ("$X", None),
        (".claude/hooks/a\0", "dynamic_path"),
    ],
)
def test_an_argument_is_read_without_a_shell(argument: str, said: str | None) -> None:
    """Of what no shell sees only a variable at the beginning is known, and a tilde means nothing."""
    reference = refer_argument(argument, PROJECT)
    if isinstance(reference, Copied):
        assert reference.name == said
    elif isinstance(reference, External):
        assert reference.path == said
    elif isinstance(reference, Refused):
        assert reference.code == said
    else:
        assert said is None


def test_reasons_name_what_is_not_known() -> None:
    """A refusal says which part of the word only a shell knows."""
    reasons = []
    for command in ("$A/x", "$(b c)/x", "sh a/*", "${A%x}/x"):
        context = Context()
        references = [refer(word, PROJECT, context) for word in split_words(command).words]
        reasons += [each.reason for each in references if isinstance(each, Refused)]
    assert [
        reason
        for reason, what in zip(reasons, ("$A", "$(b c)", "'*'", "${A%x}"), strict=True)
        if what in reason
    ] == reasons
