"""The file that an attached agent has run: ``python -I -S prxbus_hook.py DIALECT SOCKET SECONDS POLICY``.

All that it does is in :mod:`.hook_command`: that is imported, and so compiled once and not at each event.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0])
__import__("hook_command").run(sys.argv[1:])
