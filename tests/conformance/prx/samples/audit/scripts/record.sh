#!/bin/bash
# Small payloads come in the variable, every one in the file.
cat "$ZERO_HOOK_PAYLOAD_FILE" >> "$RECORD_FILE"
echo >> "$RECORD_FILE"
