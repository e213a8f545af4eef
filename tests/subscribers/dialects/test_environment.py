"""The environment rules: what a hook gets and what it cannot set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.environment import HOOK_VARIABLES, RULES, SAFE_PATH, blocked, search_path

PAGE_NAMES = (
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "PATH",
    "HOME",
)


def test_the_page_blocks_exactly_its_six_names() -> None:
    """The rules that are the page's are the six names that it lists."""
    assert tuple(rule.name for rule in RULES if rule.origin == "page") == PAGE_NAMES


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_a_name_of_the_page_is_blocked_by_its_own_rule(name: str) -> None:
    """A page rule wins over a wider rule of ours, and case does not matter."""
    rule = blocked(name.title())
    assert rule is not None
    assert (rule.name, rule.origin) == (name, "page")


@pytest.mark.parametrize(
    "name",
    [
        *("ZERO_HOOK_EVENT", "ZERO_HOOK_ANYTHING", "zero_hook_payload", "PRXBUS_DEPTH", "prxbus_x"),
        *("LD_AUDIT", "LD_DEBUG", "DYLD_FRAMEWORK_PATH", "GLIBC_TUNABLES", "GCONV_PATH"),
        *("BASH_ENV", "ENV", "PS4", "IFS", "BASH_FUNC_ls%%", "SHELLOPTS"),
        *("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONWARNINGS", "NODE_OPTIONS", "NODE_PATH"),
        *("PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "LUA_INIT_5_4", "JAVA_TOOL_OPTIONS"),
        *("DOTNET_STARTUP_HOOKS", "R_PROFILE_USER", "PHPRC", "OPENSSL_CONF", "GTK_MODULES"),
    ],
)
def test_loaders_interpreters_and_our_own_names_are_blocked(name: str) -> None:
    """Variables that make a program load other code, and those that prxbus sets, cannot be set."""
    rule = blocked(name)
    assert rule is not None
    assert rule.origin == "prxbus"


@pytest.mark.parametrize(
    "name",
    [
        *("LOG_DIR", "AUDIT_LOG", "CUSTOM_VAR", "MY_PATH", "PATHS", "HOMEPAGE", "ENVIRONMENT", "LD"),
        *("PYTHONUNBUFFERED", "PYTHONUTF8", "LANG", "TZ", "HTTP_PROXY", "PRXBUS", "ZERO_HOOK", ""),
    ],
)
def test_other_names_are_free(name: str) -> None:
    """A name that merely resembles a blocked one can be set."""
    assert blocked(name) is None


@given(st.sampled_from(RULES), st.text("AB_", max_size=3), st.data())
def test_every_rule_blocks_in_any_case(rule: object, rest: str, data: st.DataObject) -> None:
    """Each rule blocks its name, a prefix rule also whatever follows, in upper, lower and mixed case."""
    assert rule in RULES
    found = RULES[RULES.index(rule)]
    name = found.name + rest if found.prefix else found.name
    mixed = "".join(c.lower() if data.draw(st.booleans()) else c for c in name)
    assert blocked(mixed) is not None


def test_every_rule_says_why_and_none_stands_twice() -> None:
    """Each row of the table has a reason and a name of its own."""
    assert all(rule.reason for rule in RULES)
    assert len({(rule.name, rule.prefix) for rule in RULES}) == len(RULES)


def test_no_documented_variable_but_can_be_overridden() -> None:
    """Whatever prxbus documents for a run, an action's env cannot replace."""
    assert [name for name in HOOK_VARIABLES if blocked(name) is None] == []


def test_the_folder_of_prxbus_comes_last_on_the_path() -> None:
    """A program of the system wins over one that lies beside prxbus."""
    assert search_path("/opt/prxbus/bin") == ("/usr/local/bin", "/usr/bin", "/bin", "/opt/prxbus/bin")


@pytest.mark.parametrize("folder", ["", "/usr/bin", "/opt/a:b"])
def test_a_folder_that_adds_nothing_or_cannot_be_named_is_left_out(folder: str) -> None:
    """No folder twice, none empty (that would mean the working directory), none with a colon."""
    assert search_path(folder) == SAFE_PATH
