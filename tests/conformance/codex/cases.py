"""Every case of the Codex contract, in the order of the contract's own list."""

from __future__ import annotations

from typing import Final

from tests.conformance.codex import cases_a, cases_b, cases_c, cases_e, cases_f, cases_g
from tests.conformance.codex.conformance import Case

CASES: Final[tuple[Case, ...]] = (
    *cases_a.CASES,
    *cases_b.CASES,
    *cases_c.CASES,
    *cases_e.CASES,
    *cases_f.CASES,
    *cases_g.CASES,
)
