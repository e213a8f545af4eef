"""What a hook file means: text in, hook specs and diagnostics out; an event in, an invocation out.

One dialect per foreign system. Sans-IO: a dialect never opens a file and never starts a process.
"""
