"""Where bus, dialect, source and runtime meet: one event end to end, a subscriber process, its supervisor.

It decides order, budgets and what is reported; it refuses to know a file format or how a child is run.
"""
