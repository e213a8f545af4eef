"""The plan of an import, and what its fingerprint covers."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.import_plan import (
    FILE_BYTES,
    MAX_FILES,
    SKIPS,
    TOTAL_BYTES,
    FileFact,
    FileFault,
    Found,
    Origin,
    Plan,
    Previous,
    canonical,
    wanted,
)
from tests.subscribers.hooks.import_scene import USER_AROUND, command, drafted, fact, planned

A, B = "/p/.claude/hooks/a", "/p/.claude/hooks/b"
HOOKS: dict[str, Any] = {
    "PreToolUse": [
        {"matcher": "X", "hooks": [command(".claude/hooks/a 1", timeout=5), command("/bin/b >> /var/log")]},
        {"hooks": [command("c", args=[".claude/hooks/a"], commandWindows="d")]},
    ],
    "Stop": [{"matcher": None, "hooks": [command("python3 x/y"), command(".claude/hooks/*")]}],
}
BIN: dict[str, Found] = {"/bin/b": fact("b"), "/p/x/y": FileFault("missing", "gone")}

SMALL = st.sampled_from(["a", "b"])
HANDLERS = st.builds(
    lambda text, file, more: command(f"{text} .claude/hooks/{file} /bin/{file}", **more),
    SMALL,
    SMALL,
    st.fixed_dictionaries({}, optional={"timeout": st.sampled_from([1, 2]), "async": st.booleans()}),
)
GROUPS = st.fixed_dictionaries(
    {"hooks": st.lists(HANDLERS, max_size=2)}, optional={"matcher": st.sampled_from([None, "", "x"])}
)
SETTINGS = st.dictionaries(
    st.sampled_from(["PreToolUse", "Stop", "Nope"]), st.lists(GROUPS, max_size=2), max_size=2
)
FACTS = st.builds(lambda text, bit: fact(text, executable=bit), SMALL, st.booleans())
FILES = st.fixed_dictionaries({path: st.one_of(FACTS, st.just(FileFault("link", "no"))) for path in (A, B)})
PREVIOUS = st.one_of(st.none(), st.builds(Previous, SMALL, st.just({}), st.booleans()))
PLANS = st.builds(
    lambda hooks, files, before: planned(drafted(hooks), files, {}, before), SETTINGS, FILES, PREVIOUS
)


def example(**changes: Any) -> Plan:
    """The plan for the example, with some files otherwise."""
    return planned(drafted(HOOKS), {**BIN, **changes.get("files", {})}, {}, changes.get("previous"))


def changed(value: Any) -> Any:
    """Some other value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (*value, "x")
    if isinstance(value, bytes):
        return value + b"x"
    return replace(value, path=f"{value.path}x") if isinstance(value, Origin) else f"{value}x"


@given(PLANS, PLANS)
def test_fingerprints_are_equal_exactly_for_equal_plans(one: Plan, other: Plan) -> None:
    """The fingerprint changes if and only if the plan does."""
    assert (one.fingerprint == other.fingerprint) == (one == other)


@given(PLANS)
def test_every_reason_is_documented(plan: Plan) -> None:
    """Whatever is left out has a code of the table, and each handler is either planned or left out."""
    assert {each.code for each in plan.skipped} <= set(SKIPS)


def test_every_code_is_in_the_table() -> None:
    """Each code that stands in the modules of importing stands in the table too, and no other."""
    root = Path(__file__).parents[3] / "subscribers"
    source = "".join(path.read_text() for path in sorted(root.glob("*/import_*.py")))
    pattern = r'(?:_Skip|(?<!Import)Refused|NotRead|FileFault|Skipped)\(\s*"([a-z_]+)"'
    used = set(re.findall(pattern, source)) - {"unread"}  # of a file that stays where it is
    assert used == set(SKIPS)


@given(PLANS, st.data())
def test_no_part_of_a_plan_is_outside_its_fingerprint(plan: Plan, data: st.DataObject) -> None:
    """Whatever field of a plan is changed, the fingerprint is another one."""
    name = data.draw(st.sampled_from([field.name for field in fields(Plan)]))
    value = getattr(plan, name)
    assert replace(plan, **{name: changed(value)}).fingerprint != plan.fingerprint


@given(SETTINGS, st.randoms(use_true_random=False))
def test_the_order_of_keys_is_no_part_of_a_plan(settings: dict[str, Any], chance: Any) -> None:
    """Handlers written with their keys in another order come to the same plan."""

    def shuffled(handler: dict[str, Any]) -> dict[str, Any]:
        items = list(handler.items())
        chance.shuffle(items)
        return dict(items)

    other = {
        event: [{**group, "hooks": [shuffled(each) for each in group["hooks"]]} for group in groups]
        for event, groups in settings.items()
    }
    assert planned(drafted(other)).fingerprint == planned(drafted(settings)).fingerprint


def test_what_a_file_is_counts() -> None:
    """Bytes, exec bit and size of a copied file, and the digest of one that stays, change the fingerprint."""
    seen = {
        example(files=files).fingerprint
        for files in (
            {},
            {A: fact("z")},
            {A: fact("a", executable=False)},
            {A: FileFault("missing", "x")},
            {"/bin/b": fact("z")},
            {"/bin/b": FileFault("missing", "x")},
            {"/p/x/y": fact("z")},
        )
    }
    assert len(seen) == 7


def test_a_plan_shows_what_would_run() -> None:
    """Commands and arguments hold the paths of copies; what they were, time limits and Windows are beside."""
    plan = example()
    first, second, third, fourth = plan.handlers
    assert (first.command, first.source_command, first.timeout_s) == (
        f"{plan.folder}/files/a 1",
        ".claude/hooks/a 1",
        5.0,
    )
    assert [(each.shown, each.sha256 is None, each.state) for each in second.external] == [
        ("/bin/b", False, "present"),
        ("/var/log", True, "written to"),
    ]
    assert (third.args, third.command_windows) == ((f"{plan.folder}/files/a",), "d")
    assert fourth.external[0].state == "missing: gone"
    assert [each.code for each in plan.skipped] == ["wildcard"]
    assert plan.external == {"/bin/b": f"{'b':0>64}", "/p/x/y": None}
    assert plan.folder == f"/s/i/{plan.snapshot}"
    assert json.loads(canonical(plan.document()))["disposition"] == "import"


def test_the_generated_file_holds_the_handlers_in_their_groups() -> None:
    """Groups and matchers are as they were, also a matcher of null and none at all."""
    plan = example()
    hooks = json.loads(plan.hooks)["hooks"]
    assert [len(group["hooks"]) for group in hooks["PreToolUse"]] == [2, 1]
    assert [group.get("matcher", "none") for group in hooks["PreToolUse"]] == ["X", "none"]
    assert hooks["Stop"][0]["matcher"] is None
    assert hooks["PreToolUse"][1]["hooks"][0]["args"] == [f"{plan.folder}/files/a"]


def test_a_file_that_is_not_to_be_had_costs_its_handler() -> None:
    """Handlers whose file cannot be copied are left out with the file's reason; the others stay."""
    plan = example(files={A: FileFault("link", "it is a link")})
    assert [each.source_command for each in plan.handlers] == ["/bin/b >> /var/log", "python3 x/y"]
    assert [(each.code, each.reason) for each in plan.skipped[1:]] == [("link", f"{A}: it is a link")] * 2
    assert plan.files == ()


def test_what_a_script_names_comes_along() -> None:
    """Files that a copied one names are copied too, once, in circles too; those that cannot be are noted."""
    made = drafted({"Stop": [{"hooks": [command(".claude/hooks/a")]}]})
    link, other = "/p/.claude/hooks/l", "/p/.claude/hooks/gone"
    files: dict[str, Found] = {
        A: fact("a", mentions=(B, link, other)),
        B: fact("b", mentions=(A,))._replace(reaches_back=True),
        link: FileFault("link", "it is a link"),
    }
    plan = planned(made, files, {A: "files/a", B: "files/b", link: "files/l"})
    assert [(each.name, each.why) for each in plan.files] == [("files/a", None), ("files/b", "files/a")]
    assert plan.handlers[0].copied == ("files/a", "files/b")
    assert plan.handlers[0].notes == (
        "files/b names the hooks folder by its path: what it reads there is not the copy",
        f"{link}, which files/a names, is not copied: it is a link",
    )


def test_a_file_that_a_command_names_is_its_own_reason() -> None:
    """Named by a script first and by a command later, a file is copied because of the command."""
    names = ("a", "a", "b", "a")
    made = drafted({"Stop": [{"hooks": [command(f".claude/hooks/{name}") for name in names]}]})
    plan = planned(made, {A: fact("a", mentions=(B,)), B: fact("b")}, {B: "files/b"})
    assert [(each.name, each.why) for each in plan.files] == [("files/a", None), ("files/b", None)]


def test_a_path_relative_to_no_fixed_place_is_shown_as_it_is() -> None:
    """Of a file that is another one in each folder no digest is taken."""
    (handler,) = planned(drafted({"Stop": [{"hooks": [command("python3 x/y")]}]}, USER_AROUND)).handlers
    assert [(each.shown, each.path, each.sha256) for each in handler.external] == [("x/y", None, None)]


def test_limits_leave_out_handlers_and_not_sources() -> None:
    """The 257th file and the byte beyond 16 MiB cost the handlers that bring them, and later ones may fit."""
    many = [command(f".claude/hooks/{number}") for number in range(MAX_FILES + 1)]
    plan = planned(drafted({"Stop": [{"hooks": [*many, command("x")]}]}))
    assert (len(plan.files), len(plan.handlers)) == (MAX_FILES, MAX_FILES + 1)
    assert [each.code for each in plan.skipped] == ["too_many_files"]
    full = TOTAL_BYTES // FILE_BYTES
    made = drafted({"Stop": [{"hooks": [command(f".claude/hooks/{number}") for number in range(full + 2)]}]})
    files: dict[str, Found] = {path: FileFact(FILE_BYTES, "0", True) for path in wanted(made)[0][:-1]}
    plan = planned(made, {**files, wanted(made)[0][0]: FileFact(FILE_BYTES - 1, "0", True)})
    assert [each.code for each in plan.skipped] == ["too_large"]
    assert sum(file.size for file in plan.files) == TOTAL_BYTES


def test_a_plan_says_what_it_would_do() -> None:
    """New, changed, unchanged and empty are told apart; a disabled import stays so."""
    plan = example()
    same = Previous(plan.snapshot, plan.external, False)
    assert (plan.disposition, plan.enabled, plan.replaces) == ("import", True, None)
    unchanged = example(previous=same)
    assert (unchanged.disposition, unchanged.enabled, unchanged.replaces) == (
        "unchanged",
        False,
        plan.snapshot,
    )
    assert example(previous=Previous("x", {}, True)).disposition == "update"
    assert example(previous=Previous(plan.snapshot, {}, True)).disposition == "update"
    assert planned(drafted({})).disposition == "empty"
