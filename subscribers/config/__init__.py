"""The configuration: one schema, five layers, and where each value came from.

It decides names, bounds and precedence; it refuses to know who uses a value.
"""
