"""A plugin that writes every tool call as a line of JSON, and says when it missed something.

python examples/audit.py [number of events to wait for]
"""

import json
import sys

from broker.client import Subscriber


def main(count: int | None) -> None:
    """Follow tool calls until ``count`` of them came, or for ever."""
    missed = 0
    with Subscriber(["prx.lifecycle.tool_call"], name="audit", wait=10) as events:
        print("listening", file=sys.stderr, flush=True)
        for number, event in enumerate(events, 1):
            line = {"time": event.time.isoformat(), "session": event.session_id, **event.payload}
            print(json.dumps(line), flush=True)
            if events.stats["missed"] > missed:
                missed = events.stats["missed"]
                print(f"missed {missed} so far: {events.stats['gaps']}", file=sys.stderr)
            if number == count:
                return


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
