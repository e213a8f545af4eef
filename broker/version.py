"""The version of this release, as a literal.

Asking the installed metadata would cost every short command 20 ms. The build reads it from here;
``tests/meta`` holds it against the newest entry of the change log.
"""

__version__ = "0.1.0"
