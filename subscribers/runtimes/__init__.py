"""How code is run: an invocation in, an outcome out.

It decides how a child is started, fed, capped, timed and ended. It refuses to know formats and the bus:
no dialect, no socket.
"""
