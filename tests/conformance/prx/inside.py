"""What happens inside a stage: a server, a bus, the shell service, events, and a record of what came of them.

``inside.py TASK``: the task is a JSON file, see ``stage.py``; the record is one JSON document on stdout.
"""

from __future__ import annotations

import http.server
import json
import os
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

from broker.client import Publisher
from broker.testing import running_broker
from tests.integration.shell_scene import Monitor, shell

requests: list[dict[str, Any]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    """Writes every request down and says ok."""

    def do_POST(self) -> None:
        """A request with a body."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        requests.append(
            {
                "host": self.headers["Host"],
                "path": self.path,
                "type": self.headers["Content-Type"],
                "body": body,
            }
        )
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Stdout is for the record."""


def main() -> None:
    """Play the task."""
    task = json.loads(Path(sys.argv[1]).read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(task["certificate"], task["key"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.mkdir(task["bus"], 0o700)
    with running_broker(task["bus"], timeout=60.0) as bus, Publisher("agent", runtime_dir=bus) as agent:
        monitor = Monitor(bus)
        with shell(bus, Path(task["workspace"])):
            for name, payload in task["events"]:
                agent.publish(f"prx.lifecycle.{name}", payload, session_id="sess_abc123")
            runs = monitor.wait("prx.hooks.run", task["runs"], 60.0)
        monitor.events.close()
    server.shutdown()
    server.server_close()
    print(json.dumps({"runs": runs, "requests": requests}))


if __name__ == "__main__":
    main()
