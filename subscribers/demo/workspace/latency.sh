#!/bin/sh
# The model's latency as a metric line, read from standard input.
sed -n 's/.*"model":"\([^"]*\)".*"duration_ms":\([0-9]*\).*/llm.duration,model=\1 \2/p' >>metrics.txt
