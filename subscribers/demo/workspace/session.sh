#!/bin/sh
# When the agent began and ended its turns.
echo "$1 $ZERO_HOOK_SESSION $ZERO_HOOK_TIMESTAMP" >>sessions.txt
