"""Counts the calls of each tool, and publishes an event when one has failed.

``wit_world`` and ``componentize_py_types`` are made by componentize-py while it builds the component.
"""

import json

from componentize_py_types import Err
from wit_world.imports import config, events, kv, log


class HookExports:
    """The interface ``prx:plugin/hook-exports``."""

    def on_event(self, event: str, payload_json: str) -> None:
        """Handle one event; ``payload_json`` is what a shell hook gets."""
        call = json.loads(payload_json)["payload"]
        tool = call["tool"]
        if not isinstance(tool, str):
            raise Err(f"{event} without the name of a tool")
        calls = int(kv.get(tool) or b"0") + 1
        kv.set(tool, str(calls).encode())
        log.log(log.Level.INFO, f"{tool}: {calls} calls")
        if call["success"] is False:
            topic = config.get("topic") or "prx.alerts.tool_failed"
            events.publish(topic, json.dumps({"tool": tool, "calls": calls}))
