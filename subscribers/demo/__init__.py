"""The demonstration: a recorded session of a coding agent, and a workspace whose hooks watch it.

``session.jsonl`` holds one event a line: the pause before it (ms), topic, session and payload.
"""
