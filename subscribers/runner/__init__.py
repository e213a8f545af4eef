"""One event end to end: match, plan, run, report; and the process that does it for a workspace.

It decides concurrency, queue bounds and what is published about a run. It refuses to know the syntax of
any hook file and the handling of any child.
"""
