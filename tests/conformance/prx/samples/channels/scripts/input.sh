#!/bin/bash
read -r line
printf '%s' "$line" > /var/log/prx/input
echo "$line" | jq -r '.payload.tool' > /var/log/prx/input.tool
