"""What is known of rolebox's program, row by row, and the tests that show what prxbus does there.

``same``: as the program does. Where it is False the page says otherwise, or more is promised than the program
keeps; the table of differences in the README has the words.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One behaviour of the program, in words of our own, and what shows ours."""

    about: str
    same: bool
    shown_by: tuple[str, ...]


_BEFORE: Final = "PROGRAM::test_tool_before_runs_in_both_phases_with_tool_and_args"
_AFTER: Final = "PROGRAM::test_tool_after_runs_in_both_phases_whatever_is_active"
_CHAT: Final = "PROGRAM::test_chat_message_runs_in_both_phases_and_activates_once"
_SYSTEM: Final = "PROGRAM::test_system_transform_runs_in_both_phases_around_the_core"
_EVENT: Final = "PROGRAM::test_a_hook_of_event_gets_its_type_and_properties_of_any_type"
_ALONE: Final = "PROGRAM::test_an_event_without_a_session_reaches_the_only_role"
_LOADED: Final = "PROGRAM::test_a_hook_knows_its_name_and_config_while_it_is_loaded"
_DISPOSED: Final = "PROGRAM::test_what_is_opened_while_it_is_loaded_is_there_until_it_is_disposed"
_FIELDS: Final = "PAGE::test_every_field_of_the_schema_has_its_effect"
_LOG: Final = "PAGE::test_the_log_of_the_page_is_written"
_FAULT: Final = "ENTRY::test_a_fault_in_a_hook_is_one_diagnostic_and_leaves_its_siblings"
_CHAIN: Final = "DISPATCH::test_hooks_of_one_event_see_each_other_s_edits_and_the_ask_returns_the_last"
_CHANGES: Final = "FAULTS::test_changes_come_into_force_and_what_breaks_leaves_what_was_there"
_JOINED: Final = "PENDING::test_texts_of_a_session_are_joined_with_a_newline_and_delivered_once"
_ACTIVE: Final = "FUNCTIONS::test_the_first_message_activates_once"
_LOCKED: Final = "FUNCTIONS::test_locked_functions_stay_active_whatever_is_requested"
_FILTERS: Final = "CHAIN::test_filters_hold_where_they_mean_something"

TESTED: Final = (  # what its own tests assert
    Row("tool before: the before phase, then the after phase", True, (_BEFORE,)),
    Row("tool before: tool and args are passed", True, (_BEFORE,)),
    Row("tool before: a tool without a schema passes as it is", True, (_BEFORE,)),
    Row("tool before: nothing but the hooks is needed", True, (_BEFORE,)),
    Row("tool after: nothing runs without a session", False, (_ALONE,)),
    Row("tool after: the after phase needs an active function", False, (_AFTER,)),
    Row("tool after: tool, args and output are passed", True, (_AFTER,)),
    Row("chat message: both phases, with the text", True, (_CHAT,)),
    Row("chat message: functions are activated once", True, (_CHAT, _ACTIVE)),
    Row("system transform: both phases", True, (_SYSTEM,)),
    Row(
        "system transform: what waits is pushed as one part, then gone",
        True,
        ("DISPATCH::test_injected_texts_are_one_element_of_the_next_prompt_and_then_gone",),
    ),
    Row(
        "system transform: what waits stands before the functions",
        True,
        ("HOOKS::test_what_hooks_inject_is_in_the_next_prompt_once", _SYSTEM),
    ),
    Row("event: both phases for any type, with type and properties", True, (_EVENT,)),
    Row("inject: a second text is joined with a newline", True, (_JOINED,)),
    Row("inject: sessions are independent", True, (_JOINED,)),
    Row("a module by a relative path with named exports is called once", True, (_BEFORE, _LOADED)),
)

ROLE_FILE: Final = (
    Row("a module that is missing in an entry takes all hooks along", False, (_FAULT,)),
    Row("events that are no list take all hooks along", False, (_FAULT,)),
    Row("an unknown event never fires, and nobody says so", False, (_FAULT,)),
    Row("an event that is listed twice runs twice", False, (_FAULT,)),
    Row("an unknown phase never fires, and nobody says so", False, (_FAULT,)),
    Row(
        "a priority that is a number in quotes is that number",
        True,
        ("ENTRY::test_a_quoted_number_is_taken_for_the_number",),
    ),
    Row("a priority that is no number makes the order undefined", False, (_FAULT,)),
    Row("an empty list of tools never fires", False, (_FAULT,)),
    Row("two hooks may have one name", True, ("ENTRY::test_hooks_of_one_name_both_run_and_it_is_said",)),
    Row("priority 50 and phase after", True, ("FILE::test_a_hook_has_the_defaults_of_the_page",)),
    Row(
        "equal priorities keep the order of the file",
        True,
        ("CHAIN::test_the_order_is_phase_then_priority_then_registration",),
    ),
    Row(
        "placeholders of the environment work in config",
        True,
        ("FILE::test_placeholders_are_replaced_in_every_text_that_is_read",),
    ),
)

MODULES: Final = (
    Row(
        "a relative path is one of the workspace",
        False,
        ("MODULES::test_a_relative_path_is_one_of_the_role",),
    ),
    Row(
        "a relative path may lead anywhere",
        False,
        ("MODULES::test_a_relative_path_may_not_leave_the_role",),
    ),
    Row(
        "a default export is never looked into",
        False,
        ("PAGE::test_the_complete_example_warns_in_the_next_prompt",),
    ),
    Row("named exports are handlers", True, (_BEFORE,)),
    Row("CommonJS works", True, ("EXAMPLES::test_the_agent_in_node_and_its_role",)),
    Row("what failed to load is not tried again", False, (_CHANGES,)),
    Row(
        "two hooks of one file share its state",
        False,
        ("HOOKS::test_every_module_is_loaded_for_each_hook",),
    ),
)

DISPATCH: Final = (
    Row("hooks are awaited one by one, and no failure is passed on", True, (_CHAIN,)),
    Row(
        "a hook that hangs keeps the agent waiting for ever",
        False,
        ("FAULTS::test_only_the_bad_hook_is_lost_and_the_others_serve_the_next_event_within_a_second",),
    ),
    Row(
        "hooks of any role fire for every session",
        False,
        ("HOOKS::test_hooks_fire_for_the_sessions_of_their_role",),
    ),
    Row("an edit of args reaches the tool", True, (_BEFORE,)),
    Row(
        "a list of the prompt is edited in place", True, ("EXAMPLES::test_the_agent_in_python_and_its_role",)
    ),
    Row("a member of the input that is set anew changes nothing", False, (_SYSTEM,)),
    Row("hookName and config in a handler are placeholders", False, (_FIELDS,)),
    Row("a hook logs under a placeholder", False, (_LOG,)),
    Row("filters are exact names", True, (_FILTERS,)),
    Row("a filter for tools is passed over for other events", True, (_FILTERS,)),
    Row("a call without a tool's name passes the filter", False, (_FILTERS,)),
)

LIFE: Final = (
    Row("texts wait in memory alone", False, ("HOOKS::test_texts_roles_and_functions_survive_kill_9",)),
    Row(
        "texts wait without bound",
        False,
        ("PENDING::test_sessions_are_bounded_and_texts_do_not_wait_for_ever",),
    ),
    Row(
        "what a before hook injects is in the same prompt",
        True,
        ("DISPATCH::test_injected_texts_are_one_element_of_the_next_prompt_and_then_gone",),
    ),
    Row(
        "what an after hook injects is in the next prompt",
        True,
        ("DISPATCH::test_a_text_that_an_after_hook_injects_waits_for_the_next_prompt",),
    ),
    Row("a failing onLoad leaves the hook in force", True, (_LOG,)),
    Row("of two hooks with one name one is disposed", False, (_DISPOSED, _CHANGES)),
    Row(
        "auto_activate is a list of the role",
        True,
        ("FUNCTION::test_the_list_and_the_marks_say_what_is_activated_by_itself",),
    ),
    Row("locked functions stay", True, (_LOCKED, "FUNCTION::test_what_is_locked_is_activated_by_itself")),
    Row("info --check looks at no hook", False, ("PAGE::test_the_page_s_command_checks_a_role",)),
)

ROWS: Final = (*TESTED, *ROLE_FILE, *MODULES, *DISPATCH, *LIFE)
