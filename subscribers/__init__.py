"""prxbus, the hooks: subscriber processes that run what agents' hook files describe.

Every subscriber is an ordinary client of the bus and enters :mod:`broker` only through its protocol, its
client and its logging set-up.
"""
