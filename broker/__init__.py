"""prxbus, the bus: protocol, control plane, server, client and the bus verbs of the command line.

Nothing here imports :mod:`subscribers`; hooks are ordinary clients of the bus.
"""
