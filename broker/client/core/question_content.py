"""What of an asked payload travels with the ask, and what of it is published.

Decides between frame and claim, and what is taken out of a copy. Knows no file: storing is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from ...protocol.envelope import Claim, payload_header
from ...protocol.errors import LimitExceeded
from ...protocol.limits import PAYLOAD_BYTES
from .asking import REDACTED, Question, redacted


def put_content(
    question: Question, body: bytes, plain: Mapping[str, Any], store: Callable[[bytes], Claim], limit: int
) -> None:
    """Give ``question`` its payload ``body``, which means ``plain``; ``store`` keeps a large one.

    Raises :class:`LimitExceeded` for more than ``limit`` bytes, and what ``store`` raises.
    """
    if len(body) > limit:
        raise LimitExceeded(f"payload of {len(body):,} bytes of JSON; an ask takes at most {limit:,} here")
    if question.stream.topic == REDACTED:
        copy = redacted(plain)
        question.copy = payload_header(len(copy)) + copy
        question.body = copy
    if len(body) > PAYLOAD_BYTES:
        question.claim = store(body)
        question.content = bytes(msgpack.packb(question.claim.fields()))
    else:
        question.content = payload_header(len(body)) + body
        question.body = question.body or body
