#!/bin/sh
# Notes when a session starts and ends.
set -eu
printf '%s %s %s\n' "$ZERO_HOOK_TIMESTAMP" "$1" "${ZERO_HOOK_SESSION:-no session}" >> sessions.log
