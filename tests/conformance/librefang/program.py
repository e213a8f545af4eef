"""What is known of LibreFang's program, row by row, and the tests that show what prxbus does there.

``same``: as the program does. Where it is False the page says otherwise, or something is said that the
program leaves unsaid; the table of differences in the README has the words.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One behaviour of the program, in words of our own, and what shows ours."""

    about: str
    same: bool
    shown_by: tuple[str, ...]


_REFUSED: Final = "FILE::test_a_file_that_cannot_be_used_is_one_diagnostic"
_WRONG: Final = "FILE::test_a_wrong_value_is_one_diagnostic_with_its_place"
_MISSING: Final = "FILE::test_a_required_key_that_is_missing_is_named"
_LISTED: Final = "HOME::test_each_folder_with_the_file_is_a_hook_in_byte_order"
_PATTERNS: Final = "FILE::test_a_pattern_stands_for_the_events_of_the_page"
_ENVIRONMENT: Final = "HOOKS::test_the_daemons_environment_is_inherited_without_the_token"
_KILLED: Final = "HOOKS::test_a_run_of_more_than_five_seconds_is_killed_with_its_group"
_FAILURES: Final = "HOOKS::test_failures_are_warnings_with_hook_event_code_and_stderr"

DISCOVERY: Final = (
    Row("the root is <home>/hooks", True, ("HOME::test_a_home_is_named_or_is_the_usual_one", _LISTED)),
    Row("a missing root is an empty set", True, ("HOME::test_a_home_without_hooks_has_none",)),
    Row("a root that cannot be read is said", False, ("SCANS::test_a_scan_that_fails_changes_nothing",)),
    Row("only immediate children count", True, (_LISTED,)),
    Row("links to folders and hidden folders count", True, (_LISTED,)),
    Row("the order is that of the bytes of the paths", True, (_LISTED,)),
    Row(
        "the name is exactly HOOK.yaml", True, ("HOME::test_what_looks_like_a_hook_file_and_is_none_is_said",)
    ),
    Row(
        "a folder without one is skipped",
        False,
        ("HOME::test_what_looks_like_a_hook_file_and_is_none_is_said",),
    ),
    Row(
        "several documents and repeated keys are errors",
        True,
        (_REFUSED, "FILE::test_a_repeated_key_is_refused"),
    ),
    Row("unknown keys are ignored", False, ("FILE::test_an_unknown_key_is_ignored_and_named",)),
    Row("name is a required string", True, (_MISSING, _WRONG)),
    Row("an empty name is accepted", True, ("FILE::test_an_empty_name_is_the_folders",)),
    Row("two hooks may have the same name", True, ("SCANS::test_two_hooks_may_have_the_same_name",)),
    Row("events is a required list of strings", True, (_MISSING, _WRONG)),
    Row("an empty list of events is skipped", True, (_WRONG,)),
    Row(
        "unknown events are accepted silently",
        False,
        ("FILE::test_an_unknown_event_is_named_with_the_nearest",),
    ),
    Row("command is a required string", True, (_MISSING, _WRONG)),
    Row("an empty command is skipped, one of blanks fails later", False, (_WRONG,)),
    Row(
        "the program of a hook is not checked at load",
        False,
        ("SCANS::test_a_program_that_is_missing_is_said_until_it_is_there",),
    ),
    Row("args is an optional list of strings", True, ("FILE::test_every_key_has_its_effect", _WRONG)),
    Row("description is an optional string", True, ("FILE::test_every_key_has_its_effect", _WRONG)),
    Row("there are no other keys", True, ("FILE::test_an_unknown_key_is_ignored_and_named",)),
    Row("one bad hook never stops the others", True, ("HOOKS::test_bad_files_are_said_and_the_others_run",)),
)

MATCHING: Final = (
    Row("an exact name matches itself", True, ("FILE::test_an_exact_name_is_that_event",)),
    Row("agent:* matches three events", True, (_PATTERNS,)),
    Row("session:* matches three events", True, (_PATTERNS,)),
    Row("* matches all seven", True, (_PATTERNS,)),
    Row(
        "another prefix matches nothing",
        True,
        (_PATTERNS, "HOOKS::test_only_what_matches_fires_and_each_hook_once"),
    ),
    Row("other globs never match", False, ("FILE::test_any_other_pattern_is_refused_by_name",)),
    Row("case counts", True, ("FILE::test_an_unknown_event_is_named_with_the_nearest",)),
    Row(
        "a hook with several matching patterns fires once",
        True,
        (
            "FILE::test_several_matching_entries_fire_once",
            "HOOKS::test_only_what_matches_fires_and_each_hook_once",
        ),
    ),
    Row("a valid hook is loaded with its args as they are", True, ("FILE::test_every_key_has_its_effect",)),
    Row("bytes that are no YAML are skipped", True, (_REFUSED,)),
    Row("hooks are loaded in order", True, ("SCANS::test_a_scan_puts_in_force_what_is_there",)),
    Row("an empty payload fires", True, ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",)),
)

COMMANDS: Final = (
    Row("there is no shell", True, ("HOOKS::test_arguments_are_passed_as_they_are",)),
    Row(
        "without args the command is split at blanks",
        False,
        ("RESOLVE::test_a_command_with_arguments_is_split_where_there_are_no_args",),
    ),
    Row(
        "with args, even none, the command is one path",
        True,
        (
            "RESOLVE::test_with_args_the_command_is_never_split",
            "HOOKS::test_a_program_with_blanks_in_its_name_runs_in_its_folder",
        ),
    ),
    Row(
        "relative paths start in the hook's folder",
        True,
        ("RESOLVE::test_the_whole_command_is_a_file_of_the_folder",),
    ),
    Row(
        "a bare word is looked up on the PATH",
        False,
        ("RESOLVE::test_a_file_of_the_folder_comes_before_the_path",),
    ),
    Row("a path may leave the folder", True, ("RESOLVE::test_the_whole_command_is_a_file_of_the_folder",)),
    Row("no interpreter is guessed", True, ("HOOKS::test_an_interpreter_may_be_the_command",)),
)

PROCESS: Final = (
    Row(
        "the environment of the daemon is inherited",
        False,
        (_ENVIRONMENT, "DIALECT::test_the_environment_is_inherited_without_the_token"),
    ),
    Row("standard input is the daemon's", False, (_ENVIRONMENT,)),
    Row("output is kept whole and dropped", False, ("HOOKS::test_what_a_hook_says_changes_nothing",)),
    Row("stderr is logged when a run fails", True, (_FAILURES,)),
    Row("nothing is read from a run", True, ("HOOKS::test_what_a_hook_says_changes_nothing",)),
    Row("a run may take 30 s", False, (_KILLED,)),
    Row("the clock starts when a run does", True, ("HOOKS::test_time_spent_waiting_does_not_count",)),
    Row("the program alone is killed", False, (_KILLED,)),
    Row(
        "what a run leaves behind keeps it running",
        False,
        ("HOOKS::test_what_a_hook_leaves_running_goes_on",),
    ),
    Row(
        "runs are bounded",
        True,
        (
            "BUDGET::test_one_hook_cannot_take_every_slot",
            "POOL::test_what_has_no_room_is_dropped_and_counted",
        ),
    ),
    Row("runs of one event overlap", True, ("POOL::test_runs_of_one_event_are_under_way_at_once",)),
    Row(
        "a payload beyond a variable starts nothing",
        False,
        (
            "HOOKS::test_a_payload_beyond_a_variable_arrives_in_a_file",
            "DIALECT::test_the_limit_is_the_kernels",
        ),
    ),
    Row(
        "the payload is compact JSON in its own order",
        True,
        ("HOOKS::test_every_event_arrives_with_every_field_of_the_page",),
    ),
    Row("what fails is a warning with hook and event", True, (_FAILURES,)),
    Row(
        "what is loaded is logged with hook, events and command",
        True,
        ("UP::test_sighup_scans_again_and_a_running_hook_ends_as_it_began",),
    ),
)

ROWS: Final = (*DISCOVERY, *MATCHING, *COMMANDS, *PROCESS)
