"""Each row of the table of differences is shown by tests, and says what the code does."""

from __future__ import annotations

from typing import Final

import pytest

from subscribers.dialects.document_rows import Difference
from subscribers.dialects.rolebox_differences import DIFFERENCES
from subscribers.hooks import role_pending
from subscribers.runtimes.node_program import OLDEST, NodeProgram
from subscribers.sources import role_integrity
from tests.conformance.rolebox.sentences import FILES
from tests.conformance.shown import not_tests

PLACES: Final = FILES | {
    "INTEGRITY": "tests/subscribers/sources/test_role_integrity.py",
    "LOCK": "tests/subscribers/dialects/test_rolebox_lock.py",
    "NODE_PROGRAM": "tests/subscribers/runtimes/test_node_program.py",
    "VIEW": "tests/subscribers/runner/test_roles_view.py",
}
HERE: Final = {difference.number: difference.here for difference in DIFFERENCES}

_FAULT: Final = "ENTRY::test_a_fault_in_a_hook_is_one_diagnostic_and_leaves_its_siblings"
_CHANGES: Final = "FAULTS::test_changes_come_into_force_and_what_breaks_leaves_what_was_there"
_LOST: Final = "FAULTS::test_only_the_bad_hook_is_lost_and_the_others_serve_the_next_event_within_a_second"

SHOWN_BY: Final[dict[str, tuple[str, ...]]] = {
    "R1": (
        "MODULES::test_a_relative_path_is_one_of_the_role",
        "MODULES::test_a_relative_path_may_not_leave_the_role",
        "MODULES::test_an_absolute_path_may_lead_anywhere",
    ),
    "R2": (
        "PAGE::test_the_complete_example_warns_in_the_next_prompt",
        "NODE_MODULES::test_every_form_of_a_module_is_loaded",
    ),
    "R3": (
        "NODE::test_the_context_is_real_in_every_handler",
        "PYTHON::test_a_handler_is_given_what_is_documented",
    ),
    "R4": (
        "PROGRAM::test_tool_before_runs_in_both_phases_with_tool_and_args",
        "PROGRAM::test_tool_after_runs_in_both_phases_whatever_is_active",
    ),
    "R5": (_FAULT,),
    "R6": ("PYTHON::test_an_asynchronous_call_is_cancelled_at_its_deadline", _LOST),
    "R7": (
        "INFO::test_a_check_finds_what_does_not_load",
        "INFO::test_what_was_accepted_is_compared_with",
    ),
    "R8": (
        "FUNCTION::test_the_list_and_the_marks_say_what_is_activated_by_itself",
        "PAGE::test_what_is_marked_is_activated_by_the_first_message",
    ),
    "R9": (
        "NODE_MODULES::test_hooks_share_no_state_though_they_share_files",
        "PYTHON::test_two_hooks_that_share_a_file_share_nothing_else",
    ),
    "R10": (
        "DISPATCH::test_hooks_of_a_role_fire_for_its_sessions_only",
        "DISPATCH::test_every_session_is_every_role_s_where_that_is_configured",
    ),
    "R11": (_CHANGES,),
    "R12": (_CHANGES, "WATCH::test_a_change_of_anything_is_in_force_after_a_scan"),
    "R13": (
        "NODE::test_a_changed_module_takes_over_and_the_old_one_is_disposed_once",
        "DIRECTORIES::test_a_role_is_loaded_with_its_modules",
    ),
    "R14": (_LOST,),
    "R15": (
        "HOOKS::test_texts_roles_and_functions_survive_kill_9",
        "PENDING::test_a_text_that_does_not_fit_is_dropped_whole_and_counted",
        "DISPATCH::test_a_text_that_an_after_hook_injects_waits_for_the_next_prompt",
    ),
    "R16": (
        "NODE::test_what_a_handler_leaves_is_its_edit",
        "VIEW::test_what_may_be_edited_is_what_the_asker_merges",
    ),
    "R17": ("CHAIN::test_filters_hold_where_they_mean_something",),
    "R18": (_FAULT, "ENTRY::test_a_quoted_number_is_taken_for_the_number"),
    "R19": (
        "FILE::test_placeholders_are_replaced_in_every_text_that_is_read",
        "FUNCTION::test_every_key_that_matters_is_taken",
        "DIRECTORIES::test_prxbus_keeps_its_secrets",
    ),
    "R20": (
        "INTEGRITY::test_the_hash_is_what_the_form_says",
        "INTEGRITY::test_bytes_cannot_move_from_one_file_to_the_next",
        "LOCK::test_the_hash_is_that_of_rolebox",
        "INFO::test_a_role_of_rolebox_is_held_against_its_lock_file",
    ),
    "R21": ("PAGE::test_the_log_of_the_page_is_written",),
    "R22": ("FILE::test_a_fault_of_the_role_is_one_diagnostic_and_leaves_the_rest",),
    "R23": (
        "FUNCTIONS::test_a_prompt_says_what_is_active_and_how_it_is_done",
        "DIRECTORIES::test_functions_are_read_from_the_directory",
    ),
    "R24": (
        "NODE_PROGRAM::test_a_node_will_do_from_20_on",
        "NODE_PROGRAM::test_typescript_needs_a_node_that_strips_types",
        "EXAMPLES::test_what_this_node_cannot_run_is_said_and_the_others_run",
    ),
    "R25": (
        "FILE::test_a_file_of_something_else_is_left_alone",
        "FILE::test_a_role_without_hooks_has_none",
    ),
}


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.number)
def test_every_row_is_shown(difference: Difference) -> None:
    """What it is shown by are tests."""
    assert not_tests(SHOWN_BY[difference.number], PLACES) == []


def test_no_row_is_shown_that_there_is_not() -> None:
    """And none that there is goes without."""
    assert list(SHOWN_BY) == [difference.number for difference in DIFFERENCES]


def test_numbers_are_those_of_the_code() -> None:
    """Bounds, versions and forms."""
    assert f"{role_pending.SESSION_BYTES:,} bytes for each of {role_pending.SESSIONS:,}" in HERE["R15"]
    assert f"Node {OLDEST[0]} or newer" in HERE["R24"]
    assert NodeProgram("node", (22, 13, 0)).strips_types
    assert not NodeProgram("node", (22, 12, 9)).strips_types
    assert f"`{role_integrity.FORM}`" in HERE["R20"]
