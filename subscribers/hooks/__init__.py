"""The normal form of a hook: spec, invocation, outcome, diagnostics.

It decides what every dialect must say and every runtime must report. Sans-IO: it refuses to know any
file format, any process, any clock.
"""
