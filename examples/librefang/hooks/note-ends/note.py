#!/usr/bin/env python3
"""Appends one line for each event to the file that is its first argument, in the hook's own folder."""

import json
import os
import sys

event = os.environ["HOOK_EVENT"]
if "HOOK_EVENT_DATA_FILE" in os.environ:  # only for a payload that no variable holds
    with open(os.environ["HOOK_EVENT_DATA_FILE"], encoding="utf-8") as file:
        data = json.load(file)
else:
    data = json.loads(os.environ["HOOK_EVENT_DATA"])

if event == "agent:end":
    line = f"{data['agent_id']}: {data['status']}, {data['tokens_used']} tokens, {data['duration_ms']} ms"
else:
    line = f"prxbus {data['version']} started at {data['started_at']}"

with open(sys.argv[1], "a", encoding="utf-8") as log:
    log.write(f"{line}\n")
