#!/bin/sh
# Appends every tool call to $AUDIT_LOG, one JSON object a line. The file has the payload whatever its size;
# $ZERO_HOOK_PAYLOAD would have it up to 8 KiB only.
set -eu
printf '%s\n' "$(cat "$ZERO_HOOK_PAYLOAD_FILE")" >> "$AUDIT_LOG"
