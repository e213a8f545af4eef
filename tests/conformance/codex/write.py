"""Writes the page that lists every case: ``python -m tests.conformance.codex.write``, from the checkout."""

from __future__ import annotations

from tests.conformance.codex.cases import CASES
from tests.conformance.codex.conformance import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page(CASES))
