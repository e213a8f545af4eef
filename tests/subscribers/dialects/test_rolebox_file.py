"""What a role.yaml means: every key with its default, what is wrong with a role, and what is none."""

from __future__ import annotations

import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import rolebox_rules as rules
from subscribers.dialects.rolebox_spec import RoleHook
from tests.subscribers.dialects.rolebox_texts import entry, one, only, read, role_of, said

# ---- what is in order ---------------------------------------------------------------------------------


def test_every_key_of_a_hook_has_its_effect() -> None:
    """Each of the page's keys is taken as it is written, in the order of the file."""
    hook = one(
        "name: Coder\ndescription: careful\nhooks:\n  custom:\n"
        "    - name: my-checker\n"
        '      description: "looks closely"\n'
        "      events: [tool.execute.after, chat.message, event]\n"
        "      module: hooks/checker.js\n"
        "      config:\n        severity: warn\n        checks: [a, b]\n"
        "      filter:\n        tools: [edit, write, edit]\n        eventTypes: [session.idle, mine.own]\n"
        "      priority: 10\n      phase: before\n"
    )
    assert hook == RoleHook(
        index=0,
        name="my-checker",
        description="looks closely",
        events=("tool.execute.after", "chat.message", "event"),
        module="hooks/checker.js",
        config='{"severity":"warn","checks":["a","b"]}',
        tools=("edit", "write"),
        event_types=("session.idle", "mine.own"),
        priority=10,
        phase="before",
        line=5,
        column=7,
        module_at=(8, 15),
    )


def test_a_hook_has_the_defaults_of_the_page() -> None:
    """Priority 50, phase after, no config, no filter, no description."""
    hook = one(role_of(entry()))
    assert (hook.priority, hook.phase) == (50, "after")
    assert (hook.config, hook.tools, hook.event_types, hook.description) == (None, None, None, "")


def test_a_key_without_a_value_is_as_good_as_none() -> None:
    """What stands without a value has its default."""
    hook = one(role_of(entry(priority="~", phase="null", filter="~", config="~", description="~")))
    assert (hook.priority, hook.phase, hook.tools, hook.config) == (50, "after", None, None)
    assert one(role_of(entry(filter="{tools: ~}"))).tools is None


def test_a_role_has_a_name_functions_and_switches() -> None:
    """The keys of the role that matter here are taken."""
    role = read(
        "name: Coder\ndescription: careful\nfunctions: [review, plan]\ndisable_functions: [loop]\n"
        "auto_activate: [review]\nlocked: true\nhooks: {builtin: {auto_activate: true}}\n"
    )
    assert (role.name, role.description, role.hooks, role.diagnostics) == ("Coder", "careful", (), ())
    assert (role.functions, role.disabled) == (("plan", "execute", "review"), ("loop",))
    assert (role.auto_activate, role.locked, role.builtin_auto_activate) == (("review",), True, True)
    assert not role.refused
    assert not role.foreign


def test_a_role_without_hooks_has_none() -> None:
    """Hooks may be missing, empty or nothing; the switch of functions is then not written."""
    for text in ("", "hooks:\n", "hooks: {}\n", "hooks: {custom: }\n", "hooks: {custom: [], builtin: }\n"):
        role = read(f"name: Coder\nprompt: x\n{text}")
        assert (role.hooks, role.diagnostics, role.builtin_auto_activate) == ((), (), None)
    assert read("name: Coder\nhooks: {builtin: {auto_activate: false}}").builtin_auto_activate is False


def test_hooks_keep_the_order_of_the_file() -> None:
    """The index is the place in the file, also behind an entry that is bad."""
    role = read(role_of(entry(name="a"), "name: b", entry(name="c", priority="-1.5")))
    assert [(hook.name, hook.index, hook.priority) for hook in role.hooks] == [("a", 0, 50), ("c", 2, -1.5)]


def test_a_config_holds_whatever_json_can_hold() -> None:
    """Numbers, texts, nothing, dates as text, merged keys and repeated nodes become JSON."""
    hook = one(
        "name: Coder\nhooks:\n  custom:\n    - name: a\n      events: [event]\n      module: a.js\n"
        "      config:\n        base: &base {n: 0x10, o: 0o17, f: -1.5e2, t: true, no: no, z: ~}\n"
        "        other: {<<: *base, n: 1}\n        more: {<<: [*base, {q: 1}], f: 2}\n"
        '        day: 2020-01-02\n        text: "é\\0"\n        1: one\n'
        "        again: *base\n        <<: {k: v}\n"
    )
    assert hook.config is not None
    base = {"n": 16, "o": 15, "f": -150.0, "t": True, "no": "no", "z": None}
    assert json.loads(hook.config) == {
        "base": base,
        "other": base | {"n": 1},
        "more": base | {"f": 2, "q": 1},
        "day": "2020-01-02",
        "text": "é\0",
        "1": "one",
        "again": base,
        "k": "v",
    }


def test_placeholders_are_replaced_in_every_text_that_is_read() -> None:
    """``{env:NAME}`` is replaced in names, modules and configs, once; what is not set stays."""
    text = role_of(entry(name='"{env:WHO}-check"', config='{a: "{env:A}/{env:B}", c: ["x{env:WHO}"]}'))
    role = read(text, {"WHO": "my", "A": "{env:WHO}"})
    (hook,) = role.hooks
    assert (hook.name, hook.config) == ("my-check", '{"a":"{env:WHO}/{env:B}","c":["xmy"]}')
    assert only(role).code == "no_such_variable"
    assert (only(role).line, only(role).column, only(role).field) == (4, 100, "hooks.custom[0].config.a")
    assert one(text).name == "{env:WHO}-check"


def test_other_placeholders_stay_and_that_is_said() -> None:
    """``${NAME}`` is no placeholder of rolebox."""
    role = read(role_of(entry(config='{a: "${HOME}"}')), {"HOME": "/root"})
    assert role.hooks[0].config == '{"a":"${HOME}"}'
    assert (only(role).severity, only(role).code) == ("info", "not_replaced")
    assert "{env:HOME}" in (only(role).hint or "")


# ---- what is wrong with a role ------------------------------------------------------------------------

WRONG_ROLES = [
    ("name: 5\nprompt: x", "wrong_type", (1, 7), "not a string"),
    ("name: [a]\nprompt: x", "wrong_type", (1, 7), "a list"),
    ("prompt: x", "no_name", (1, 1), "called by its folder"),
    ("name: ' '\nprompt: x", "no_name", (1, 7), "called by its folder"),
    ("name: ~\nprompt: x", "no_name", (1, 1), "called by its folder"),
    ("name: a\nhooks: []", "wrong_type", (2, 8), "a list, not a mapping"),
    ("name: a\nhooks: {custom: {a: 1}}", "wrong_type", (2, 17), "a mapping, not a list"),
    ("name: a\nhooks: {custom: x}", "wrong_type", (2, 17), "custom: [x]"),
    ("name: a\nhooks: {custm: []}", "unknown_key", (2, 9), "mean custom?"),
    ("name: a\nhooks: {builtin: true}", "wrong_type", (2, 18), "not a mapping"),
    ("name: a\nhooks: {builtin: {auto_activate: [x]}}", "wrong_type", (2, 34), "true or false"),
    ("name: a\nhooks: {builtin: {auto_activat: true}}", "unknown_key", (2, 19), "mean auto_activate?"),
    ("name: a\nhooks: {builtin: {recovery: true}}", "not_provided", (2, 19), "does nothing here"),
    ("name: a\nsubagents: [x, {name: b}, {hooks: {}}]", "not_provided", (2, 28), "subagent are not read"),
    ("name: a\nhook: {}", "unknown_key", (2, 1), "mean hooks?"),
    ("name: a\nprompt: x\nzzzz: 1", "other_key", (3, 1), "no key of a role"),
    ("name: a\nprompt: x\n[a]: 1", "unknown_key", (3, 1), "a list is no key"),
    ("name: a\nprompt: x\nname: b", "duplicate_key", (3, 1), "first at 1:1"),
    ("name: a\nlocked: 'yes'", "wrong_type", (2, 9), "true or false"),
    ("name: a\nfunctions: review", "wrong_type", (2, 12), "functions: [review]"),
    ("name: a\nfunctions: [Review]", "bad_function_name", (2, 13), "a-z, 0-9 and dashes"),
    ("name: a\nfunctions: [1]", "wrong_type", (2, 13), "in quotes"),
    ("name: a\nauto_activate: [pln]", "unknown_function", (2, 17), "mean plan?"),
    ("name: a\nauto_activate: [zzz]", "unknown_function", (2, 17), "name it in functions"),
    (f"name: a\nfunctions: [{', '.join(f'f{n}' for n in range(65))}]", "too_many", (2, 323), "65 functions"),
    ("\ufeffname: a\nprompt: x", "byte_order_mark", (None, None), "ignored"),
]


@pytest.mark.parametrize("text, code, where, words", WRONG_ROLES)
def test_a_fault_of_the_role_is_one_diagnostic_and_leaves_the_rest(
    text: str, code: str, where: tuple[int | None, int | None], words: str
) -> None:
    """One remark says what is wrong and where; the role itself is still a role."""
    role = read(text)
    diagnostic = only(role)
    assert (diagnostic.code, diagnostic.line, diagnostic.column) == (code, *where)
    assert words in f"{diagnostic.message}; {diagnostic.hint}"
    assert not role.refused
    assert not role.foreign


def test_a_description_that_is_no_text_is_left_out() -> None:
    """A role's description is a note."""
    assert read("name: a\nprompt: x\ndescription: [x]").description == ""


# ---- what is no role at all ---------------------------------------------------------------------------

KUBERNETES = "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: a}}\nrules: []\n"
FOREIGN = [
    (KUBERNETES.format(kind="Role"), "a Role of Kubernetes"),
    ("# rights\n---\n" + KUBERNETES.format(kind="ClusterRole"), "a ClusterRole of Kubernetes"),
    (KUBERNETES.format(kind="Role") + "---\n" + KUBERNETES.format(kind="RoleBinding"), "Role of Kubernetes"),
    ("---\n---\nkind: Role\napiVersion: v1\n", "a Role of Kubernetes"),
    (
        '{{- if .Values.rbac }}\napiVersion: v1\nkind: Role\nname: {{ include "x" . }}\n{{- end }}\n',
        "a template",
    ),
    ("- hosts: all\n  roles: [nginx]\n", "a list of Ansible"),
    ("galaxy_info: {author: me}\ndependencies: []\n", "a file of an Ansible role"),
    ("argument_specs: {main: {}}\n", "a file of an Ansible role"),
    ("name: admin\nrules: [read]\n", 'no role of rolebox: it holds "name", "rules"'),
    ("title: x\n---\ntitle: y\n", 'it holds "title"'),
    ("[a]: 1\n", 'it holds "a list"'),
    ("- a\n- b\n", "it holds a list"),
    ("text\n", "it holds a string"),
    ("!Role {a: 1}\n", "it holds a value with a tag"),
]


@pytest.mark.parametrize("text, words", FOREIGN)
def test_a_file_of_something_else_is_left_alone(text: str, words: str) -> None:
    """It is known by what it holds, also with several documents, and that is no error."""
    role = read(text)
    assert (role.refused, role.foreign, role.hooks) == (True, True, ())
    assert (only(role).severity, only(role).code) == ("info", "foreign_file")
    assert words in only(role).message


REFUSED = [
    ("", "empty_file", None, "is empty"),
    ("# nothing\n---\n---\n", "empty_file", None, "is empty"),
    ("name: a\nhooks: [", "not_yaml", 3, "not YAML"),
    ("kind: Role\nname: {{ x }} y\n", "not_yaml", 2, "not YAML"),
    ("name: a\nprompt: *x", "not_yaml", 2, "no anchor &x"),
    ("name: a\nprompt: x\n---\nname: b\nprompt: y\n", "several_documents", 4, "describes one role"),
    ("name: a\nhooks: " + "[" * 40 + "]" * 40, "too_deep", 2, "more than 32 deep"),
    (b"name: \xff\n", "not_utf8", 1, "0xff"),
    (b"name: a\nprompt: \x01\n", "not_yaml", 2, "does not allow"),
    (b"prompt: |\n" + b"  x\n" * 300_000, "file_too_large", None, "more than 1,048,576"),
]


@pytest.mark.parametrize("text, code, line, words", REFUSED)
def test_a_file_that_cannot_be_used_is_refused(
    text: str | bytes, code: str, line: int | None, words: str
) -> None:
    """One error says why; nothing of the file is used, and it is not taken for somebody else's."""
    role = read(text)
    assert (role.refused, role.foreign, role.hooks) == (True, False, ())
    assert (only(role).severity, only(role).code, only(role).line) == ("error", code, line)
    assert words in only(role).message


def test_a_misspelled_key_still_makes_a_role() -> None:
    """Somebody who writes ``hook`` means a role, and is told so."""
    role = read("name: a\nprompts: x\n")
    assert not role.refused
    assert said(role) == ["other_key"]


def test_remarks_are_bounded_and_counted() -> None:
    """A file full of faults gives a bounded number of remarks, and the number of the others."""
    role = read(role_of(*(f"name: a{n}, events: [x], module: a.js, zz: 1" for n in range(250))))
    assert len(role.diagnostics) == rules.MAX_DIAGNOSTICS + 1
    assert role.diagnostics[-1].code == "more_findings"
    assert role.diagnostics[-1].message == f"{500 - rules.MAX_DIAGNOSTICS} more findings are not listed"


PIECES = st.sampled_from(
    [
        *("name: a\n", "hooks:\n", "  custom:\n", "    - name: x\n", "      events: [event]\n"),
        *(
            "      module: a.js\n",
            "      config: &a {b: *a}\n",
            "      <<: *a\n",
            "      filter: {tools: []}\n",
        ),
        *(
            "  builtin: {auto_activate: true}\n",
            "functions: [a]\n",
            "---\n",
            "- x\n",
            "{",
            "}",
            "[",
            "]",
            ": ",
        ),
        *(
            "kind: Role\n",
            "apiVersion: v1\n",
            "auto_activate: ~\n",
            "      priority: 1e999\n",
            "&a ",
            "*a ",
            "\t",
        ),
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=25).map("".join))
def test_reading_never_raises_and_every_remark_has_its_place(text: str) -> None:
    """Whatever bytes there are: a role comes back, its hooks are whole and its remarks lie in the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        role = read(text.encode("utf-8", "replace"), {"A": "b"})
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + 2
    lines += text.count("\u2029")
    for diagnostic in role.diagnostics:
        assert diagnostic.severity == rules.CODES[diagnostic.code]
        assert diagnostic.line is None or 1 <= diagnostic.line <= lines
    for hook in role.hooks:
        assert hook.name
        assert hook.events
        assert hook.config is None or isinstance(json.loads(hook.config), dict)
    assert not (role.refused and role.hooks)
