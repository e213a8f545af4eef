#!/bin/bash
printf '%s' "$ZERO_HOOK_PAYLOAD" > /var/log/prx/variable
echo "$ZERO_HOOK_PAYLOAD" | jq -r '.payload.tool' > /var/log/prx/variable.tool
