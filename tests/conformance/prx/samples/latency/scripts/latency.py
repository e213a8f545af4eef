import json
import sys

event = json.load(sys.stdin)
call = event["payload"]
with open("/var/log/prx/latency.txt", "a") as log:
    log.write(f"{event['session_id']} {call['provider']}/{call['model']} {call['duration_ms']}\n")
