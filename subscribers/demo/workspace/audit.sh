#!/bin/sh
# One line for each tool call, whole: the file holds payloads of any size.
cat "$ZERO_HOOK_PAYLOAD_FILE" >>"$AUDIT_LOG" && echo >>"$AUDIT_LOG"
