"""The client of the bus: publish, subscribe, ask; blocking and asyncio over one sans-IO core.

It decides when a peer is ready and what was missed. It refuses to know who is at the other end: agents,
hooks and monitors are clients alike.
"""
