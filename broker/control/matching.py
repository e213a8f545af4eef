"""Which subscribers ask for a topic.

A tree by segments: what a topic costs depends on its own length and on the patterns that fit
so far, not on how many there are. It answers as :meth:`broker.protocol.topics.Pattern.matches` does,
pattern by pattern; a property test holds it to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .bounds import MATCHES_CACHED


class _Node:
    """``here``: who asks for the name that ends here; ``below``: who asks for all names below."""

    __slots__ = ("below", "children", "here")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.here: set[bytes] = set()
        self.below: set[bytes] = set()

    def __bool__(self) -> bool:
        return bool(self.children or self.here or self.below)


class Interests:
    """Patterns by who asks for them. ``held`` is the number of pairs of both."""

    def __init__(self) -> None:
        self.held = 0
        self._root = _Node()
        self._patterns: dict[bytes, tuple[str, ...]] = {}
        self._counts: dict[str, int] = {}

    def put(self, peer: bytes, patterns: Iterable[str]) -> None:
        """``peer`` asks for ``patterns`` (taken as checked, each once) and for nothing else."""
        self.drop(peer)
        self._patterns[peer] = patterns = tuple(patterns)
        for pattern in patterns:
            node = self._root
            *path, last = pattern.split(".")
            for segment in path:
                node = node.children.setdefault(segment, _Node())
            owners = node.below if last == "*" else node.children.setdefault(last, _Node()).here
            owners.add(peer)
        self.held += len(patterns)
        self._counts.clear()

    def drop(self, peer: bytes) -> None:
        """``peer`` asks for nothing any more; a peer that never did is no error."""
        patterns = self._patterns.pop(peer, ())
        for pattern in patterns:
            _remove(self._root, pattern.split("."), 0, peer)
        self.held -= len(patterns)
        self._counts.clear()

    def of(self, topic: str) -> set[bytes]:
        """Who asks for ``topic`` (taken as checked)."""
        found: set[bytes] = set()
        for owners in self._walk(topic.split(".")):
            found |= owners
        return found

    def count(self, topic: str) -> int:
        """How many ask for ``topic``; remembered until the patterns change."""
        count = self._counts.get(topic)
        if count is None:
            if len(self._counts) >= MATCHES_CACHED:
                self._counts.clear()
            count = self._counts[topic] = len(self.of(topic))
        return count

    def _walk(self, segments: list[str]) -> Iterator[set[bytes]]:
        nodes = [self._root]
        for segment in segments:
            yield from (node.below for node in nodes)
            nodes = [
                child
                for node in nodes
                for child in (node.children.get(segment), node.children.get("*"))
                if child is not None
            ]
        yield from (node.here for node in nodes)


def _remove(node: _Node, segments: list[str], position: int, peer: bytes) -> None:
    segment = segments[position]
    last = position == len(segments) - 1
    if last and segment == "*":
        node.below.discard(peer)
        return
    child = node.children[segment]
    if last:
        child.here.discard(peer)
    else:
        _remove(child, segments, position + 1, peer)
    if not child:
        del node.children[segment]
