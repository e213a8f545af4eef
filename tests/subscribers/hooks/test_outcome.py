"""Outcomes are plain values, and capped output reads as honest text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.outcome import NOTHING, Captured, Outcome


@pytest.mark.parametrize(
    "returncode,status,exit_code,signal",
    [(0, "ok", 0, None), (1, "failed", 1, None), (2, "failed", 2, None), (-9, "signalled", None, 9)],
)
def test_a_return_code_becomes_exactly_one_status(
    returncode: int, status: str, exit_code: int | None, signal: int | None
) -> None:
    """Exit codes and signals are told apart, and neither is set where the other applies."""
    out, err = Captured(b"o", b"", 1), Captured(b"e", b"", 1)
    outcome = Outcome.exited(returncode, 0.5, out, err)
    assert (outcome.status, outcome.exit_code, outcome.signal) == (status, exit_code, signal)
    assert (outcome.duration_s, outcome.stdout, outcome.stderr, outcome.reason) == (0.5, out, err, None)


def test_what_never_started_has_no_exit_code_but_a_reason() -> None:
    """A program that could not be started never looks like one that exited."""
    outcome = Outcome.not_started("/nope does not exist")
    assert outcome == Outcome("not_started", None, None, 0.0, NOTHING, NOTHING, reason="/nope does not exist")


def test_text_replaces_bad_bytes() -> None:
    """Bytes that are not UTF-8 become U+FFFD and the rest stays."""
    captured = Captured("grün ".encode() + b"\xff\xfe\x00end", b"", 12)
    assert captured.text() == "grün ��\x00end"
    assert not captured.truncated


def test_head_and_tail_that_touch_are_one_text() -> None:
    """A character split between head and tail is whole when nothing was left out between them."""
    euro = "€".encode()
    captured = Captured(euro[:1], euro[1:], 3)
    assert not captured.truncated
    assert captured.text() == "€"


def test_a_cut_is_marked_with_what_it_cost_and_splits_no_character() -> None:
    """A truncated stream shows where bytes were left out, how many, and no damage of the cut's own making."""
    euro = "€".encode()
    captured = Captured(b"head" + euro[:2], euro[2:] + b"tail", 1_000)
    assert captured.truncated
    assert captured.text() == "head\n[... 989 bytes left out ...]\ntail"


def test_a_cut_hides_no_bad_byte_of_the_program() -> None:
    """Bad bytes away from the cut are still shown as bad."""
    assert Captured(b"\xff.", b".\xff", 100).text() == "�.\n[... 96 bytes left out ...]\n.�"


@given(head=st.binary(max_size=8), tail=st.binary(max_size=8), more=st.integers(0, 5))
def test_any_bytes_read_as_text(head: bytes, tail: bytes, more: int) -> None:
    """Law: no bytes make text() fail, and a cut is marked exactly when bytes are missing."""
    captured = Captured(head, tail, len(head) + len(tail) + more)
    assert captured.truncated == (more > 0)
    assert (f"[... {more} bytes left out ...]" in captured.text()) >= captured.truncated


@given(text=st.text(max_size=20), cut=st.integers(0, 80), gap=st.integers(1, 9))
def test_a_cut_through_good_text_shows_no_bad_character(text: str, cut: int, gap: int) -> None:
    """Law: wherever valid UTF-8 is cut, the text on both sides is a beginning and an end of the original."""
    data = text.replace("�", "?").encode()
    head, tail = data[:cut], data[cut + gap :]
    if cut + gap > len(data):
        return
    shown = Captured(head, tail, len(data)).text()
    before, _, after = shown.partition(f"\n[... {gap} bytes left out ...]\n")
    assert "�" not in shown
    assert data.decode().startswith(before)
    assert data.decode().endswith(after)
