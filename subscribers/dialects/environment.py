"""What a hook finds in its environment, and what an action's ``env`` cannot set: two tables and their rules.

The environment of a hook is built from nothing: what is not named here or in the action's ``env`` is not
there, ``HOME`` included. Blocked names are compared without case, as the PRX page's own list is meant.
It refuses to know the environment of this process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SAFE_PATH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
"""Where command names are looked up, before the folder of the running ``prxbus``."""


def search_path(prxbus_folder: str) -> tuple[str, ...]:
    """The folders of a hook's ``PATH``, in order; a folder that ``PATH`` cannot hold is left out."""
    if not prxbus_folder or ":" in prxbus_folder or prxbus_folder in SAFE_PATH:
        return SAFE_PATH
    return (*SAFE_PATH, prxbus_folder)


HOOK_VARIABLES: Final = {
    "ZERO_HOOK_EVENT": "name of the event, such as `tool_call`",
    "ZERO_HOOK_SESSION": "session id; empty when the event has none",
    "ZERO_HOOK_TIMESTAMP": "time of the event: RFC 3339, milliseconds, UTC",
    "ZERO_HOOK_PAYLOAD": "the whole envelope as JSON; unset when it is longer than 8,192 bytes",
    "ZERO_HOOK_PAYLOAD_FILE": "a file with the same bytes, of any length; removed after the run",
    "PRXBUS_RUNTIME_DIR": "the bus that the event came from: `prxbus pub` and the client find it by this",
    "PRXBUS_DEPTH": "recursion depth of what the hook publishes: the depth of its event plus one",
    "PRXBUS_CAUSE": "id of the event, which becomes the cause of what the hook publishes",
    "PATH": "`/usr/local/bin:/usr/bin:/bin`, then the folder of the running `prxbus`",
}
"""Every variable that a hook gets besides its own ``env``, and what it holds."""


@dataclass(frozen=True, slots=True)
class EnvironmentRule:
    """A name, or with ``prefix`` every name that begins so, that ``env`` cannot set, and why.

    ``origin``: the PRX page blocks it, or prxbus does.
    """

    name: str
    reason: str
    prefix: bool = False
    origin: Literal["page", "prxbus"] = "prxbus"


def _rules(reason: str, *names: str) -> tuple[EnvironmentRule, ...]:
    return tuple(EnvironmentRule(n.removesuffix("*"), reason, prefix=n.endswith("*")) for n in names)


RULES: Final = (
    EnvironmentRule("LD_PRELOAD", "injects a library", origin="page"),
    EnvironmentRule("LD_LIBRARY_PATH", "changes where libraries come from", origin="page"),
    EnvironmentRule("DYLD_INSERT_LIBRARIES", "injects a library (macOS)", origin="page"),
    EnvironmentRule("DYLD_LIBRARY_PATH", "changes where libraries come from (macOS)", origin="page"),
    EnvironmentRule("PATH", "a hook gets a minimal safe PATH", origin="page"),
    EnvironmentRule("HOME", "a home directory is not spoofed", origin="page"),
    *_rules("set by prxbus for every run", "ZERO_HOOK_*", "PRXBUS_*"),
    *_rules("controls the dynamic loader (LD_AUDIT and its kin)", "LD_*", "DYLD_*", "GLIBC_TUNABLES"),
    *_rules("makes the C library load modules", "GCONV_PATH"),
    *_rules("a shell reads or runs it at start", "BASH_ENV", "ENV", "ZDOTDIR", "PROMPT_COMMAND", "PS4"),
    *_rules(
        "changes how a shell runs a script", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "IFS", "CDPATH", "FPATH"
    ),
    *_rules("changes what Python loads", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR"),
    *_rules("changes what Python loads", "PYTHONPYCACHEPREFIX", "PYTHONCASEOK", "PYTHONEXECUTABLE"),
    *_rules("makes Python run code", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONWARNINGS"),
    *_rules("changes what Node.js loads", "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE"),
    *_rules("changes what Perl loads", "PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB"),
    *_rules("changes what Ruby loads", "RUBYOPT", "RUBYLIB", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE"),
    *_rules("changes what Lua runs or loads", "LUA_INIT*", "LUA_PATH*", "LUA_CPATH*"),
    *_rules("changes what PHP loads", "PHPRC", "PHP_INI_SCAN_DIR"),
    *_rules("changes what Tcl loads", "TCLLIBPATH", "TCL_LIBRARY"),
    *_rules("changes what R runs at start", "R_PROFILE*", "R_ENVIRON*", "R_LIBS*"),
    *_rules(
        "changes what a Java machine loads",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "CLASSPATH",
    ),
    *_rules("changes what .NET loads", "DOTNET_STARTUP_HOOKS", "CORECLR_*", "COR_PROFILER*"),
    *_rules("makes OpenSSL load modules", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES"),
    *_rules(
        "makes desktop libraries load modules",
        "GTK_MODULES",
        "GIO_EXTRA_MODULES",
        "GIO_MODULE_DIR",
        "QT_PLUGIN_PATH",
    ),
)
"""Every name that an action's ``env`` cannot set. The entry is dropped with a warning, the action runs."""

_EXACT: Final = {rule.name: rule for rule in RULES if not rule.prefix}
_PREFIXES: Final = tuple(rule for rule in RULES if rule.prefix)


def blocked(name: str) -> EnvironmentRule | None:
    """The rule that forbids an action to set this variable, or None when it may."""
    upper = name.upper()
    exact = _EXACT.get(upper)
    if exact is not None:
        return exact
    return next((rule for rule in _PREFIXES if upper.startswith(rule.name)), None)
