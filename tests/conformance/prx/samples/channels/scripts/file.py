import json
import os
import shutil

shutil.copy(os.environ["ZERO_HOOK_PAYLOAD_FILE"], "/var/log/prx/file")
with open("/var/log/prx/file") as file, open("/var/log/prx/file.tool", "w") as tool:
    tool.write(json.load(file)["payload"]["tool"] + "\n")
