"""In what order parts run: the stage of each node.

Nodes that a backend takes are in odd stages, all others in even ones, and no node is in an earlier
stage than what it reads. Each stage is a part: so parts are convex, and no two wait for each other.

A path that changes between backend and remainder ``n`` times needs as many stages. Each node in the
first stage that is left for it gives exactly as many as the longest such path needs: there are no
fewer. What is left open is then chosen by the bytes that go to the backend and come from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ROUNDS = 2  # over all nodes; more save next to nothing
WIDEST = 64  # readers of a value that are looked at again once one of them has moved


@dataclass(eq=False)
class Dataflow:
    """A graph by number: the values that each node reads and makes, and the bytes of each value.

    Nodes are in topological order. ``maker`` is the node of a value, -1 for an input; ``is_output``
    are values that leave the graph.
    """

    reads: Sequence[Sequence[int]]
    makes: Sequence[Sequence[int]]
    sizes: Sequence[int]
    is_output: Sequence[bool]

    def __post_init__(self) -> None:
        self.node_count = len(self.reads)
        self.maker = [-1] * len(self.sizes)
        self.readers: list[list[int]] = [[] for _ in self.sizes]
        for node, (read, outputs) in enumerate(zip(self.reads, self.makes, strict=True)):
            for value in outputs:
                self.maker[value] = node
            for value in read:
                self.readers[value].append(node)
        maker = self.maker
        self.before = [[maker[v] for v in read if maker[v] >= 0] for read in self.reads]
        self.after = [[r for v in outputs for r in self.readers[v]] for outputs in self.makes]


def round_up(stage: int, is_taken: bool) -> int:
    """The first stage from this one on for a node of the backend, or of the remainder."""
    return stage if stage % 2 == is_taken else stage + 1


def round_down(stage: int, is_taken: bool) -> int:
    """The last stage up to this one, likewise."""
    return stage if stage % 2 == is_taken else stage - 1


def earliest_stages(flow: Dataflow, offloaded: Sequence[bool]) -> list[int]:
    """The first possible stage of each node."""
    stages = [0] * flow.node_count
    for node in range(flow.node_count):
        first = max((stages[p] for p in flow.before[node]), default=0)
        stages[node] = round_up(first, offloaded[node])
    return stages


def latest_stages(flow: Dataflow, offloaded: Sequence[bool], last: int) -> list[int]:
    """The last possible stage of each node, if the last of all is ``last``."""
    stages = [last] * flow.node_count
    for node in reversed(range(flow.node_count)):
        end = min((stages[r] for r in flow.after[node]), default=last)
        stages[node] = round_down(end, offloaded[node])
    return stages


def assign_stages(flow: Dataflow, offloaded: Sequence[bool]) -> list[int]:
    """The stage of each node: the fewest stages of the backend, then few bytes moved."""
    early = earliest_stages(flow, offloaded)
    parts = max((s for s, t in zip(early, offloaded, strict=True) if t), default=-1)
    if parts < 0:
        return [0] * flow.node_count
    late = latest_stages(flow, offloaded, parts + 1)
    start = min((early, late), key=lambda stages: count_bytes_moved(flow, stages))
    best = _improve(flow, offloaded, start) if parts > 1 else start
    return _settle_remainder(flow, offloaded, best, parts + 1)


def count_bytes_moved(flow: Dataflow, stages: Sequence[int]) -> int:
    """The bytes that backend stages read from elsewhere, and that they make for elsewhere."""
    total = 0
    for value, size in enumerate(flow.sizes):
        maker = flow.maker[value]
        origin = stages[maker] if maker >= 0 else -1
        ends = {stages[r] for r in flow.readers[value]} - {origin}
        is_sent = origin % 2 == 1 and origin > 0 and (bool(ends) or flow.is_output[value])
        total += size * (is_sent + sum(1 for s in ends if s % 2))
    return total


class _Search:
    """Stages of backend nodes, moved one group of nodes at a time.

    ``low`` and ``high`` bound each remainder node, as long as backend nodes stay where they are.
    """

    def __init__(self, flow: Dataflow, offloaded: Sequence[bool], stages: Sequence[int]) -> None:
        self.flow, self.offloaded, self.stages, self.last = flow, offloaded, [*stages], max(stages)
        self.before, self.after = flow.before, flow.after
        self.low, self.high = _bounds(flow, offloaded, stages, self.last)
        self.counts: list[dict[int, int]] = []  # by value: how many read it in each stage
        for readers in flow.readers:
            counts: dict[int, int] = {}
            for reader in readers:
                counts[self.stages[reader]] = counts.get(self.stages[reader], 0) + 1
            self.counts.append(counts)

    def cost(self, value: int) -> int:
        """The bytes that a value moves."""
        maker = self.flow.maker[value]
        origin = self.stages[maker] if maker >= 0 else -1
        counts = self.counts[value]
        ends = sum([s % 2 and s != origin for s in counts])
        leaves = self.flow.is_output[value] or len(counts) > (origin in counts)
        return self.flow.sizes[value] * (ends + (origin > 0 and origin % 2 == 1 and leaves))

    def move(self, group: Sequence[int], stage: int) -> int:
        """Put nodes into a stage; return how many bytes more that moves."""
        touched = {v for n in group for v in (*self.flow.reads[n], *self.flow.makes[n])}
        before = sum(map(self.cost, touched))
        for node in group:
            old, self.stages[node] = self.stages[node], stage
            for value in self.flow.reads[node]:
                counts = self.counts[value]
                counts[old] -= 1
                if not counts[old]:
                    del counts[old]
                counts[stage] = counts.get(stage, 0) + 1
        return sum(map(self.cost, touched)) - before

    def choices(self, group: Sequence[int]) -> list[int]:
        """The other stages that a group may be in and that share a value with it."""
        here, near = self.stages[group[0]], set[int]()
        for node in group:
            for value in self.flow.reads[node]:
                near.update(self.counts[value])
            near.update([self.stages[n] for n in (*self.before[node], *self.after[node])])
        near = {s for s in near if s % 2 and s != here}
        if not near:
            return []
        members = set(group)
        first = max([self.limit_of(self.low, p) for n in group for p in self.before[n]
                     if p not in members], default=0)  # fmt: skip
        end = min([self.limit_of(self.high, r) for n in group for r in self.after[n]
                   if r not in members], default=self.last)  # fmt: skip
        return sorted(s for s in near if first <= s <= end)

    def limit_of(self, bounds: Sequence[int], node: int) -> int:
        """The stage of a node of the backend, the bound of another."""
        return self.stages[node] if self.offloaded[node] else bounds[node]

    def try_moves(self, groups: Iterable[Sequence[int]]) -> list[int]:
        """Move each group to the stage that saves most bytes; return the nodes moved."""
        moved: list[int] = []
        for group in groups:
            here = stage = self.stages[group[0]]
            best = 0
            for other in self.choices(group):
                more = self.move(group, other)
                if more < best:
                    best, stage = more, other
                self.move(group, here)
            if stage != here:
                self.move(group, stage)
                self.update_bounds(group)
                moved += group
        return moved

    def update_bounds(self, group: Iterable[int]) -> None:
        """Bring the bounds of the remainder nodes up to date that a moved group limits."""
        ahead = [r for n in group for r in self.after[n] if not self.offloaded[r]]
        while ahead:
            node = ahead.pop()
            first = max([self.limit_of(self.low, p) for p in self.before[node]], default=0)
            if (new := round_up(first, False)) != self.low[node]:
                self.low[node] = new
                ahead += [r for r in self.after[node] if not self.offloaded[r]]
        behind = [p for n in group for p in self.before[n] if not self.offloaded[p]]
        while behind:
            node = behind.pop()
            end = min([self.limit_of(self.high, r) for r in self.after[node]], default=self.last)
            if (new := round_down(end, False)) != self.high[node]:
                self.high[node] = new
                behind += [p for p in self.before[node] if not self.offloaded[p]]

    def collect_neighbors(self, nodes: Iterable[int]) -> set[int]:
        """The backend nodes that a move of others may let move: they share a value, or are near."""
        neighbors: set[int] = set()
        for node in nodes:
            neighbors.update((node, *self.before[node], *self.after[node]))
            for value in self.flow.reads[node]:
                if len(self.flow.readers[value]) <= WIDEST:
                    neighbors.update(self.flow.readers[value])
        return {n for n in neighbors if self.offloaded[n]}


def _improve(flow: Dataflow, offloaded: Sequence[bool], start: Sequence[int]) -> list[int]:
    """Move nodes, and connected groups of them, while fewer bytes are moved so."""
    search = _Search(flow, offloaded, start)
    active = {n for n in range(flow.node_count) if offloaded[n]}
    for _ in range(ROUNDS):
        moved = search.try_moves([n] for n in sorted(active))
        active |= search.collect_neighbors(moved)
        moved += search.try_moves([n] for n in sorted(active, reverse=True))
        active |= search.collect_neighbors(moved)
        groups = connected_groups(flow, offloaded, search.stages)
        moved += search.try_moves(g for g in groups if len(g) > 1 and not active.isdisjoint(g))
        active = search.collect_neighbors(moved)
        if not moved:
            break
    return search.stages


def _bounds(
    flow: Dataflow, offloaded: Sequence[bool], stages: Sequence[int], last: int
) -> tuple[list[int], list[int]]:
    """The first and the last stage of each remainder node, while backend nodes stay in theirs."""
    low, high = [*stages], [*stages]
    for node in range(flow.node_count):
        if not offloaded[node]:
            low[node] = round_up(max([low[p] for p in flow.before[node]], default=0), False)
    for node in reversed(range(flow.node_count)):
        if not offloaded[node]:
            end = min([high[r] for r in flow.after[node]], default=last)
            high[node] = round_down(end, False)
    return low, high


def connected_groups(
    flow: Dataflow, offloaded: Sequence[bool], stages: Sequence[int]
) -> list[list[int]]:
    """The connected pieces of the backend's stages, each in topological order."""
    parent = list(range(flow.node_count))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for node in range(flow.node_count):
        if offloaded[node]:
            for other in flow.before[node]:
                if offloaded[other] and stages[other] == stages[node]:
                    parent[root(node)] = root(other)
    groups: dict[int, list[int]] = {}
    for node in range(flow.node_count):
        if offloaded[node]:
            groups.setdefault(root(node), []).append(node)
    return list(groups.values())


def _settle_remainder(
    flow: Dataflow, offloaded: Sequence[bool], stages: Sequence[int], last: int
) -> list[int]:
    """Put remainder nodes into few stages: the first one is empty where none has to be in it."""
    low, high = _bounds(flow, offloaded, stages, last)
    is_first = any(not t and h == 0 for t, h in zip(offloaded, high, strict=True))
    levels = [*stages]
    for node in range(flow.node_count):
        if not offloaded[node]:
            first = max((levels[p] for p in flow.before[node]), default=0)
            levels[node] = round_up(max(first, low[node]), False)
            if not is_first and levels[node] == 0:
                levels[node] = min(2, high[node])
    return levels
