"""What an agent takes into itself to speak with hooks in a line each: one module for each system of hooks.

An adapter is the agent's side of a dialect: it asks over the bus and knows nothing of who answers.
"""
