#!/bin/bash
# Small payloads come in the variable, every one in the file. Hooks run side by side: one line at a time.
exec 9>> "$RECORD_FILE"
flock 9
cat "$ZERO_HOOK_PAYLOAD_FILE" >&9
echo >&9
