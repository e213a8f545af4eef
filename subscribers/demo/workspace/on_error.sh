#!/bin/sh
# Errors go to a log; one of the model's is passed on as a failure, to show what that looks like.
echo "$ZERO_HOOK_TIMESTAMP $ZERO_HOOK_PAYLOAD" >>errors.log
case "$ZERO_HOOK_PAYLOAD" in *'"component":"llm"'*)
  echo "the model's error was not delivered to the pager" >&2
  exit 1
  ;;
esac
