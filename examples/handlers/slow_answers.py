"""Watches how long models take to answer, and publishes an event about each answer that was unusually slow.

prxbus up --handlers examples/handlers
prxbus tap 'watch.*'
"""

from collections import defaultdict, deque
from statistics import median

from subscribers.handlers import Context, HandlerEvent, on

REMEMBERED = 50
ENOUGH = 5
FACTOR = 4.0

durations: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))


@on("llm_response")
def slow(event: HandlerEvent, ctx: Context) -> None:
    """Compare with the median of the last answers of the same model."""
    model, duration_ms = event.payload.get("model", "unknown"), event.payload.get("duration_ms")
    if not isinstance(model, str) or not isinstance(duration_ms, (int, float)):
        return
    known = durations[model]
    if len(known) >= ENOUGH and duration_ms > FACTOR * median(known):
        usual_ms = median(known)
        ctx.log.info("an answer was slow", model=model, duration_ms=duration_ms, usual_ms=usual_ms)
        ctx.publish("watch.slow_answer", {"model": model, "duration_ms": duration_ms, "usual_ms": usual_ms})
    known.append(duration_ms)
