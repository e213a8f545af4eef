"""Every sentence of the rolebox page with the tests that show it.

The page is not ours to ship. A sentence is named by the beginning of its SHA-256 and by words of our own;
``FILES`` abbreviates where the tests are. A heading or a label states nothing, so nothing is shown for it.
"""

from __future__ import annotations

from typing import Final

from tests.conformance.shown import Sentence

FILES: Final = {
    "ADAPTERS": "tests/integration/test_rolebox_adapters.py",
    "CHAIN": "tests/subscribers/hooks/test_role_chain.py",
    "DIRECTORIES": "tests/subscribers/sources/test_role_directories.py",
    "DISPATCH": "tests/subscribers/runner/test_roles_dispatch.py",
    "ENTRY": "tests/subscribers/dialects/test_rolebox_hook.py",
    "EXAMPLES": "tests/integration/test_rolebox_examples.py",
    "FAULTS": "tests/integration/test_roles_faults.py",
    "FILE": "tests/subscribers/dialects/test_rolebox_file.py",
    "FUNCTION": "tests/subscribers/dialects/test_rolebox_function.py",
    "FUNCTIONS": "tests/subscribers/hooks/test_role_functions.py",
    "HOOKS": "tests/integration/test_roles_hooks.py",
    "HOST": "tests/integration/test_module_host.py",
    "INFO": "tests/subscribers/cli/test_info.py",
    "LOSSES": "tests/integration/test_node_losses.py",
    "MODULES": "tests/subscribers/sources/test_role_modules.py",
    "NODE": "tests/integration/test_node_host.py",
    "NODE_MODULES": "tests/integration/test_node_modules.py",
    "PYTHON": "tests/integration/test_python_module_host.py",
    "PAGE": "tests/conformance/rolebox/test_page_runs.py",
    "PENDING": "tests/subscribers/hooks/test_role_pending.py",
    "PROGRAM": "tests/conformance/rolebox/test_program.py",
    "WATCH": "tests/subscribers/sources/test_role_watch.py",
}


SENTENCES: Final = (
    Sentence("5a362268", "title", ()),
    Sentence("182a2f5e", "lead-in: related pages", ()),
    Sentence(
        "e8aac52a",
        "hooks are declared in hooks.custom of role.yaml and fire in two phases, around what is built in",
        (
            "PAGE::test_the_complete_example_warns_in_the_next_prompt",
            "CHAIN::test_the_order_is_phase_then_priority_then_registration",
            "CHAIN::test_a_system_prompt_is_edited_as_a_whole_and_the_core_comes_between_the_phases",
        ),
    ),
    Sentence(
        "aedee711",
        "each hook runs by itself, and the failure of one does not break the agent",
        (
            "DISPATCH::test_hooks_of_one_event_see_each_other_s_edits_and_the_ask_returns_the_last",
            "FAULTS::test_only_the_bad_hook_is_lost_and_the_others_serve_the_next_event_within_a_second",
            "PAGE::test_the_log_of_the_page_is_written",
        ),
    ),
    Sentence(
        "74ce522c", "the sample's description", ("PAGE::test_every_field_of_the_schema_has_its_effect",)
    ),
    Sentence("eb7a6cab", "heading: fields", ()),
    Sentence("421fb395", "head of the table of fields", ()),
    Sentence(
        "b908cc2d",
        "name, the hook's only name",
        (
            "FILE::test_every_key_of_a_hook_has_its_effect",
            "ENTRY::test_hooks_of_one_name_both_run_and_it_is_said",
        ),
    ),
    Sentence("f485b485", "description, a note", ("FILE::test_every_key_of_a_hook_has_its_effect",)),
    Sentence(
        "51a31654",
        "events, five of them",
        (
            "PAGE::test_the_tables_of_the_page_are_ours",
            "FILE::test_every_key_of_a_hook_has_its_effect",
            "DISPATCH::test_an_event_that_no_hook_listens_to_costs_nothing",
        ),
    ),
    Sentence(
        "7f714d20",
        "module, relative to the role's directory or absolute",
        (
            "MODULES::test_a_relative_path_is_one_of_the_role",
            "MODULES::test_an_absolute_path_may_lead_anywhere",
        ),
    ),
    Sentence(
        "2d3c753e",
        "config, given to the hook",
        (
            "PAGE::test_every_field_of_the_schema_has_its_effect",
            "FILE::test_a_config_holds_whatever_json_can_hold",
        ),
    ),
    Sentence(
        "4838b3bd",
        "filter, restricts a hook",
        (
            "PAGE::test_the_filters_of_the_page_are_read",
            "CHAIN::test_filters_hold_where_they_mean_something",
        ),
    ),
    Sentence(
        "0b74e619",
        "filter.tools, exact names, for the two events of tools",
        (
            "PAGE::test_every_field_of_the_schema_has_its_effect",
            "CHAIN::test_filters_hold_where_they_mean_something",
        ),
    ),
    Sentence(
        "58faa275",
        "filter.eventTypes, for event",
        (
            "PAGE::test_the_filters_of_the_page_are_read",
            "CHAIN::test_filters_hold_where_they_mean_something",
            "EXAMPLES::test_the_agent_in_python_and_its_role",
        ),
    ),
    Sentence(
        "6180a900",
        "priority, 50, a smaller one runs earlier in its phase",
        (
            "PAGE::test_the_lower_priority_runs_first",
            "FILE::test_a_hook_has_the_defaults_of_the_page",
            "CHAIN::test_the_order_is_phase_then_priority_then_registration",
        ),
    ),
    Sentence(
        "75afe540",
        "phase, before or after",
        (
            "FILE::test_a_hook_has_the_defaults_of_the_page",
            "DISPATCH::test_an_agent_may_ask_for_each_phase",
        ),
    ),
    Sentence("a3e0cb3a", "heading: modules", ()),
    Sentence(
        "0de52c1a",
        "a module is a file in JavaScript or TypeScript that exports an object of handlers",
        (
            "PAGE::test_the_complete_example_warns_in_the_next_prompt",
            "EXAMPLES::test_what_this_node_cannot_run_is_said_and_the_others_run",
            "NODE_MODULES::test_every_form_of_a_module_is_loaded",
            "NODE_MODULES::test_typescript_runs_where_node_strips_types",
        ),
    ),
    Sentence("eb94abb7", "head of the table of handlers", ()),
    Sentence(
        "18c36282",
        "onChatMessage gets the whole text",
        ("PAGE::test_every_field_of_the_schema_has_its_effect",),
    ),
    Sentence(
        "c2b5edee",
        "onToolBefore gets tool and args, before the tool runs",
        (
            "PAGE::test_the_lower_priority_runs_first",
            "ADAPTERS::test_the_five_calls_are_the_same_in_every_language",
        ),
    ),
    Sentence(
        "32eb2fbd",
        "onToolAfter gets tool, args and output",
        ("PAGE::test_every_field_of_the_schema_has_its_effect",),
    ),
    Sentence(
        "be81804d",
        "onSystemTransform gets the prompt's parts, and may change them",
        (
            "EXAMPLES::test_the_agent_in_python_and_its_role",
            "CHAIN::test_a_system_prompt_is_edited_as_a_whole_and_the_core_comes_between_the_phases",
            "NODE::test_what_a_handler_leaves_is_its_edit",
        ),
    ),
    Sentence(
        "66783bef",
        "onEvent gets type and properties",
        (
            "EXAMPLES::test_the_agent_in_node_and_its_role",
            "PROGRAM::test_a_hook_of_event_gets_its_type_and_properties_of_any_type",
        ),
    ),
    Sentence(
        "fa7f28be",
        "onLoad once, at registration",
        (
            "PAGE::test_the_log_of_the_page_is_written",
            "HOOKS::test_every_module_is_loaded_for_each_hook",
        ),
    ),
    Sentence(
        "f2766efa",
        "onDispose once, at the end",
        (
            "PAGE::test_the_log_of_the_page_is_written",
            "NODE::test_a_hook_is_disposed_when_its_calls_are_over",
            "PYTHON::test_the_end_disposes_every_hook_and_leaves_no_process",
        ),
    ),
    Sentence(
        "019e899b",
        "each handler gets a ctx",
        (
            "PAGE::test_every_field_of_the_schema_has_its_effect",
            "NODE::test_the_context_is_real_in_every_handler",
            "PYTHON::test_a_handler_is_given_what_is_documented",
        ),
    ),
    Sentence("a2121370", "head of the table of the ctx", ()),
    Sentence(
        "7b17f179",
        "hookName is the configured name",
        (
            "PAGE::test_every_field_of_the_schema_has_its_effect",
            "NODE::test_the_context_is_real_in_every_handler",
        ),
    ),
    Sentence(
        "6f51351c", "config is that of role.yaml", ("PAGE::test_every_field_of_the_schema_has_its_effect",)
    ),
    Sentence(
        "22f9d189",
        "sessionID, where there is one",
        (
            "PAGE::test_every_field_of_the_schema_has_its_effect",
            "NODE::test_the_context_is_real_in_every_handler",
            "PROGRAM::test_an_event_without_a_session_reaches_the_only_role",
        ),
    ),
    Sentence(
        "562685d0", "agent, where there is one", ("PAGE::test_every_field_of_the_schema_has_its_effect",)
    ),
    Sentence(
        "e3131041",
        "inject appends to the next prompt",
        (
            "PAGE::test_the_complete_example_warns_in_the_next_prompt",
            "HOOKS::test_what_hooks_inject_is_in_the_next_prompt_once",
        ),
    ),
    Sentence(
        "cb0fb09f",
        "log is bound to the hook",
        (
            "PAGE::test_the_log_of_the_page_is_written",
            "NODE::test_logs_are_bounded_and_say_what_was_left_out",
        ),
    ),
    Sentence("a89e7511", "heading: filters and phases", ()),
    Sentence(
        "950f5f7b",
        "a filter restricts the calls and events that start a hook",
        ("PAGE::test_every_field_of_the_schema_has_its_effect",),
    ),
    Sentence(
        "255f3006", "write and edit only", ("PAGE::test_the_complete_example_warns_in_the_next_prompt",)
    ),
    Sentence(
        "0aa468e1",
        "session.error only",
        (
            "PAGE::test_the_filters_of_the_page_are_read",
            "CHAIN::test_filters_hold_where_they_mean_something",
        ),
    ),
    Sentence(
        "4a3bbfa0",
        "a phase is before or behind what is built in",
        ("CHAIN::test_a_system_prompt_is_edited_as_a_whole_and_the_core_comes_between_the_phases",),
    ),
    Sentence(
        "754ca663",
        "before: in front of the built-in logic",
        (
            "PAGE::test_the_lower_priority_runs_first",
            "DISPATCH::test_an_agent_may_ask_for_each_phase",
        ),
    ),
    Sentence(
        "a39c76c3",
        "after, the default: behind it",
        (
            "FILE::test_a_hook_has_the_defaults_of_the_page",
            "DISPATCH::test_an_agent_may_ask_for_each_phase",
        ),
    ),
    Sentence(
        "7b363ad2",
        "hooks of a phase are ordered by priority",
        (
            "PAGE::test_the_lower_priority_runs_first",
            "HOOKS::test_priorities_order_hooks_of_both_languages_and_each_sees_the_last_edit",
        ),
    ),
    Sentence(
        "cd13ebcf",
        "equal ones keep the order of their registration",
        ("CHAIN::test_the_order_is_phase_then_priority_then_registration",),
    ),
    Sentence("36f71ca2", "heading: the whole order", ()),
    Sentence("802f9887", "lead-in: a diagram of one event's way", ()),
    Sentence("7fc76aa6", "heading: the order in points", ()),
    Sentence(
        "76445986",
        "before, the core, after",
        (
            "ADAPTERS::test_the_five_calls_are_the_same_in_every_language",
            "CHAIN::test_the_two_halves_are_the_whole",
        ),
    ),
    Sentence(
        "b2c3d73b",
        "what is built in is in front of the custom before hooks, and behind the custom after hooks",
        (
            "CHAIN::test_a_system_prompt_is_edited_as_a_whole_and_the_core_comes_between_the_phases",
            "DISPATCH::test_injected_texts_are_one_element_of_the_next_prompt_and_then_gone",
            "DISPATCH::test_a_text_that_an_after_hook_injects_waits_for_the_next_prompt",
        ),
    ),
    Sentence(
        "2203aadf",
        "by priority, 50, the smaller earlier",
        ("CHAIN::test_the_order_is_phase_then_priority_then_registration",),
    ),
    Sentence(
        "f85662d4",
        "the failure of a hook leaves the others of its phase",
        (
            "DISPATCH::test_hooks_of_one_event_see_each_other_s_edits_and_the_ask_returns_the_last",
            "PAGE::test_the_log_of_the_page_is_written",
        ),
    ),
    Sentence("8b31eba0", "heading: the complete example", ()),
    Sentence(
        "2c0cb41f",
        "the example warns of debugging code",
        ("PAGE::test_the_complete_example_warns_in_the_next_prompt",),
    ),
    Sentence(
        "a5887444",
        "it looks for console.log in what is written",
        ("PAGE::test_the_complete_example_warns_in_the_next_prompt",),
    ),
    Sentence(
        "2769286e", "it injects a warning", ("PAGE::test_the_complete_example_warns_in_the_next_prompt",)
    ),
    Sentence(
        "7d17c118", "the end of that line", ("PAGE::test_the_complete_example_warns_in_the_next_prompt",)
    ),
    Sentence(
        "c9e5139e",
        "a life has three parts: onLoad, events, onDispose",
        ("PAGE::test_the_log_of_the_page_is_written",),
    ),
    Sentence("4d3f50ab", "lead-in: a diagram of it", ()),
    Sentence("e9ef17f4", "lead-in: where it is verified", ()),
    Sentence("d6e3462a", "head of the table of a life", ()),
    Sentence(
        "5b3a16f4", "onLoad as soon as the module is loaded", ("PAGE::test_the_log_of_the_page_is_written",)
    ),
    Sentence(
        "fe9e6f05",
        "a handler for each event that matches, its failure caught",
        ("DISPATCH::test_hooks_of_one_event_see_each_other_s_edits_and_the_ask_returns_the_last",),
    ),
    Sentence(
        "c6f9ef07",
        "onDispose when the registry is disposed",
        (
            "PAGE::test_the_log_of_the_page_is_written",
            "FAULTS::test_changes_come_into_force_and_what_breaks_leaves_what_was_there",
        ),
    ),
    Sentence("8a71afb2", "heading: onLoad and onDispose", ()),
    Sentence("e1a53b95", "a module may have both", ("PAGE::test_the_log_of_the_page_is_written",)),
    Sentence("0099b559", "onLoad is called once", ("PAGE::test_the_log_of_the_page_is_written",)),
    Sentence(
        "4ca3a326",
        "its ctx has hookName, config and log",
        (
            "PAGE::test_the_log_of_the_page_is_written",
            "PROGRAM::test_a_hook_knows_its_name_and_config_while_it_is_loaded",
        ),
    ),
    Sentence("05b9eb7a", "onDispose is called once", ("PAGE::test_the_log_of_the_page_is_written",)),
    Sentence("d69ac6b0", "heading: advice", ()),
    Sentence(
        "dcf20990",
        "onLoad opens what onDispose closes",
        ("PROGRAM::test_what_is_opened_while_it_is_loaded_is_there_until_it_is_disposed",),
    ),
    Sentence(
        "a70f38e6",
        "a slow onLoad makes the start slow",
        (
            "LOSSES::test_a_module_that_holds_up_its_thread_at_load_is_refused",
            "HOST::test_what_takes_too_long_to_be_ready_or_to_load_is_ended",
        ),
    ),
    Sentence("7cd3d49e", "heading: the sample of priorities", ()),
    Sentence("537214b5", "ordered by priority", ("PAGE::test_the_lower_priority_runs_first",)),
    Sentence("cacc8db4", "the default is 50", ("FILE::test_a_hook_has_the_defaults_of_the_page",)),
    Sentence("2dd2c276", "lead-in: the sample", ()),
    Sentence("bac23307", "priority 10 runs first", ("PAGE::test_the_lower_priority_runs_first",)),
    Sentence("3d96310d", "priority 50 runs later", ("PAGE::test_the_lower_priority_runs_first",)),
    Sentence("6a6f23e4", "early-checker, then late-checker", ("PAGE::test_the_lower_priority_runs_first",)),
    Sentence(
        "3335f6ba",
        "equal priorities: the order of the file",
        (
            "CHAIN::test_the_order_is_phase_then_priority_then_registration",
            "FILE::test_hooks_keep_the_order_of_the_file",
        ),
    ),
    Sentence("2f07df1b", "heading: built-in hooks", ()),
    Sentence("97123ffd", "lead-in: options of hooks.builtin", ()),
    Sentence(
        "a61a6575",
        "with it, the first message activates the functions that are marked, unnamed",
        (
            "PAGE::test_what_is_marked_is_activated_by_the_first_message",
            "FUNCTIONS::test_the_first_message_activates_once",
        ),
    ),
    Sentence(
        "024d827e",
        "while a chat.message is handled",
        ("PAGE::test_what_is_marked_is_activated_by_the_first_message",),
    ),
    Sentence(
        "2120a040",
        "the switch",
        (
            "PAGE::test_what_is_marked_is_activated_by_the_first_message",
            "FUNCTION::test_the_list_and_the_marks_say_what_is_activated_by_itself",
        ),
    ),
    Sentence("f5b5f370", "lead-in: when it is on", ()),
    Sentence(
        "e9839c90",
        "the role's list auto_activate is looked at",
        (
            "FUNCTION::test_the_list_and_the_marks_say_what_is_activated_by_itself",
            "EXAMPLES::test_the_agent_in_python_and_its_role",
        ),
    ),
    Sentence(
        "d15cb725",
        "what is in it becomes active",
        (
            "FUNCTIONS::test_the_first_message_activates_once",
            "EXAMPLES::test_the_agent_in_python_and_its_role",
        ),
    ),
    Sentence(
        "0f3ec41f",
        "locked ones cannot be deactivated",
        (
            "FUNCTIONS::test_locked_functions_stay_active_whatever_is_requested",
            "FUNCTION::test_what_is_locked_is_activated_by_itself",
        ),
    ),
    Sentence("bbfb4d8a", "heading: inject", ()),
    Sentence(
        "c28a1c35",
        "inject appends to the next system prompt",
        ("HOOKS::test_what_hooks_inject_is_in_the_next_prompt_once",),
    ),
    Sentence("3112954f", "lead-in: what it rests on", ()),
    Sentence("9a8cc4f3", "heading: the code of appendCorrection", ()),
    Sentence(
        "cac2dcca",
        "texts wait by session",
        ("PENDING::test_texts_of_a_session_are_joined_with_a_newline_and_delivered_once",),
    ),
    Sentence(
        "1593acfb",
        "several are joined with a newline",
        (
            "PAGE::test_texts_are_joined_as_the_page_s_own_code_joins_them",
            "PENDING::test_texts_of_a_session_are_joined_with_a_newline_and_delivered_once",
        ),
    ),
    Sentence(
        "2f93603f",
        "they are delivered in system.transform",
        ("DISPATCH::test_injected_texts_are_one_element_of_the_next_prompt_and_then_gone",),
    ),
    Sentence("350e080c", "heading: safety", ()),
    Sentence(
        "11cbc10c",
        "a hook does not break the agent",
        (
            "ADAPTERS::test_without_an_answer_an_agent_goes_on_and_knows_why",
            "FAULTS::test_only_the_bad_hook_is_lost_and_the_others_serve_the_next_event_within_a_second",
            "LOSSES::test_hooks_that_hold_up_their_thread_lose_only_themselves",
            "PYTHON::test_a_hook_that_costs_its_process_is_quarantined_alone",
        ),
    ),
    Sentence(
        "8f3b3672", "failures are warnings, and it goes on", ("PAGE::test_the_log_of_the_page_is_written",)
    ),
    Sentence(
        "c3b72b43",
        "inject goes the way of built-in texts",
        ("DISPATCH::test_injected_texts_are_one_element_of_the_next_prompt_and_then_gone",),
    ),
    Sentence(
        "2a43d2df",
        "a module that does not load is logged and its hook skipped",
        (
            "PAGE::test_the_log_of_the_page_is_written",
            "NODE_MODULES::test_a_module_that_cannot_be_loaded_is_refused_with_its_line",
            "PYTHON::test_what_cannot_be_loaded_is_refused_and_the_others_are_not",
        ),
    ),
    Sentence("caf1546b", "heading: isolation", ()),
    Sentence(
        "4eec374f",
        "each hook's module has a scope of its own",
        (
            "HOOKS::test_every_module_is_loaded_for_each_hook",
            "NODE_MODULES::test_hooks_share_no_state_though_they_share_files",
            "PYTHON::test_two_hooks_that_share_a_file_share_nothing_else",
        ),
    ),
    Sentence(
        "6dfb6b30",
        "globals of a hook are not shared",
        (
            "HOOKS::test_every_module_is_loaded_for_each_hook",
            "NODE_MODULES::test_hooks_share_no_state_though_they_share_files",
            "PYTHON::test_two_hooks_that_share_a_file_share_nothing_else",
        ),
    ),
    Sentence(
        "cf0aa91c",
        "parameters go through config, shared state through files",
        (
            "PAGE::test_every_field_of_the_schema_has_its_effect",
            "PROGRAM::test_what_is_opened_while_it_is_loaded_is_there_until_it_is_disposed",
        ),
    ),
    Sentence("1887c1b1", "heading: debugging", ()),
    Sentence("c619c3cd", "heading: info --check", ()),
    Sentence(
        "9635f508",
        "the command checks integrity and the paths of modules",
        (
            "PAGE::test_the_page_s_command_checks_a_role",
            "INFO::test_a_check_loads_the_modules",
            "INFO::test_a_check_finds_what_does_not_load",
        ),
    ),
    Sentence("451665bc", "lead-in: what it checks", ()),
    Sentence(
        "dc11e4db",
        "whether module paths resolve",
        (
            "PAGE::test_the_page_s_command_checks_a_role",
            "MODULES::test_a_relative_path_may_not_leave_the_role",
        ),
    ),
    Sentence("3aa6e8c7", "whether the files exist", ("PAGE::test_the_page_s_command_checks_a_role",)),
    Sentence(
        "a7b7784c",
        "whether the hash is the recorded one",
        (
            "PAGE::test_the_page_s_command_notices_a_change",
            "INFO::test_what_was_accepted_is_compared_with",
            "INFO::test_a_role_of_rolebox_is_held_against_its_lock_file",
        ),
    ),
    Sentence(
        "a05b42db",
        "a path that does not resolve is a warning with the reason",
        ("PAGE::test_the_page_s_command_checks_a_role",),
    ),
    Sentence("1b52ca20", "heading: logs", ()),
    Sentence(
        "8cde9688",
        "logs are structured, their names begin with hook:",
        ("PAGE::test_the_log_of_the_page_is_written",),
    ),
    Sentence("7b24409e", "head of the table of loggers", ()),
    Sentence(
        "9351d3c2",
        "hook:custom-loader says what does not load",
        ("PAGE::test_the_log_of_the_page_is_written",),
    ),
    Sentence("e5564667", "each hook has its own logger", ("PAGE::test_the_log_of_the_page_is_written",)),
    Sentence("58865f0f", "lead-in: usual cases", ()),
    Sentence("13b4a897", "a module that does not load", ("PAGE::test_the_log_of_the_page_is_written",)),
    Sentence("1dff952c", "a handler that throws", ("PAGE::test_the_log_of_the_page_is_written",)),
    Sentence("06302e9f", "heading: what fails to load", ()),
    Sentence("4fe8b52a", "it blocks no other hook", ("PAGE::test_the_log_of_the_page_is_written",)),
    Sentence(
        "17d045fd",
        "it is not tried again, until it changes",
        ("FAULTS::test_changes_come_into_force_and_what_breaks_leaves_what_was_there",),
    ),
    Sentence("acfc4e74", "heading: next", ()),
    Sentence("294cae18", "lead-in: another page", ()),
    Sentence("0bd077a6", "lead-in: another page", ()),
    Sentence("5a362268", "title", ()),
    Sentence("eb7a6cab", "heading: fields", ()),
    Sentence("a3e0cb3a", "heading: modules", ()),
    Sentence("a89e7511", "heading: filters and phases", ()),
    Sentence("36f71ca2", "heading: the whole order", ()),
    Sentence("8b31eba0", "heading: the complete example", ()),
    Sentence("8a71afb2", "heading: onLoad and onDispose", ()),
    Sentence("7cd3d49e", "heading: the sample of priorities", ()),
    Sentence("2f07df1b", "heading: built-in hooks", ()),
    Sentence("6a49231e", "heading: inject", ()),
    Sentence("350e080c", "heading: safety", ()),
    Sentence("1887c1b1", "heading: debugging", ()),
    Sentence("0e7ce672", "heading: info --check", ()),
    Sentence("1b52ca20", "heading: logs", ()),
    Sentence("06302e9f", "heading: what fails to load", ()),
    Sentence("acfc4e74", "heading: next", ()),
    Sentence("5a362268", "title", ()),
    Sentence("eb7a6cab", "heading: fields", ()),
    Sentence("a3e0cb3a", "heading: modules", ()),
    Sentence("a89e7511", "heading: filters and phases", ()),
    Sentence("36f71ca2", "heading: the whole order", ()),
    Sentence("8b31eba0", "heading: the complete example", ()),
    Sentence("8a71afb2", "heading: onLoad and onDispose", ()),
    Sentence("7cd3d49e", "heading: the sample of priorities", ()),
    Sentence("2f07df1b", "heading: built-in hooks", ()),
    Sentence("bbfb4d8a", "heading: inject", ()),
    Sentence("350e080c", "heading: safety", ()),
    Sentence("1887c1b1", "heading: debugging", ()),
    Sentence("c619c3cd", "heading: info --check", ()),
    Sentence("1b52ca20", "heading: logs", ()),
    Sentence("06302e9f", "heading: what fails to load", ()),
    Sentence("acfc4e74", "heading: next", ()),
)
