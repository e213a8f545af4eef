"""Every sentence of the LibreFang page, and every difference from its program, with the tests that show it.

The page is not ours to ship. A sentence is named by the beginning of its SHA-256 and by words of our own;
``FILES`` abbreviates where the tests are. A heading or a label states nothing, so nothing is shown for it.
"""

from __future__ import annotations

from typing import Final

from tests.conformance.shown import Sentence

FILES: Final = {
    "BUDGET": "tests/subscribers/runtimes/test_budget.py",
    "CHAIN": "tests/integration/test_transform_chain.py",
    "DIALECT": "tests/subscribers/dialects/test_librefang.py",
    "FAULTS": "tests/integration/test_transform_faults.py",
    "FILE": "tests/subscribers/dialects/test_librefang_file.py",
    "HOME": "tests/subscribers/sources/test_librefang_home.py",
    "HOOKS": "tests/integration/test_librefang_hooks.py",
    "PAGE": "tests/conformance/librefang/test_page_runs.py",
    "POOL": "tests/subscribers/runtimes/test_pool.py",
    "RESOLVE": "tests/subscribers/sources/test_librefang_resolve.py",
    "RULE": "tests/subscribers/hooks/test_transform_chain.py",
    "SCANS": "tests/subscribers/sources/test_librefang_hooks.py",
    "SPEC": "tests/subscribers/hooks/test_spec.py",
    "UP": "tests/integration/test_librefang_up.py",
    "VIEWS": "tests/broker/protocol/test_projections.py",
}

_TABLES: Final = "PAGE::test_the_tables_of_the_page_are_ours"
_FIELDS: Final = (_TABLES, "PAGE::test_each_event_of_the_page_fires_with_its_documented_payload")


SENTENCES: Final = (
    Sentence("efad69fe", "title", ()),
    Sentence(
        "63ebe757",
        "hooks answer events of agents and sessions without a change of the agent",
        ("PAGE::test_the_slack_sample_notifies",),
    ),
    Sentence(
        "ca09f651",
        "the program is started, gets its data in variables, and nothing depends on how it ends",
        (
            "HOOKS::test_every_event_arrives_with_every_field_of_the_page",
            "HOOKS::test_failures_are_warnings_with_hook_event_code_and_stderr",
        ),
    ),
    Sentence("52daa71e", "heading: contents", ()),
    Sentence("d5b44828", "heading: folders", ()),
    Sentence(
        "1581610e",
        "each hook has a folder of its own below the home",
        (
            "PAGE::test_the_other_hook_of_the_pages_home_runs_beside_it",
            "HOME::test_each_folder_with_the_file_is_a_hook_in_byte_order",
        ),
    ),
    Sentence(
        "75fa537e",
        "exactly one HOOK.yaml in each",
        ("HOME::test_what_looks_like_a_hook_file_and_is_none_is_said",),
    ),
    Sentence(
        "0541bb19",
        "any file of the folder or an absolute path, executable",
        (
            "RESOLVE::test_the_whole_command_is_a_file_of_the_folder",
            "RESOLVE::test_an_absolute_path_stands_for_itself",
            "RESOLVE::test_what_cannot_be_run_is_named",
        ),
    ),
    Sentence("143cf892", "heading: the file", ()),
    Sentence("c060f25d", "head of the table of keys", ()),
    Sentence(
        "e2e2c36f",
        "name, shown in the log, required",
        (
            "HOOKS::test_failures_are_warnings_with_hook_event_code_and_stderr",
            "FILE::test_a_required_key_that_is_missing_is_named",
        ),
    ),
    Sentence("a85798a9", "description, a note, not required", ("FILE::test_every_key_has_its_effect",)),
    Sentence(
        "c90431c4",
        "events, names or patterns, required",
        (
            "FILE::test_an_exact_name_is_that_event",
            "FILE::test_a_pattern_stands_for_the_events_of_the_page",
            "FILE::test_a_required_key_that_is_missing_is_named",
        ),
    ),
    Sentence(
        "58640d69",
        "command, required",
        ("FILE::test_every_key_has_its_effect", "FILE::test_a_required_key_that_is_missing_is_named"),
    ),
    Sentence("278752a1", "heading: events", ()),
    Sentence("2944123b", "head of the table of events", ()),
    Sentence("707863f1", "agent:start", ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",)),
    Sentence("35a00e00", "agent:end", ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",)),
    Sentence("7c24c1af", "agent:step", ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",)),
    Sentence("9a5ca0c3", "session:start", ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",)),
    Sentence("41421e8b", "session:end", ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",)),
    Sentence("332a93e6", "session:reset", ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",)),
    Sentence(
        "d7543b11",
        "gateway:startup when the start is complete",
        ("UP::test_gateway_startup_fires_when_everything_is_ready",),
    ),
    Sentence("6bb6dc1a", "lead-in: patterns", ()),
    Sentence("1aeb402e", "head of the table of patterns", ()),
    Sentence(
        "31bfe848",
        "* is all events",
        (
            "FILE::test_a_pattern_stands_for_the_events_of_the_page",
            "HOOKS::test_every_event_arrives_with_every_field_of_the_page",
            "PAGE::test_the_tables_of_the_page_are_ours",
        ),
    ),
    Sentence("ae27b474", "heading: variables", ()),
    Sentence("fc65fb93", "head of the table of variables", ()),
    Sentence("d0437ce7", "HOOK_EVENT is the exact name", ("DIALECT::test_the_event_has_the_pages_name",)),
    Sentence(
        "7b96e200",
        "HOOK_EVENT_DATA is the payload as JSON",
        (
            "DIALECT::test_the_payload_travels_alone",
            "PAGE::test_each_event_of_the_page_fires_with_its_documented_payload",
        ),
    ),
    Sentence("c79960b6", "heading: payloads", ()),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence("7ccbccb4", "agent:start has agent_id", _FIELDS),
    Sentence("958934fa", "agent:start has session_id", _FIELDS),
    Sentence("96f25056", "agent:start has sender", _FIELDS),
    Sentence(
        "0a501eca",
        "agent:start has a preview of 120 characters",
        (*_FIELDS, "VIEWS::test_previews_are_the_first_120_code_points"),
    ),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence("d98cc9a6", "agent:end has agent_id", _FIELDS),
    Sentence("958934fa", "agent:end has session_id", _FIELDS),
    Sentence("52761052", "agent:end has status", _FIELDS),
    Sentence(
        "401ef176",
        "agent:end has tokens_used",
        (*_FIELDS, "VIEWS::test_librefang_sees_both_names_of_what_its_page_and_its_program_call_differently"),
    ),
    Sentence("c35b7a17", "agent:end has steps", _FIELDS),
    Sentence("bd0f8ad4", "agent:end has duration_ms", _FIELDS),
    Sentence(
        "1b776273",
        "agent:end has a preview of 120 characters",
        (*_FIELDS, "VIEWS::test_previews_are_the_first_120_code_points"),
    ),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence("cbdb3b40", "agent:step has agent_id", _FIELDS),
    Sentence("3b32d57f", "agent:step has session_id", _FIELDS),
    Sentence("abf73abe", "agent:step has step_index", _FIELDS),
    Sentence(
        "4d19a86a",
        "agent:step has tool_call or null",
        (*_FIELDS, "HOOKS::test_every_event_arrives_with_every_field_of_the_page"),
    ),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence("1e1e9bcd", "session:start has agent_id", _FIELDS),
    Sentence("37cf0431", "session:start has session_id", _FIELDS),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence("1e1e9bcd", "session:end has agent_id", _FIELDS),
    Sentence("5f35f05d", "session:end has session_id", _FIELDS),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence("1e1e9bcd", "session:reset has agent_id", _FIELDS),
    Sentence("3e8ec96f", "session:reset has session_id", _FIELDS),
    Sentence("97555182", "session:reset has reset_reason", _FIELDS),
    Sentence("c34d139d", "session:reset has message_count_cleared", _FIELDS),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence(
        "cdba8d9c",
        "gateway:startup has version",
        ("UP::test_gateway_startup_fires_when_everything_is_ready",),
    ),
    Sentence(
        "87bd1d8e",
        "gateway:startup has started_at, ISO 8601, UTC",
        ("UP::test_gateway_startup_fires_when_everything_is_ready",),
    ),
    Sentence(
        "b2eac2e5",
        "a transform rewrites a tool's raw result",
        (
            "CHAIN::test_a_function_replaces_the_output",
            "CHAIN::test_a_command_replaces_the_output",
            "FILE::test_a_transform_is_no_event_of_a_file",
        ),
    ),
    Sentence(
        "a7466bb8",
        "it sees the raw output, what follows sees the new one",
        ("CHAIN::test_the_first_text_wins_and_each_sees_the_original",),
    ),
    Sentence("ee20d646", "head of a table of fields", ()),
    Sentence("ae04a626", "a transform gets agent_id", (_TABLES,)),
    Sentence("1aa16b99", "a transform gets tool_name", (_TABLES,)),
    Sentence("446d9f5c", "a transform gets tool_input", (_TABLES,)),
    Sentence("2634c90b", "a transform gets tool_output", (_TABLES,)),
    Sentence("7ded2d84", "lead-in: what a handler returns", ()),
    Sentence("889cda63", "a value replaces", ("CHAIN::test_a_function_replaces_the_output",)),
    Sentence(
        "d600faf9",
        "None passes on to the next",
        ("CHAIN::test_nobody_with_a_text_leaves_the_output_as_it_is",),
    ),
    Sentence(
        "6b83a773",
        "an error is logged and skipped",
        ("FAULTS::test_a_bad_function_is_ended_and_the_next_one_answers",),
    ),
    Sentence(
        "c0f654d4", "the others run", ("FAULTS::test_a_bad_function_is_ended_and_the_next_one_answers",)
    ),
    Sentence(
        "cc93e248",
        "in order of registration, the first value wins",
        ("RULE::test_the_first_value_wins_and_nothing_runs_after_it",),
    ),
    Sentence(
        "4c57c070",
        "good for secrets, 5 MB of JSON to 200 lines, stubs",
        ("CHAIN::test_five_megabytes_become_two_hundred_lines",),
    ),
    Sentence("3a382529", "heading: sample", ()),
    Sentence(
        "ba9bcf3c",
        "each end of an agent notifies",
        (
            "PAGE::test_the_slack_sample_notifies",
            "PAGE::test_the_slack_sample_does_nothing_without_an_address",
            "PAGE::test_the_script_ends_early_for_other_events",
        ),
    ),
    Sentence("d9ab9faf", "lead-in: make it executable", ()),
    Sentence(
        "1cf883da",
        "scanned at start and after SIGHUP",
        ("UP::test_sighup_scans_again_and_a_running_hook_ends_as_it_began",),
    ),
    Sentence(
        "2af8ff0b",
        "not reloaded meanwhile",
        (
            "UP::test_edits_wait_for_sighup_unless_watching_is_configured",
            "UP::test_sighup_scans_again_and_a_running_hook_ends_as_it_began",
        ),
    ),
    Sentence("d4c908b6", "heading: errors", ()),
    Sentence(
        "7fa10620",
        "another exit code is a warning",
        ("HOOKS::test_failures_are_warnings_with_hook_event_code_and_stderr",),
    ),
    Sentence(
        "8ff7e42f",
        "5 s, then ended",
        ("HOOKS::test_a_run_of_more_than_five_seconds_is_killed_with_its_group",),
    ),
    Sentence(
        "df4a57c2",
        "a missing program is a warning, the others run",
        ("HOOKS::test_failures_are_warnings_with_hook_event_code_and_stderr",),
    ),
    Sentence("688f8923", "heading: limits", ()),
    Sentence(
        "1f8de86d",
        "a hook is lent no model: it gets an event and nothing to call",
        ("HOOKS::test_the_daemons_environment_is_inherited_without_the_token",),
    ),
    Sentence("307224fe", "no return value", ("HOOKS::test_what_a_hook_says_changes_nothing",)),
    Sentence(
        "adffcbb5",
        "no secret is injected",
        (
            "PAGE::test_the_slack_sample_does_nothing_without_an_address",
            "HOOKS::test_the_daemons_environment_is_inherited_without_the_token",
        ),
    ),
    Sentence(
        "df017afd",
        "one program for each file",
        ("FILE::test_a_repeated_key_is_refused", "FILE::test_a_wrong_value_is_one_diagnostic_with_its_place"),
    ),
)

DIFFERENCES_SHOWN: Final = {
    "L1": ("HOOKS::test_a_run_of_more_than_five_seconds_is_killed_with_its_group",),
    "L2": (
        "UP::test_sighup_scans_again_and_a_running_hook_ends_as_it_began",
        "UP::test_edits_wait_for_sighup_unless_watching_is_configured",
    ),
    "L3": (
        "FILE::test_a_pattern_stands_for_the_events_of_the_page",
        "FILE::test_any_other_pattern_is_refused_by_name",
    ),
    "L4": ("VIEWS::test_previews_are_the_first_120_code_points",),
    "L5": (
        "HOOKS::test_every_event_arrives_with_every_field_of_the_page",
        "VIEWS::test_librefang_sees_both_names_of_what_its_page_and_its_program_call_differently",
    ),
    "L6": ("HOOKS::test_what_an_agent_publishes_arrives_in_the_pages_words",),
    "L7": ("PAGE::test_the_other_hook_of_the_pages_home_runs_beside_it",),
    "L8": ("FILE::test_a_transform_is_no_event_of_a_file", _TABLES),
    "L9": ("CHAIN::test_a_command_replaces_the_output",),
    "L10": (
        "SPEC::test_a_key_tells_hooks_apart_and_the_events_of_one_hook_not",
        "BUDGET::test_one_hook_cannot_take_every_slot",
        "POOL::test_what_has_no_room_is_dropped_and_counted",
    ),
    "L11": ("FILE::test_every_key_has_its_effect", "HOOKS::test_arguments_are_passed_as_they_are"),
    "L12": (
        "FILE::test_an_unknown_key_is_ignored_and_named",
        "FILE::test_an_unknown_event_is_named_with_the_nearest",
    ),
    "L13": (
        "SCANS::test_a_file_that_breaks_keeps_its_last_good_hook_and_says_so",
        "SCANS::test_a_file_that_never_was_good_has_no_hook",
    ),
    "L14": ("HOME::test_what_looks_like_a_hook_file_and_is_none_is_said",),
    "L15": ("RESOLVE::test_a_file_of_the_folder_comes_before_the_path",),
    "L16": (
        "RESOLVE::test_a_command_with_arguments_is_split_where_there_are_no_args",
        "RESOLVE::test_with_args_the_command_is_never_split",
    ),
    "L17": (
        "DIALECT::test_the_limit_is_the_kernels",
        "HOOKS::test_a_payload_beyond_a_variable_arrives_in_a_file",
    ),
    "L18": ("HOOKS::test_what_a_hook_leaves_running_goes_on",),
    "L19": ("HOOKS::test_the_daemons_environment_is_inherited_without_the_token",),
    "L20": ("HOOKS::test_what_a_hook_says_changes_nothing",),
    "L21": ("UP::test_gateway_startup_fires_when_everything_is_ready",),
    "L22": ("HOOKS::test_the_daemons_environment_is_inherited_without_the_token",),
}
"""Tests that show each row of the table of differences."""
