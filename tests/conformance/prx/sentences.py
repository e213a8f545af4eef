"""Every sentence of the PRX Hooks page, and the tests that show it to be true.

The page is not ours to ship. A sentence is named by the beginning of its SHA-256 and by words of our own;
``FILES`` abbreviates where the tests are. A heading or a label states nothing, so nothing is shown for it.
"""

from __future__ import annotations

from typing import Final

from tests.conformance.shown import Sentence

FILES: Final = {
    "ACTION": "tests/subscribers/dialects/test_prx_action.py",
    "ADOPTED": "tests/integration/test_children_adopted.py",
    "API": "tests/subscribers/http/test_hooks_api.py",
    "BAD": "tests/conformance/prx/test_bad_input.py",
    "CATALOGUE": "tests/broker/protocol/test_catalogue.py",
    "CHILDREN": "tests/integration/test_children.py",
    "CLIENT": "tests/integration/test_client.py",
    "COMPONENT": "tests/subscribers/runtimes/test_wasm_component.py",
    "DISCOVER": "tests/subscribers/sources/test_discover.py",
    "ENVIRONMENT": "tests/subscribers/dialects/test_environment.py",
    "FAULTS": "tests/integration/test_hook_faults.py",
    "FILE": "tests/subscribers/dialects/test_prx_file.py",
    "GUARD": "tests/subscribers/http/test_guard.py",
    "GUEST": "tests/subscribers/runtimes/test_wasm_guest.py",
    "LOOPS": "tests/integration/test_hook_loops.py",
    "MISBEHAVIOUR": "tests/integration/test_hook_misbehaviour.py",
    "OWN": "tests/conformance/prx/test_own_samples.py",
    "PAGE": "tests/conformance/prx/test_page_runs.py",
    "PATTERNS": "tests/subscribers/dialects/test_prx_plugin_patterns.py",
    "PAYLOADS": "tests/subscribers/runtimes/test_payload_files.py",
    "PLUGIN": "tests/subscribers/dialects/test_prx_plugin.py",
    "PROJECTIONS": "tests/broker/protocol/test_projections.py",
    "PRX": "tests/subscribers/dialects/test_prx.py",
    "RELOAD": "tests/integration/test_hook_reload.py",
    "RESOLVE": "tests/subscribers/sources/test_resolve.py",
    "RULES": "tests/subscribers/dialects/test_prx_rules.py",
    "SANDBOX": "tests/integration/test_sandbox.py",
    "SHELL": "tests/integration/test_shell_hooks.py",
    "UP": "tests/integration/test_up.py",
    "VALUES": "tests/subscribers/dialects/test_prx_values.py",
    "WASM": "tests/integration/test_wasm_plugins.py",
}


SENTENCES: Final = (
    Sentence("3b378a80", "title", ()),
    Sentence(
        "b6785f06",
        "hooks answer lifecycle events",
        ("SHELL::test_the_payload_arrives_on_all_three_channels",),
    ),
    Sentence(
        "a2b049db",
        "every moment of the loop is an event",
        (
            "CATALOGUE::test_every_event_of_the_design_is_catalogued",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "0337b311",
        "three ways to bind an action",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "WASM::test_a_component_gets_what_a_shell_hook_gets",
            "API::test_the_five_calls_of_the_page",
        ),
    ),
    Sentence("cfa1f853", "fire and forget", ("MISBEHAVIOUR::test_a_slow_hook_never_slows_the_publisher",)),
    Sentence(
        "6940e68c",
        "never blocks, changes or feeds back",
        (
            "MISBEHAVIOUR::test_a_slow_hook_never_slows_the_publisher",
            "SHELL::test_too_many_runs_wait_and_then_are_dropped_and_counted",
        ),
    ),
    Sentence(
        "8c860e50",
        "so they suit audit, metrics, alerts",
        (
            "OWN::test_an_audit_log_gets_every_call_whatever_its_size",
            "OWN::test_a_latency_is_taken_from_standard_input",
            "OWN::test_an_alert_is_posted_by_curl_from_its_standard_input",
        ),
    ),
    Sentence("9456518e", "lead-in: three back ends", ()),
    Sentence(
        "e9dc628c", "shell: variable, file, stdin", ("SHELL::test_the_payload_arrives_on_all_three_channels",)
    ),
    Sentence(
        "09f3c899",
        "shell: set up in hooks.json",
        ("DISCOVER::test_the_file_of_a_workspace_is_named_by_the_dialect",),
    ),
    Sentence("6a05027a", "wasm: calls on-event", ("WASM::test_a_component_gets_what_a_shell_hook_gets",)),
    Sentence(
        "76b847f1",
        "wasm: declared in plugin.toml",
        ("PLUGIN::test_a_manifest_of_the_pages_shape_is_read_without_a_word",),
    ),
    Sentence(
        "82fac2c0",
        "bus: the topic of an event",
        ("LOOPS::test_the_bus_carries_every_event_with_or_without_hooks",),
    ),
    Sentence(
        "17d39d2f", "bus: always on", ("LOOPS::test_the_bus_carries_every_event_with_or_without_hooks",)
    ),
    Sentence("8f4057eb", "heading: events", ()),
    Sentence(
        "ccd644c9",
        "eight events with JSON payloads",
        (
            "RULES::test_the_events_of_the_page_are_those_of_the_catalogue",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence("46a3a5b6", "head of the table of events", ()),
    Sentence(
        "d164bca2",
        "fields of agent_start",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "75a1555e",
        "fields of agent_end",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "7a40e93e",
        "fields of llm_request",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "7fb08715",
        "fields of llm_response",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "827de467",
        "fields of tool_call_start",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "73910daf",
        "fields of tool_call",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "039871ff",
        "fields of turn_complete",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "7f468fcc",
        "fields of error",
        (
            "PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence("7ef6e0b5", "heading: structure", ()),
    Sentence(
        "af27ced2",
        "payloads are JSON objects",
        (
            "CATALOGUE::test_what_is_not_an_object_is_refused",
            "FAULTS::test_payloads_that_are_no_json_object_cost_their_own_runs_only",
        ),
    ),
    Sentence(
        "9b3802e8",
        "an envelope around the fields",
        ("PRX::test_the_envelope_holds_the_four_fields_and_the_payload_s_own_bytes",),
    ),
    Sentence(
        "acdd0784",
        "event, timestamp, session_id in each",
        (
            "PRX::test_every_envelope_is_json_with_the_view_s_values",
            "PAGE::test_each_event_of_the_page_fires_its_hook",
        ),
    ),
    Sentence(
        "51b0638d", "payload varies by event", ("PROJECTIONS::test_prx_sees_exactly_the_fields_of_its_page",)
    ),
    Sentence("148d195e", "heading: configuration", ()),
    Sentence(
        "91cdf063",
        "hooks.json in the workspace",
        (
            "DISCOVER::test_the_file_of_a_workspace_is_named_by_the_dialect",
            "UP::test_the_main_job_with_three_commands",
        ),
    ),
    Sentence(
        "070b9ab1", "watched and reloaded", ("RELOAD::test_an_edit_takes_effect_within_a_second_of_settling",)
    ),
    Sentence("1b736ce2", "heading: basic structure", ()),
    Sentence(
        "60de44d7",
        "an event has an array of actions",
        (
            "FILE::test_a_file_of_the_page_s_shape_is_read",
            "PAGE::test_the_structure_runs_with_a_real_event",
        ),
    ),
    Sentence(
        "3a80ec88",
        "several actions, side by side, independent",
        (
            "SHELL::test_actions_of_one_event_run_side_by_side",
            "SHELL::test_every_way_a_run_can_end_is_reported_and_failures_are_dead_letters",
        ),
    ),
    Sentence("8b31eba0", "heading: full example", ("PAGE::test_the_full_example_runs",)),
    Sentence("212871f9", "heading: fields", ()),
    Sentence("41ae1fba", "lead-in: fields", ()),
    Sentence("2b428f0b", "head of the table of fields", ()),
    Sentence(
        "6d619372",
        "command: absolute or a name on the PATH",
        (
            "RESOLVE::test_an_absolute_command_is_taken_as_it_is",
            "RESOLVE::test_a_name_is_looked_up_on_the_safe_path",
            "ACTION::test_an_action_needs_only_a_command",
        ),
    ),
    Sentence(
        "0ef53522",
        "args",
        (
            "CHILDREN::test_a_program_gets_exactly_what_the_invocation_says",
            "ACTION::test_every_field_of_the_page_is_read",
        ),
    ),
    Sentence("065fbb59", "env is merged into the clean one", ("SHELL::test_the_environment_is_clean",)),
    Sentence(
        "a8aea7d5",
        "cwd, the workspace by default",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "RESOLVE::test_an_absolute_folder_may_lie_anywhere",
        ),
    ),
    Sentence(
        "c204a37e",
        "timeout_ms, 30,000 by default",
        (
            "RULES::test_the_documented_defaults_are_those_of_the_page",
            "VALUES::test_a_timeout_is_whole_milliseconds",
        ),
    ),
    Sentence(
        "c4a170b4",
        "killed when out of time (the section on timeouts says how)",
        ("MISBEHAVIOUR::test_out_of_time_is_sigterm_then_five_seconds_then_sigkill",),
    ),
    Sentence(
        "88ac0686",
        "stdin_json, false by default",
        (
            "PRX::test_stdin_is_closed_unless_asked_for",
            "RULES::test_the_documented_defaults_are_those_of_the_page",
        ),
    ),
    Sentence("9f970411", "heading: command", ()),
    Sentence(
        "7bc43fad",
        "command is checked before it runs",
        (
            "ACTION::test_a_fault_refuses_the_action",
            "BAD::test_a_command_that_holds_a_metacharacter_starts_nothing",
        ),
    ),
    Sentence(
        "6707970f",
        "no metacharacters",
        (
            "RULES::test_the_metacharacters_of_the_page_are_in_the_table",
            "BAD::test_a_command_that_holds_a_metacharacter_starts_nothing",
        ),
    ),
    Sentence(
        "3045cd73",
        "shell code goes into a script",
        ("OWN::test_an_audit_log_gets_every_call_whatever_its_size",),
    ),
    Sentence(
        "3f83707d",
        "relative paths start at the workspace",
        ("RESOLVE::test_a_relative_command_starts_at_the_workspace",),
    ),
    Sentence("963a639f", "advice: absolute paths", ("RESOLVE::test_an_absolute_command_is_taken_as_it_is",)),
    Sentence("34b38f67", "heading: delivery", ()),
    Sentence(
        "c5607fc8",
        "three channels at once",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "OWN::test_three_channels_hold_the_same_bytes",
        ),
    ),
    Sentence("bbecece6", "any language can read one", ("OWN::test_three_channels_hold_the_same_bytes",)),
    Sentence("5d774195", "heading: variable", ()),
    Sentence(
        "5261e526",
        "ZERO_HOOK_PAYLOAD holds it",
        (
            "PRX::test_all_channels_carry_the_same_bytes",
            "PAGE::test_the_channel_samples_run",
        ),
    ),
    Sentence("103ec94c", "lead-in: sample of the variable", ("PAGE::test_the_channel_samples_run",)),
    Sentence("7dd724f1", "comment of the sample", ("PAGE::test_the_channel_samples_run",)),
    Sentence("541d0c2e", "8 KB", ("PRX::test_the_payload_variable_ends_at_eight_kibibytes",)),
    Sentence(
        "f48b8e81",
        "longer: unset, the others hold it",
        (
            "PRX::test_the_payload_variable_ends_at_eight_kibibytes",
            "SHELL::test_a_large_payload_reaches_the_hook_whole",
        ),
    ),
    Sentence("a9c581a1", "heading: file", ()),
    Sentence(
        "fb45a18b",
        "ZERO_HOOK_PAYLOAD_FILE names it",
        ("SHELL::test_the_payload_arrives_on_all_three_channels",),
    ),
    Sentence(
        "cc6ed896",
        "removed after the process",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "MISBEHAVIOUR::test_payload_files_of_a_killed_service_are_swept",
        ),
    ),
    Sentence("510a7830", "no limit of size", ("SHELL::test_a_large_payload_reaches_the_hook_whole",)),
    Sentence("f002ec79", "heading: standard input", ()),
    Sentence(
        "193bf19d",
        "through a pipe, if asked for",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "PRX::test_stdin_is_closed_unless_asked_for",
        ),
    ),
    Sentence(
        "ab28b13c", "for curl -d @- and jq", ("OWN::test_an_alert_is_posted_by_curl_from_its_standard_input",)
    ),
    Sentence("a7793398", "comment of the sample", ("PAGE::test_the_channel_samples_run",)),
    Sentence("ae27b474", "heading: environment", ()),
    Sentence(
        "743429b9",
        "further variables",
        (
            "SHELL::test_the_environment_is_clean",
            "PRX::test_the_documented_variables_are_all_set",
        ),
    ),
    Sentence("add68cb2", "head of the table of variables", ()),
    Sentence(
        "4b7c8e40",
        "ZERO_HOOK_EVENT",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "PRX::test_the_environment_is_exactly_what_is_documented",
        ),
    ),
    Sentence(
        "812599ce",
        "ZERO_HOOK_SESSION",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "PRX::test_the_environment_is_exactly_what_is_documented",
        ),
    ),
    Sentence(
        "8d0ed635",
        "ZERO_HOOK_TIMESTAMP",
        (
            "SHELL::test_the_payload_arrives_on_all_three_channels",
            "PRX::test_the_environment_is_exactly_what_is_documented",
        ),
    ),
    Sentence("742e21d6", "ZERO_HOOK_PAYLOAD", ("PRX::test_the_payload_variable_ends_at_eight_kibibytes",)),
    Sentence(
        "3c590f9c",
        "ZERO_HOOK_PAYLOAD_FILE, its form",
        (
            "PAYLOADS::test_a_payload_is_a_private_file_for_as_long_as_it_is_held",
            "SHELL::test_the_payload_arrives_on_all_three_channels",
        ),
    ),
    Sentence("d6c5c4db", "the environment is made clean", ("SHELL::test_the_environment_is_clean",)),
    Sentence(
        "ced89879",
        "nothing but these and env",
        (
            "SHELL::test_the_environment_is_clean",
            "PRX::test_the_environment_is_exactly_what_is_documented",
        ),
    ),
    Sentence("17726468", "heading: wasm", ()),
    Sentence(
        "63f4d9a4",
        "a component exports on-event",
        (
            "COMPONENT::test_the_interface_has_one_of_two_names_with_or_without_version",
            "WASM::test_the_example_written_as_text",
        ),
    ),
    Sentence("d35cf5a7", "heading: interface", ()),
    Sentence(
        "7adc4a0f", "comment: called for its events", ("WASM::test_a_plugin_gets_the_events_of_its_manifest",)
    ),
    Sentence(
        "0af49161",
        "comment: ok or an error",
        ("GUEST::test_success_and_the_plugins_own_error_keep_the_instance",),
    ),
    Sentence(
        "47acf6f0",
        "bare name, and what a shell hook gets",
        ("WASM::test_a_component_gets_what_a_shell_hook_gets",),
    ),
    Sentence("522688bb", "heading: patterns", ()),
    Sentence(
        "47205a6a",
        "patterns stand in the manifest",
        ("PLUGIN::test_a_manifest_of_the_pages_shape_is_read_without_a_word",),
    ),
    Sentence("0d1bc39e", "head of the table of patterns", ()),
    Sentence(
        "f50cf4d7",
        "exact",
        (
            "PATTERNS::test_an_event_is_named_bare_or_by_its_topic",
            "WASM::test_a_plugin_gets_the_events_of_its_manifest",
        ),
    ),
    Sentence("3943c3ff", "prefix", ("PATTERNS::test_a_prefix_and_the_star_match_every_lifecycle_event",)),
    Sentence("70584bbe", "everything", ("PATTERNS::test_a_prefix_and_the_star_match_every_lifecycle_event",)),
    Sentence("bf2e8f21", "heading: manifest", ()),
    Sentence(
        "25aa8916",
        "description of the sample",
        ("PLUGIN::test_a_manifest_of_the_pages_shape_is_read_without_a_word",),
    ),
    Sentence("4d59e306", "several blocks", ("WASM::test_a_plugin_gets_the_events_of_its_manifest",)),
    Sentence("9bd1b71e", "their union", ("WASM::test_a_plugin_gets_the_events_of_its_manifest",)),
    Sentence("ce51e867", "heading: execution", ()),
    Sentence(
        "bf430848",
        "limits of the sandbox",
        ("WASM::test_traps_loops_and_bombs_cost_their_own_call_and_nobody_else",),
    ),
    Sentence(
        "dee922e7",
        "64 MB",
        (
            "GUEST::test_memory_ends_at_the_limit",
            "PLUGIN::test_every_key_has_its_effect",
        ),
    ),
    Sentence(
        "0eae551d",
        "30 s",
        (
            "GUEST::test_an_endless_loop_ends_at_the_deadline",
            "PLUGIN::test_every_key_has_its_effect",
        ),
    ),
    Sentence("6ebf2734", "no files", ("COMPONENT::test_what_is_no_plugin_is_said_before_it_runs",)),
    Sentence("ddae8dc8", "no network", ("COMPONENT::test_what_is_no_plugin_is_said_before_it_runs",)),
    Sentence(
        "f679e2c9",
        "an error is logged and harms nobody",
        ("WASM::test_traps_loops_and_bombs_cost_their_own_call_and_nobody_else",),
    ),
    Sentence(
        "c8a88f32", "fire and forget", ("WASM::test_a_slow_plugin_delays_nobody_and_drops_only_its_own",)
    ),
    Sentence("4b866d87", "heading: bus", ()),
    Sentence(
        "6c6cc8b7",
        "every event is on its topic",
        ("LOOPS::test_the_bus_carries_every_event_with_or_without_hooks",),
    ),
    Sentence(
        "23d4cfbe",
        "with hooks or without",
        ("LOOPS::test_the_bus_carries_every_event_with_or_without_hooks",),
    ),
    Sentence("21da1d20", "heading: topics", ()),
    Sentence("5a3ee017", "heading: subscriptions", ()),
    Sentence("8eb5d811", "three kinds", ("LOOPS::test_three_kinds_of_subscription_by_client_and_command",)),
    Sentence("1d300da4", "exact", ("LOOPS::test_three_kinds_of_subscription_by_client_and_command",)),
    Sentence("61aef575", "wildcard", ("LOOPS::test_three_kinds_of_subscription_by_client_and_command",)),
    Sentence("de79e969", "hierarchy", ("LOOPS::test_three_kinds_of_subscription_by_client_and_command",)),
    Sentence("17a8e693", "heading: limits", ()),
    Sentence("09ee9a00", "head of the table of limits", ()),
    Sentence(
        "d36a8293",
        "64 KB",
        (
            "CLIENT::test_payloads_of_every_size_arrive_whole",
            "CLIENT::test_refusals_raise_say_what_is_wrong_and_take_no_number",
        ),
    ),
    Sentence("cae3db02", "depth 8", ("LOOPS::test_two_hooks_that_answer_each_other_stop_at_eight",)),
    Sentence("f4871c69", "asynchronous", ("MISBEHAVIOUR::test_a_slow_hook_never_slows_the_publisher",)),
    Sentence(
        "6ba9f9f2",
        "at most once",
        (
            "CLIENT::test_overlapping_patterns_deliver_once",
            "CLIENT::test_a_burst_arrives_in_order",
        ),
    ),
    Sentence(
        "7d4b1541",
        "an event of a hook counts up",
        (
            "LOOPS::test_two_hooks_that_answer_each_other_stop_at_eight",
            "SHELL::test_a_hook_that_publishes_goes_one_level_deeper_and_stops_at_eight",
        ),
    ),
    Sentence(
        "b4ec493a",
        "silently dropped at 8",
        (
            "LOOPS::test_two_hooks_that_answer_each_other_stop_at_eight",
            "CLIENT::test_depth_eight_is_dropped_silently_and_counted",
        ),
    ),
    Sentence("60ca20ba", "hooks are managed over HTTP", ("API::test_the_five_calls_of_the_page",)),
    Sentence(
        "434160d9",
        "all calls need the token, answer in JSON",
        ("GUARD::test_everything_but_healthz_needs_the_token",),
    ),
    Sentence("349793da", "heading: list", ()),
    Sentence("c866fa09", "label", ()),
    Sentence("226e0227", "heading: create", ()),
    Sentence("e6ad16f7", "201", ("API::test_the_five_calls_of_the_page",)),
    Sentence("56926026", "heading: update", ()),
    Sentence("f77b932c", "200 with the hook", ("API::test_the_five_calls_of_the_page",)),
    Sentence("0f60d1ea", "heading: delete", ()),
    Sentence("631ebc33", "204, empty", ("API::test_the_five_calls_of_the_page",)),
    Sentence("c55626d6", "heading: toggle", ()),
    Sentence("bcc6eec4", "200", ("API::test_the_five_calls_of_the_page",)),
    Sentence("fa9cbe70", "flips enabled", ("API::test_the_five_calls_of_the_page",)),
    Sentence(
        "0d17dbf0",
        "a disabled one stays and does not run",
        ("ACTION::test_a_disabled_action_does_not_run_and_says_so",),
    ),
    Sentence("c1920ea2", "heading: safety", ()),
    Sentence(
        "d59c47cd",
        "several measures, in detail below",
        (
            "SHELL::test_the_environment_is_clean",
            "SANDBOX::test_hooks_run_inside_on_all_three_channels_and_reach_the_bus",
        ),
    ),
    Sentence("5f76cf28", "heading: blocked variables", ()),
    Sentence(
        "01d12030",
        "stripped, and not to be set",
        (
            "SHELL::test_the_environment_is_clean",
            "ENVIRONMENT::test_a_name_of_the_page_is_blocked_by_its_own_rule",
        ),
    ),
    Sentence("23e14fc7", "head of the table of blocked variables", ()),
    Sentence(
        "8e818bb9",
        "LD_PRELOAD",
        (
            "ENVIRONMENT::test_a_name_of_the_page_is_blocked_by_its_own_rule",
            "ENVIRONMENT::test_the_page_blocks_exactly_its_six_names",
        ),
    ),
    Sentence(
        "3954f17a",
        "LD_LIBRARY_PATH",
        (
            "ENVIRONMENT::test_a_name_of_the_page_is_blocked_by_its_own_rule",
            "ENVIRONMENT::test_the_page_blocks_exactly_its_six_names",
        ),
    ),
    Sentence(
        "21f43b5f",
        "DYLD_INSERT_LIBRARIES",
        (
            "ENVIRONMENT::test_a_name_of_the_page_is_blocked_by_its_own_rule",
            "ENVIRONMENT::test_the_page_blocks_exactly_its_six_names",
        ),
    ),
    Sentence(
        "edc54e1d",
        "DYLD_LIBRARY_PATH",
        (
            "ENVIRONMENT::test_a_name_of_the_page_is_blocked_by_its_own_rule",
            "ENVIRONMENT::test_the_page_blocks_exactly_its_six_names",
        ),
    ),
    Sentence(
        "f3ae05bf",
        "PATH",
        (
            "ENVIRONMENT::test_a_name_of_the_page_is_blocked_by_its_own_rule",
            "ENVIRONMENT::test_the_page_blocks_exactly_its_six_names",
        ),
    ),
    Sentence(
        "0453b729",
        "HOME",
        (
            "ENVIRONMENT::test_a_name_of_the_page_is_blocked_by_its_own_rule",
            "ENVIRONMENT::test_the_page_blocks_exactly_its_six_names",
        ),
    ),
    Sentence("126d8d22", "heading: validation", ()),
    Sentence(
        "521c8926",
        "NUL is refused",
        (
            "ACTION::test_a_fault_refuses_the_action",
            "BAD::test_nul_anywhere_starts_nothing",
        ),
    ),
    Sentence("c08ff724", "why", ("BAD::test_nul_anywhere_starts_nothing",)),
    Sentence(
        "93c32b19",
        "metacharacters, and others",
        (
            "RULES::test_the_metacharacters_of_the_page_are_in_the_table",
            "VALUES::test_each_metacharacter_is_refused_wherever_it_stands",
        ),
    ),
    Sentence("60de41a6", "why", ("BAD::test_a_command_that_holds_a_metacharacter_starts_nothing",)),
    Sentence(
        "11c03a4d",
        "cwd stays inside",
        (
            "VALUES::test_a_folder_may_not_climb_out",
            "RESOLVE::test_a_relative_folder_may_not_leave_through_links",
            "BAD::test_a_folder_that_leaves_the_workspace_starts_nothing",
        ),
    ),
    Sentence("cd43ff1c", "heading: timeouts", ()),
    Sentence(
        "2523a9fe",
        "every process is bounded, 30 s by default",
        (
            "MISBEHAVIOUR::test_out_of_time_is_sigterm_then_five_seconds_then_sigkill",
            "ADOPTED::test_what_a_bounded_run_leaves_behind_ends_with_its_time",
        ),
    ),
    Sentence("6588b991", "lead-in: out of time", ()),
    Sentence(
        "bd69df57", "SIGTERM", ("MISBEHAVIOUR::test_out_of_time_is_sigterm_then_five_seconds_then_sigkill",)
    ),
    Sentence(
        "707b6221",
        "5 s, SIGKILL",
        ("MISBEHAVIOUR::test_out_of_time_is_sigterm_then_five_seconds_then_sigkill",),
    ),
    Sentence(
        "52fac1c4",
        "counted as a timeout",
        ("MISBEHAVIOUR::test_out_of_time_is_sigterm_then_five_seconds_then_sigkill",),
    ),
    Sentence("9c5ddb57", "the loop goes on", ("MISBEHAVIOUR::test_a_slow_hook_never_slows_the_publisher",)),
    Sentence("0c3cae36", "heading: isolation", ()),
    Sentence(
        "01e4079b",
        "an active sandbox holds for hooks",
        (
            "SANDBOX::test_hooks_run_inside_on_all_three_channels_and_reach_the_bus",
            "SANDBOX::test_memory_files_and_processes_are_limited",
        ),
    ),
    Sentence(
        "2c815fe0",
        "isolated, no network (bubblewrap; Docker is not provided)",
        ("SANDBOX::test_there_is_no_network",),
    ),
    Sentence("0d53f086", "heading: examples", ()),
    Sentence("072c3570", "heading: audit", ()),
    Sentence("61050482", "each call into a file", ("PAGE::test_the_audit_sample_runs",)),
    Sentence("b22c7e43", "heading: alert", ()),
    Sentence("c9a7e9a8", "errors go to a channel", ("PAGE::test_the_alert_sample_runs",)),
    Sentence("afaa1a6f", "heading: latency", ()),
    Sentence("6ecfd0e2", "latencies are followed", ("PAGE::test_the_latency_sample_runs",)),
    Sentence("c3425b46", "comment of the sample", ("PAGE::test_the_latency_sample_runs",)),
    Sentence("af15fcd1", "heading: sessions", ()),
    Sentence("2bc9475c", "start and end are followed", ("PAGE::test_the_session_sample_runs",)),
    Sentence("de5b08d6", "related pages", ()),
    Sentence("b478f7e9", "related pages", ()),
    Sentence("1dc73f52", "related pages", ()),
    Sentence("70ee32fc", "related pages", ()),
    Sentence("c59ea5d9", "related pages", ()),
    Sentence("96f79880", "related pages", ()),
)
