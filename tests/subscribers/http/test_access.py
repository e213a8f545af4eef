"""Who may come in: tokens, names, origins, and the pause after wrong tokens."""

from __future__ import annotations

import pytest

from subscribers.http.access import Gate, bearer, is_foreign_site, is_our_host, is_our_origin

TOKEN = "right-token-0123456789"


def test_five_wrong_tokens_are_followed_by_a_pause_of_ten_seconds() -> None:
    """The fifth in a row begins it; the right one is let in all the same."""
    gate = Gate(TOKEN)
    for _ in range(4):
        assert not gate.admits("wrong", 100.0)
        assert gate.closed_for(100.0) == 0
    assert not gate.admits("wrong", 100.0)
    assert gate.closed_for(100.0) == 10
    assert gate.admits(TOKEN, 100.0)
    assert gate.closed_for(109.5) == 0.5
    assert gate.closed_for(110.0) == 0


def test_a_right_token_forgives_the_wrong_ones() -> None:
    """Four wrong ones, a right one and four wrong ones close nothing."""
    gate = Gate(TOKEN)
    for token in ["wrong"] * 4 + [TOKEN] + ["wrong"] * 4:
        gate.admits(token, 0.0)
    assert gate.closed_for(0.0) == 0


@pytest.mark.parametrize("token", ["", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\udcff", "é"])
def test_any_other_token_is_wrong(token: str) -> None:
    """Also one that is no ASCII, or a part of the right one."""
    assert not Gate(TOKEN).admits(token, 0.0)


@pytest.mark.parametrize(
    "header,token",
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("", None),
    ],
)
def test_the_token_of_a_header(header: str, token: str | None) -> None:
    """The scheme is compared without case; another scheme is no token."""
    assert bearer(header) == token


@pytest.mark.parametrize(
    "host,ours",
    [
        ("127.0.0.1:16831", True),
        ("localhost:16831", True),
        ("LOCALHOST:16831", True),
        ("[::1]:16831", True),
        ("127.0.0.1", False),
        ("[::1]", False),
        ("127.0.0.1:16832", False),
        ("evil.example:16831", False),
        ("127.0.0.1.evil.example:16831", False),
        ("localhost.:16831", False),
        ("", False),
    ],
)
def test_only_this_machine_is_our_host(host: str, ours: bool) -> None:
    """A name that somebody made to point here is not ours, nor is another port."""
    assert is_our_host(host, 16831) is ours


def test_the_port_of_plain_http_need_not_be_said() -> None:
    """Without a port, 80 is meant."""
    assert is_our_host("localhost", 80)
    assert is_our_host("[::1]", 80)


def test_only_the_very_address_is_our_origin() -> None:
    """Another scheme, name or port, and null, are not."""
    assert is_our_origin("http://localhost:16831", "localhost:16831")
    for origin in ("https://localhost:16831", "http://127.0.0.1:16831", "http://localhost", "null", ""):
        assert not is_our_origin(origin, "localhost:16831")


def test_what_a_browser_says_of_another_site_counts() -> None:
    """cross-site and same-site come from pages that are not ours; none and same-origin do not."""
    assert is_foreign_site("Cross-Site")
    assert is_foreign_site("same-site")
    assert not is_foreign_site("same-origin")
    assert not is_foreign_site("none")
    assert not is_foreign_site("")
