"""What travels on the bus and what is allowed to: topics, envelopes, limits, errors, catalogue.

Sans-IO: no socket, file, clock, loop or logger. Time and randomness are arguments.
"""
