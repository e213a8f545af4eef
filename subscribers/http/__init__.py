"""The HTTP API: hooks to edit, events to watch and publish, status and metrics.

It decides who is let in, what a request must be and how an answer looks. It refuses to know how a hook file
is edited (sources), how a hook is run and who starts this (runner).
"""
