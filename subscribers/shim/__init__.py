"""The program that an attached agent starts for each of its events; see :mod:`.hook_command`.

It is run as a file by an interpreter that loads nothing else, so nothing here may import the rest of us.
"""
