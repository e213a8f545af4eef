"""Which hook is which: ids and times of the actions of a ``hooks.json``, over its edits.

An id that stands in the file holds. An action without one is recognised by a ledger of what was there
before: the same content, then the same place between neighbours that did not change; what is left is new. So
an id stays with its action when others are edited, added, moved or removed, and is never given twice. It
refuses to know where the ledger is kept and what time it is.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from .prx_edit import Action
from .prx_rules import KEPT_FIELDS

_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OURS: Final = re.compile(r"hook_([0-9]{1,9})")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z")


LONGEST: Final = 200
"""Characters of an event or a command that a ledger keeps as they are."""


class Known(NamedTuple):
    """A hook as it was last seen. ``digest`` is of what its action says, apart from ids and times.

    Of an event or a command that is very long, a digest stands there.
    """

    id: str
    event: str
    command: str
    digest: str
    created_at: str
    updated_at: str


class Ledger(NamedTuple):
    """The hooks that were last seen, in file order, and the number of the next id."""

    next: int = 1
    hooks: tuple[Known, ...] = ()


def digest(content: Mapping[str, Any]) -> str:
    """A short digest of what an action says; the order of its keys, its id and its times do not count."""
    said = {name: value for name, value in content.items() if name not in KEPT_FIELDS}
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def identify(actions: Sequence[Action], ledger: Ledger, seen_at: str) -> Ledger:
    """The ledger after these actions were seen at ``seen_at`` (RFC 3339): one hook for each, in order."""
    digests = [digest(action.content) for action in actions]
    before = {known.id: known for known in ledger.hooks}
    ids = _own_ids(actions, digests, before)
    taken = {own for own in ids if own is not None}
    free = [known for known in ledger.hooks if known.id not in taken]
    for index, known in _recognise(actions, digests, ids, free):
        ids[index] = known.id
    following = max([ledger.next, *(_number(name) + 1 for name in (*taken, *before))])
    hooks = []
    for action, own, said in zip(actions, ids, digests, strict=True):
        name = own
        if name is None:
            name = f"hook_{following:02d}"
            following += 1
        hooks.append(_known(name, action, said, before.get(name), seen_at))
    return Ledger(following, tuple(hooks))


def _own_ids(
    actions: Sequence[Action], digests: Sequence[str], before: Mapping[str, Known]
) -> list[str | None]:
    """The id that stands in each action; None where there is none, or another action has it.

    A copy brings the id of what it was copied from. That one keeps it which says what it said before, and
    where it said it; of several, or without one, the first.
    """
    holders: dict[str, list[int]] = {}
    for index, action in enumerate(actions):
        own = action.content.get("id")
        if isinstance(own, str) and _ID.fullmatch(own):
            holders.setdefault(own, []).append(index)
    ids: list[str | None] = [None] * len(actions)
    for own, indexes in holders.items():
        known = before.get(own)
        if known is None:
            ids[indexes[0]] = own
        else:
            same = [
                (digests[index] == known.digest, _event(actions[index]) == known.event) for index in indexes
            ]
            ids[indexes[same.index(max(same))]] = own
    return ids


def _recognise(
    actions: Sequence[Action], digests: Sequence[str], ids: Sequence[str | None], free: Sequence[Known]
) -> list[tuple[int, Known]]:
    """Pairs of an action without an id and the hook that it was before."""
    from difflib import SequenceMatcher  # only a file that was edited by hand needs it

    pairs: list[tuple[int, Known]] = []
    maybe: list[tuple[int, Known]] = []
    nameless = [index for index, own in enumerate(ids) if own is None]
    by_event: dict[str, tuple[list[int], list[Known]]] = {}
    for index in nameless:
        by_event.setdefault(_event(actions[index]), ([], []))[0].append(index)
    for known in free:
        if known.event in by_event:
            by_event[known.event][1].append(known)
    for now, then in by_event.values():
        matcher = SequenceMatcher(
            None, [known.digest for known in then], [digests[index] for index in now], autojunk=False
        )
        for kind, i, i_end, j, j_end in matcher.get_opcodes():
            if kind == "equal":
                pairs += zip(now[j:j_end], then[i:i_end], strict=True)
            elif kind == "replace":
                maybe += _alike(actions, now[j:j_end], then[i:i_end])
    found_indexes, found_known = {index for index, _ in pairs}, {known for _, known in pairs}
    open_known: dict[str, deque[Known]] = {}
    for known in free:
        if known not in found_known:
            open_known.setdefault(known.digest, deque()).append(known)
    for index in nameless:  # moved: the same content elsewhere
        if index not in found_indexes and open_known.get(digests[index]):
            pairs.append((index, open_known[digests[index]].popleft()))
    found_indexes, found_known = {index for index, _ in pairs}, {known for _, known in pairs}
    pairs += [pair for pair in maybe if pair[0] not in found_indexes and pair[1] not in found_known]
    return pairs


def _alike(actions: Sequence[Action], now: Sequence[int], then: Sequence[Known]) -> list[tuple[int, Known]]:
    """Edited actions between the same neighbours: equal commands belong together, then those in order."""
    pairs: list[tuple[int, Known]] = []
    left = list(then)
    for index in now:
        same = next((known for known in left if known.command == _command(actions[index])), None)
        if same is not None:
            left.remove(same)
            pairs.append((index, same))
    found = {index for index, _ in pairs}
    return pairs + list(zip((index for index in now if index not in found), left, strict=False))


def _command(action: Action) -> str:
    value = action.content.get("command")
    return _short(value) if isinstance(value, str) else ""


def _event(action: Action) -> str:
    return _short(action.event)


def _short(text: str) -> str:
    """What a ledger keeps of a text to know it again: a long one's digest, so that a ledger is bounded."""
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode()).hexdigest()


def _number(id: str) -> int:
    match = _OURS.fullmatch(id)
    return int(match[1]) if match else 0


def _known(id: str, action: Action, said: str, before: Known | None, seen_at: str) -> Known:
    created, updated = _time(action, "created_at"), _time(action, "updated_at")
    if before is None:
        created = created or seen_at
        return Known(id, _event(action), _command(action), said, created, updated or created)
    if before.digest == said and before.event == _event(action):
        latest = max(updated or "", before.updated_at)
    else:  # edited by hand, unless the file says that a program did it
        latest = updated if updated is not None and updated > before.updated_at else seen_at
    return Known(id, _event(action), _command(action), said, created or before.created_at, latest)


def _time(action: Action, name: str) -> str | None:
    value = action.content.get(name)
    return value if isinstance(value, str) and _TIME.fullmatch(value) else None
