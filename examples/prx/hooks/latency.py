"""Notes how long each model call took: time, model, milliseconds, outcome, separated by tabs."""

import json
import sys

event = json.load(sys.stdin)
payload = event["payload"]
outcome = "ok" if payload.get("success") else "failed"
row = [event["timestamp"], payload.get("model") or "unknown", str(payload.get("duration_ms")), outcome]
with open("latency.tsv", "a", encoding="utf-8") as table:
    table.write("\t".join(row) + "\n")
