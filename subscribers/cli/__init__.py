"""The verbs that hooks add to the command line, joined to it by the entry-point group ``prxbus.verbs``.

It decides words and exit codes. It refuses to know how hooks are read or run.
"""
