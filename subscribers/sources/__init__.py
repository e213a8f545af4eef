"""Where hook files come from: discovery, watching, trust.

It decides which files are read and when a changed set replaces the last good one. It refuses to know
what a file means (dialects) or how a hook is run (runtimes).
"""
