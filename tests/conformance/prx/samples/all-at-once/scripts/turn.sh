#!/bin/bash
printf '%s|%s|%s\n' "$1" "$PWD" "$(cat)" >> /var/log/prx/turns.txt
