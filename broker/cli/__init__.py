"""The command line of the bus: one module per verb, and the dispatch that imports only the verb asked for.

It decides words, exit codes and how data is printed. It refuses to know hooks: their verbs join through
the entry-point group ``prxbus.verbs``.
"""
