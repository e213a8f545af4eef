"""What a file of Python handlers imports: how functions become handlers, and what they are given.

    from subscribers.handlers import on, decide, transform

    @on("tool_call", tools=["Bash"])
    def audit(event, ctx): ctx.log.info("ran", tool=event.payload["tool"])

    @decide("tool_call_start", priority=10, timeout=1.0)
    async def guard(event, ctx): return ctx.deny("not here") if "rm -rf" in str(event.payload) else None

Decides what a handler may look like and say. Refuses to know how files are found, loaded and run, and the
bus: ``ctx.publish`` is lent by whoever runs the handler.
"""

from __future__ import annotations

from broker.protocol.decisions import Answer

from .context import Context
from .decorators import decide, on, transform
from .happening import HandlerEvent
from .registration import HandlerError, Registration

__all__ = ["Answer", "Context", "HandlerError", "HandlerEvent", "Registration", "decide", "on", "transform"]
