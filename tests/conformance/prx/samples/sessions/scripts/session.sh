#!/bin/bash
echo "$1 $ZERO_HOOK_SESSION $ZERO_HOOK_EVENT" >> /var/log/prx/sessions.txt
