"""How many clients fit."""

from __future__ import annotations

import subprocess
import sys

from broker.server.descriptors import OWN_DESCRIPTORS, PER_CLIENT, clients_for


def test_clients_share_what_the_broker_leaves() -> None:
    """Each client takes a few descriptors of those that are not the broker's own."""
    assert clients_for(OWN_DESCRIPTORS + 10 * PER_CLIENT) == 10
    assert clients_for(0) == 0


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    """In a process with a low soft limit the hard limit holds afterwards, and again when asked twice."""
    code = (
        "import resource as r; hard = r.getrlimit(r.RLIMIT_NOFILE)[1];"
        "r.setrlimit(r.RLIMIT_NOFILE, (64, hard));"
        "from broker.server.descriptors import raise_descriptor_limit as up;"
        "assert up() == up() == hard; assert r.getrlimit(r.RLIMIT_NOFILE) == (hard, hard)"
    )
    subprocess.run([sys.executable, "-c", code], timeout=30, check=True)
