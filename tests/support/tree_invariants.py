"""What must hold in the arrays of a search tree, checked node by node and without the kernels."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import U64
from tidegate.matching.rows.kernels.flags import DEAD, MOVING, VERIFY
from tidegate.matching.tree.kernels import layout as la
from tidegate.matching.tree.kernels.slots import seen_bit
from tidegate.matching.tree.search_tree import SearchTree

Trits = tuple[int, int]
"""The bits `sure` and `may` of all links of a node, as sets of bits."""


def check_tree(tree: SearchTree) -> None:
    """Check structure, counts, proofs, guards, annotations, and that each entry is found."""
    check = _Check(tree)
    paths, _ = check.node(la.ROOT, {})
    check.entries_have(paths)
    check.statistics()


def check_leaves_are_split(tree: SearchTree) -> None:
    """Check that no leaf is too large, except where it was found that it cannot be split.

    After removals one may be; it is looked at again when a path is put into it.
    """
    check = _Check(tree)
    leaves = check.ints[:, la.N_KIND] & la.KIND_MASK == la.LEAF
    ties = check.ties[: len(leaves)][leaves[: len(check.ties)]]
    large = ties[ties[:, la.T_PATHS] > check.arrays.head[la.H_LEAF_PATHS_MAX]]
    assert (large[:, la.T_PATHS] < 2 * large[:, la.T_CHILD]).all()


class _Check:
    def __init__(self, tree: SearchTree) -> None:
        self.arrays = tree.storage.arrays
        self.nodes = self.arrays.node.reshape(-1, la.NODE_WORDS)
        self.ints = self.nodes.view(np.int32)
        self.ties = self.arrays.tie.reshape(-1, la.TIE_WORDS)
        self.paths = self.arrays.path.reshape(-1, la.PATH_WORDS)
        self.entries = self.arrays.entry.reshape(-1, la.ENTRY_WORDS)
        self.bounds = self.arrays.bound.reshape(-1, la.BOUND_WORDS)
        self.channels = self.bounds.view(np.int64)[:, la.B_CHANNEL] & la.CHANNEL_MASK
        self.live = tree.records.subscriptions()[0].tolist()

    def node(self, node: int, known: dict[int, tuple[float, float]]) -> tuple[list[int], Trits]:
        """Check a node that searches reach with the values ``known``; its paths and trits."""
        kind = self.ints[node, la.N_KIND]
        if kind & la.KIND_MASK == la.LEAF:
            paths, trits = self._leaf(node, known)
        else:
            paths, trits = self._inner(node, known)
        assert self.ties[node, la.T_PATHS] == len(paths)
        words = int(self.arrays.head[la.H_LINK_WORDS])
        if words:
            assert self._set(self.arrays.sure, node, words) == trits[0]
            assert self._set(self.arrays.may, node, words) == trits[1]
        return paths, trits

    @staticmethod
    def _set(words_of: U64, node: int, words: int) -> int:
        own = words_of[words * node : words * (node + 1)]
        return sum(int(word) << 64 * place for place, word in enumerate(own))

    def _leaf(self, node: int, known: dict[int, tuple[float, float]]) -> tuple[list[int], Trits]:
        paths: list[int] = []
        sure = may = 0
        words = int(self.arrays.head[la.H_LINK_WORDS])
        path = int(self.ints[node, la.N_STAR])
        while path != la.NONE:
            assert self.paths[path, la.P_LEAF] == node
            entry = int(self.paths[path, la.P_ENTRY])
            record = self.entries[entry]
            assert not record[la.E_FLAGS] & DEAD
            first = int(self.paths[path, la.P_FROM])
            for constraint in range(record[la.E_FIRST], first):
                low, high = known[int(self.channels[constraint])]
                assert self.bounds[constraint, la.B_LOW] <= low
                assert high <= self.bounds[constraint, la.B_HIGH]
            links = self._set(self.arrays.links, entry, words) if words else 0
            may |= links
            if first == record[la.E_END] and not record[la.E_FLAGS] & (VERIFY | MOVING):
                sure |= links
            paths.append(path)
            path = int(self.paths[path, la.P_NEXT])
        self._guarded(node, paths)
        return paths, (sure, may)

    def _inner(self, node: int, known: dict[int, tuple[float, float]]) -> tuple[list[int], Trits]:
        channel = int(self.ints[node, la.N_CHANNEL])
        kind = int(self.ints[node, la.N_KIND])
        paths: list[int] = []
        alternatives: list[Trits] = []
        star: Trits = (0, 0)
        child = int(self.ties[node, la.T_CHILD])
        assert child != la.NONE
        while child != la.NONE:
            assert self.ties[child, la.T_PARENT] == node
            role = self.ties[child, la.T_ROLE]
            below = dict(known)
            cut = self.nodes[node, la.N_CUT]
            low, high = known.get(channel, (-np.inf, np.inf))
            if role == la.AS_VALUE:
                key = float(self.nodes[child, la.N_KEY])
                below[channel] = (key, key)
                bits = np.float64(key).view(np.int64)
                assert self.nodes.view(np.int64)[node, la.N_SEEN] & seen_bit(bits)
            elif kind & la.KIND_MASK == la.CUT and role == la.AS_LEFT:
                below[channel] = (low, np.nextafter(cut, -np.inf))
            elif role == la.AS_RIGHT:
                below[channel] = (cut, high)
            elif kind & la.KIND_MASK == la.VALUES and role == la.AS_LEFT:
                below[channel] = (-np.inf, np.inf)
            found, trits = self.node(child, below)
            assert found
            paths += found
            alternatives.append(trits)
            if role == la.AS_STAR:
                star = trits
                self._guarded(node, found)
            child = int(self.ties[child, la.T_NEXT])
        return paths, _combined(alternatives, star, exclusive=bool(kind & la.EXCLUSIVE))

    def entries_have(self, paths: list[int]) -> None:
        """Entries have these paths and no others, and events at the ends of their bounds meet one.

        An entry that nothing satisfies has none.
        """
        owned: list[int] = []
        for entry in self.live:
            mine = self._paths_of(entry)
            tests = self._tests_of(entry)
            is_empty = bool(np.isnan(self.bounds[tests, la.B_LOW]).any())
            if self.entries[entry, la.E_FLAGS] & DEAD or is_empty:
                assert mine == []
                continue
            for event in self._satisfying(tests):
                met = [path for path in self._found(la.ROOT, event) if path in mine]
                assert len(met) == 1
            owned += mine
        assert sorted(owned) == sorted(paths)

    def statistics(self) -> None:
        """Tests are counted, and the extents of channels contain their bounds."""
        tests = [each for entry in self.live for each in self._tests_of(entry)]
        channels, bounds = self.channels[tests], self.bounds[tests]
        counts = np.zeros_like(self.arrays.tests)
        is_range = bounds[:, la.B_LOW] != bounds[:, la.B_HIGH]
        np.add.at(counts, la.TEST_COUNTS * channels + is_range, 1)
        assert counts.tolist() == self.arrays.tests.tolist()
        for side in (la.B_LOW, la.B_HIGH):
            finite = np.isfinite(bounds[:, side])
            assert np.all(self.arrays.extent[2 * channels] <= bounds[:, side], where=finite)
            assert np.all(self.arrays.extent[2 * channels + 1] >= bounds[:, side], where=finite)

    def _paths_of(self, entry: int) -> list[int]:
        paths: list[int] = []
        path = int(self.entries[entry, la.E_PATHS])
        while path != la.NONE:
            assert self.paths[path, la.P_ENTRY] == entry
            paths.append(path)
            path = int(self.paths[path, la.P_SIBLING])
        return paths

    def _tests_of(self, entry: int) -> list[int]:
        return list(range(*self.entries[entry, [la.E_FIRST, la.E_TESTS]].tolist()))

    def _satisfying(self, tests: list[int]) -> list[dict[int, float]]:
        """Events, as values of channels, at the ends of bounds; none if nothing satisfies tests."""
        low: dict[int, float] = {}
        high: dict[int, float] = {}
        for each in tests:  # beside an outside of bounds, a channel may have several tests
            channel, bounds = int(self.channels[each]), self.bounds[each]
            low[channel] = max(low.get(channel, -np.inf), bounds[la.B_LOW])
            high[channel] = min(high.get(channel, np.inf), bounds[la.B_HIGH])
        return [low, high] if all(low[channel] <= high[channel] for channel in low) else []

    def _found(self, node: int, event: dict[int, float]) -> list[int]:
        """The paths in all leaves to which an event comes."""
        kind = int(self.ints[node, la.N_KIND])
        found: list[int] = []
        if kind & la.KIND_MASK == la.LEAF:
            path = int(self.ints[node, la.N_STAR])
            while self._passes_guard(node, event) and path != la.NONE:
                found.append(path)
                path = int(self.paths[path, la.P_NEXT])
            return found
        x = event.get(int(self.ints[node, la.N_CHANNEL]))
        taken = False
        child = int(self.ties[node, la.T_CHILD])
        star = la.NONE
        while child != la.NONE:
            role = self.ties[child, la.T_ROLE]
            if role == la.AS_STAR:
                star = child
            elif x is not None and self._takes(node, child, x):
                found += self._found(child, event)
                taken |= kind & la.KIND_MASK == la.VALUES and role == la.AS_VALUE
            child = int(self.ties[child, la.T_NEXT])
        taken |= x is not None and kind & la.KIND_MASK == la.CUT
        if (
            star != la.NONE
            and not (taken and kind & la.EXCLUSIVE)
            and self._passes_guard(node, event)
        ):
            found += self._found(star, event)
        return found

    def _takes(self, node: int, child: int, x: float) -> bool:
        """Whether an event with a value takes a branch other than the *-branch."""
        role = self.ties[child, la.T_ROLE]
        if role == la.AS_VALUE:
            return bool(self.nodes[child, la.N_KEY] == x)
        if self.ints[node, la.N_KIND] & la.KIND_MASK == la.VALUES:
            return True
        return bool((x < self.nodes[node, la.N_CUT]) == (role == la.AS_LEFT))

    def _passes_guard(self, node: int, event: dict[int, float]) -> bool:
        guard = int(self.ints[node, la.N_GUARD])
        low, high = self.nodes[node, [la.N_GUARD_LOW, la.N_GUARD_HIGH]]
        return guard == la.NONE or bool(low <= event.get(guard, np.nan) <= high)

    def _guarded(self, node: int, paths: list[int]) -> None:
        """Every path has a constraint inside of the guard."""
        guard = int(self.ints[node, la.N_GUARD])
        if guard == la.NONE:
            return
        low, high = self.nodes[node, [la.N_GUARD_LOW, la.N_GUARD_HIGH]]
        for path in paths:
            record = self.entries[self.paths[path, la.P_ENTRY]]
            mine = range(record[la.E_FIRST], record[la.E_TESTS])
            assert any(
                self.channels[each] == guard
                and low <= self.bounds[each, la.B_LOW]
                and self.bounds[each, la.B_HIGH] <= high
                for each in mine
            )


def _combined(alternatives: list[Trits], star: Trits, *, exclusive: bool) -> Trits:
    """The annotation of a node by table 1 of the paper, from those of its branches.

    A *-branch that does not exist is all No.
    """
    sure, may = star
    for each in alternatives:
        sure, may = sure & each[0], may | each[1]
    if not exclusive:
        sure, may = sure | star[0], may | star[1]
    return sure, may
