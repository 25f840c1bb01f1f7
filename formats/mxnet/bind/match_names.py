"""Arrays whose names are not those of the symbol's variables: ``save_parameters`` of Gluon calls
them after a block's attributes (``features.0.weight``), not after its prefix.

Gluon writes a block's own parameters first, then those of its children, in the order in which they
were made. A symbol has its variables in the order of their use. Prefixes tell the order in which
blocks of one class were made: Gluon numbers them (``conv0``, ``conv1``); ``creation_order`` finds
that of blocks of several classes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from serde.errors import MalformedFile
from serde.ir.graph import Shape, Tensor, show_shape
from serde.ir.printer import list_first

from ..io.params import Params
from .creation_order import CreationOrders, Path, sort_by_numbers
from .declared import SUFFIXES, is_compatible_shape

SAME = {"moving_mean": "running_mean", "moving_var": "running_var"}
UNFUSED = re.compile(r"_unfused\.(\d+)\.(?:([lr])_cell\.)?(\w+)$")
FEW = 4  # names in a note
RENAME = (
    "Save them under the names of the symbol's variables: export the block again, or give a "
    "mapping of those names to arrays, params={…}"
)
DEEPEST = 32  # blocks in blocks that prefixes are looked at for
MOST_WORDS = 256
LONGEST_END = 4  # words that an attribute's name has


class Matches(NamedTuple):
    """For each variable the array that belongs to it, and what to say of pairs that were chosen."""

    names: dict[str, str]
    notes: tuple[str, ...]


class _Name(NamedTuple):
    """A name in parts: the block, what the parameter is in it, and the words of the block."""

    full: str
    block: tuple[str, ...]
    kind: str

    @property
    def words(self) -> set[str]:
        parts = (p for part in self.block for p in re.split(r"[_\W\d]+", part.lower()))
        return {p for p in parts if len(p) > 1}

    @property
    def pattern(self) -> str:
        """The block without numbers, which those of one class differ in."""
        return re.sub(r"\d+", "#", "_".join(self.block))


def match_arrays(
    shapes: Mapping[str, Shape | None], arrays: Mapping[str, Tensor], path: str
) -> Matches:
    """Pair variables, whose shapes are known in part, with the arrays of a file.

    Names that are the same belong together. Of the others, those of one kind are paired, of layers
    with the same kinds and of the same words in their names where both sides have as many; then
    one by one, in the order in which the variables were made.

    Raises:
        MalformedFile: where the numbers of a kind, or the shapes of a pair, do not fit; where
            blocks of different classes fit in several orders.
    """
    names = {n: n for n in shapes if n in arrays}
    theirs = _split_arrays([n for n in arrays if n not in shapes])
    ours = _split_variables([n for n in shapes if n not in names], {t.kind for t in theirs})
    theirs = _with_known_kinds(theirs, ours)
    fit = _Fit(shapes, arrays)
    if len(theirs) > len(ours):
        theirs = _without_repeats(theirs, arrays)
    if len(theirs) > len(ours):
        theirs = _without_others(ours, theirs, fit)
    ours, theirs = _join_other_kinds(ours, theirs)
    _refuse_counts(ours, theirs, path)
    created, is_certain = _find_creation_order(ours, theirs, fit)
    use = {o: at for at, o in enumerate(ours)}
    other_orders: list[_Name] = []
    for some, others in _partition(created, theirs):
        orders = [_order_by_ends(some, others), some, sorted(some, key=use.__getitem__)]
        chosen = fit.choose(orders, others, path)
        for order in orders:
            if order and order != chosen and fit.fits(order, others):
                other_orders += [a for a, b in zip(chosen, order, strict=True) if a != b]
        if not is_certain and chosen != orders[0]:
            _refuse_guesses(chosen, others, arrays, path)
        names |= {a.full: b.full for a, b in zip(chosen, others, strict=True)}
    _refuse_torn_blocks(ours, theirs, names, path)
    return Matches(names, tuple(_describe(other_orders)))


def _split_arrays(names: Iterable[str]) -> list[_Name]:
    """``features.0.weight``: the parameter ``weight`` of the block ``features.0``."""
    parts = [(n, UNFUSED.sub(_name_fused, n).split(".")) for n in names]
    return [_Name(n, tuple(p[:-1]), SAME.get(p[-1], p[-1])) for n, p in parts]


def _name_fused(match: re.Match[str]) -> str:
    """``_unfused.0.r_cell.i2h_weight``, as layers of gluon.rnn are saved, is ``r0_i2h_weight``."""
    return f"{match[2] or 'l'}{match[1]}_{match[3]}"


def _split_variables(names: Iterable[str], kinds: set[str]) -> list[_Name]:
    """``net0_dense1_weight``: the longest end that an array is called, of the block before it."""
    split = []
    for name in names:
        parts = name.rsplit("_", DEEPEST)
        ends = ((at, "_".join(parts[at:])) for at in range(len(parts)))
        spelled = ((at, SAME.get(end, end)) for at, end in ends)
        kind = kind_of(name)
        usual = (len(parts) - kind.count("_") - 1, kind)
        at, kind = next(((at, end) for at, end in spelled if end in kinds), usual)
        split.append(_Name(name, tuple(parts[:at]), kind))
    return split


def _with_known_kinds(theirs: Iterable[_Name], ours: Sequence[_Name]) -> list[_Name]:
    """Arrays whose names end as no variable's does, as ``conv1_weight`` or, for that, ``conv1``."""
    kinds = {o.kind for o in ours}
    of_ends = {o.block[-1]: o.kind for o in ours if o.block}
    named = [
        t if t.kind in kinds or t.kind not in of_ends
        else t._replace(block=(*t.block, t.kind), kind=of_ends[t.kind])
        for t in theirs
    ]  # fmt: skip
    return [t if t.kind in kinds else _with_usual_kind(t) for t in named]


def _with_usual_kind(name: _Name) -> _Name:
    end = name.full.rpartition(".")[2]
    before = end.split("_")[: -1 - kind_of(end).count("_")]
    return name._replace(block=(*name.block, *before), kind=kind_of(end))


def _without_repeats(theirs: Sequence[_Name], arrays: Mapping[str, Tensor]) -> list[_Name]:
    """The arrays but those of layers that share all of an earlier one's, which has the variables"""
    layers: dict[tuple[str, ...], list[_Name]] = {}
    for name in theirs:
        layers.setdefault(name.block, []).append(name)
    first: dict[Hashable, tuple[str, ...]] = {}
    for block, names in layers.items():
        content = [(n.kind, *_digest(arrays[n.full])) for n in names]
        has_numbers = any(is_varied for _, is_varied, _ in content)  # not as it was initialized
        first.setdefault(tuple(content) if has_numbers else block, block)
    kept = set(first.values())
    return [t for t in theirs if t.block in kept]


def _without_others(
    ours: Sequence[_Name], theirs: Sequence[_Name], fit: _Fit
) -> list[_Name]:  # fmt: skip
    """The arrays but those of layers that fit no layer of the variables: unused blocks have some"""
    wanted, layers = _group_layers(ours), _group_layers(theirs)
    used = {
        block for block, names in layers.items()
        if any(_fit_layer(some, names, fit) for some in wanted.values())
    }  # fmt: skip
    return [t for t in theirs if t.block in used]


def _fit_layer(ours: Sequence[_Name], theirs: Sequence[_Name], fit: _Fit) -> bool:
    return [o.kind for o in ours] == [t.kind for t in theirs] and fit.fits(ours, theirs)


def _digest(tensor: Tensor) -> tuple[bool, Hashable]:
    """Whether an array has two different numbers, and what stands for all of it."""
    import hashlib

    array = tensor.load()
    is_varied = bool(array.size and (array != array.flat[0]).any())
    return is_varied, (array.shape, str(array.dtype), hashlib.sha256(array.tobytes()).digest())


def _join_other_kinds(
    ours: list[_Name], theirs: list[_Name]
) -> tuple[list[_Name], list[_Name]]:  # fmt: skip
    """One kind for those that one side has more of, as where an attribute has another name."""
    here, there = Counter(o.kind for o in ours), Counter(t.kind for t in theirs)
    odd = {kind for kind in here | there if here[kind] != there[kind]}
    if sum(here[k] for k in odd) != sum(there[k] for k in odd):
        return ours, theirs
    first, second = (
        [n._replace(kind="") if n.kind in odd else n for n in side] for side in (ours, theirs)
    )
    return first, second


def _refuse_torn_blocks(
    ours: Sequence[_Name], theirs: Sequence[_Name], names: Mapping[str, str], path: str
) -> None:
    """Raise MalformedFile where the parameters of one block would come from several."""
    blocks = {t.full: t.block for t in theirs}
    partners: dict[Hashable, tuple[str, ...]] = {}
    for o in ours:
        array, block = names[o.full], blocks[names[o.full]]
        pairs = ((("ours", o.block), block), (("theirs", block), o.block))
        if any(partners.setdefault(key, other) != other for key, other in pairs):
            raise MalformedFile(
                path, f"{array!r} would be {o.full!r}, and other parameters of these blocks belong "
                f"to others: names and order do not tell which arrays belong together. {RENAME}"
            )  # fmt: skip


def kind_of(name: str) -> str:
    """What a parameter is, as its name ends: ``weight``, ``bias`` and so on."""
    kinds = (s[1:] for s in SUFFIXES if name.endswith((s, f".{s[1:]}")))
    kind = next(kinds, name.replace(".", "_").rpartition("_")[2])
    return SAME.get(kind, kind)


def _refuse_counts(ours: Sequence[_Name], theirs: Sequence[_Name], path: str) -> None:
    here, there = Counter(o.kind for o in ours), Counter(t.kind for t in theirs)
    for kind, count in here.items():
        if there[kind] != count:
            unpaired = [t.full for t in theirs if t.kind not in here]
            rest = f"; of no such kind: {', '.join(map(repr, unpaired[:FEW]))}" if unpaired else ""
            raise MalformedFile(
                path, f"has {there[kind]} arrays that are a {kind} and match no name, for {count} "
                f"such variables{rest}. {RENAME}"
            )  # fmt: skip


def _find_creation_order(
    ours: Sequence[_Name], theirs: Sequence[_Name], fit: _Fit
) -> tuple[list[_Name], bool]:
    """The variables in the order in which Gluon made them, and whether no other order is as good.

    Where blocks fit in no order, those of different classes come in the order of their use.
    """
    layers, places = _group_layers(ours), _group_layers(theirs)
    common = set.intersection(*(o.words for o in ours)) if ours else set()

    def rate(layer: Path, at: int) -> int | None:
        some, others = layers[layer], places[paths[at]]
        if not _fit_layer(some, others, fit):
            return None
        return int(not (some[0].words - common).isdisjoint(others[0].words))

    paths, orders = list(places), list[list[Path]]()
    if len(layers) == len(places):
        orders = CreationOrders(layers, paths, rate).find()
    if not orders:
        order = sort_by_numbers([o.block for o in ours])
        return sorted(ours, key=lambda o: order[o.block]), False
    first, *others = ({layer: at for at, layer in enumerate(order)} for order in orders)
    differing = {(first[p], other[p]) for other in others for p in layers if first[p] != other[p]}

    def digest(at: int) -> list[Hashable]:
        return [_digest(fit.arrays[t.full]) for t in places[paths[at]]]

    is_certain = all(digest(a) == digest(b) for a, b in differing)
    return [o for layer in orders[0] for o in layers[layer]], is_certain


def _group_layers(names: Iterable[_Name]) -> dict[Path, list[_Name]]:
    """The parameters of each block, sorted by their kinds."""
    layers: dict[Path, list[_Name]] = {}
    for name in names:
        layers.setdefault(name.block, []).append(name)
    return {block: sorted(some, key=lambda n: n.kind) for block, some in layers.items()}


def _partition(
    ours: Sequence[_Name], theirs: Sequence[_Name]
) -> Iterator[tuple[list[_Name], list[_Name]]]:
    """Groups of variables and arrays that belong together as their names tell, each in order."""
    layers = {**_kinds_of_layers(ours), **_kinds_of_layers(theirs)}
    for kind in dict.fromkeys(o.kind for o in ours):
        some, others = [o for o in ours if o.kind == kind], [t for t in theirs if t.kind == kind]
        here, there = (Counter(w for n in side for w in n.words) for side in (some, others))
        words = [w for w, count in here.items() if there[w] == count < len(some)]
        groups = _divide(some, others, layers.__getitem__)
        for word in sorted(words, key=here.__getitem__)[:MOST_WORDS]:
            groups = [g for pair in groups for g in _divide(*pair, lambda n: word in n.words)]  # noqa: B023
        yield from groups


def _kinds_of_layers(names: Sequence[_Name]) -> dict[_Name, frozenset[str]]:
    """For each parameter the kinds of all parameters of its layer."""
    layers: dict[tuple[str, ...], set[str]] = {}
    for name in names:
        layers.setdefault(name.block, set()).add(name.kind)
    kinds = {block: frozenset(kinds) for block, kinds in layers.items()}
    return {name: kinds[name.block] for name in names}


def _divide(
    ours: list[_Name], theirs: list[_Name], key: Callable[[_Name], Hashable]
) -> list[tuple[list[_Name], list[_Name]]]:
    """Parts of equal keys, if both sides have as many of each."""
    if Counter(map(key, ours)) != Counter(map(key, theirs)):
        return [(ours, theirs)]
    keys = dict.fromkeys(map(key, ours))
    return [([o for o in ours if key(o) == k], [t for t in theirs if key(t) == k]) for k in keys]


def _order_by_ends(ours: Sequence[_Name], theirs: Sequence[_Name]) -> list[_Name]:
    """The variables whose blocks end as those of the arrays are called, if each is one's alone."""
    ends: dict[str, list[_Name]] = {}
    for o in ours:
        for count in range(1, 1 + min(LONGEST_END, len(o.block))):
            ends.setdefault("_".join(o.block[-count:]), []).append(o)
    candidates = [ends.get(t.block[-1], []) if t.block else [] for t in theirs]
    order = [some[0] for some in candidates if len(some) == 1]
    return order if len(set(order)) == len(theirs) else []


class _Fit(NamedTuple):
    """Whether shapes of variables and arrays fit."""

    shapes: Mapping[str, Shape | None]
    arrays: Mapping[str, Tensor]

    def fits(self, ours: Sequence[_Name], theirs: Sequence[_Name]) -> bool:
        return all(map(self.fit, ours, theirs))

    def fit(self, ours: _Name, theirs: _Name) -> bool:
        return is_compatible_shape(self.arrays[theirs.full].shape, self.shapes[ours.full])

    def choose(
        self, orders: Sequence[list[_Name]], theirs: Sequence[_Name], path: str
    ) -> list[_Name]:  # fmt: skip
        """The first order of the variables that fits, or the only one that does."""
        for order in orders:
            if order and self.fits(order, theirs):
                return order
        created = orders[1]
        rest, only = list(created), []
        for t in theirs:
            fitting = [o for o in rest if self.fit(o, t)]
            if len(fitting) != 1:
                break
            only.append(fitting[0])
            rest.remove(fitting[0])
        if len(only) == len(theirs):
            return only
        wrong = next((o, t) for o, t in zip(created, theirs, strict=True) if not self.fit(o, t))
        shape, expected = self.arrays[wrong[1].full].shape, self.shapes[wrong[0].full]
        raise MalformedFile(
            path, f"{wrong[1].full!r} {show_shape(shape)} comes where {wrong[0].full!r} "
            f"{show_shape(expected or ())} is wanted: the arrays are not in the order of the "
            f"variables. {RENAME}"
        )  # fmt: skip


def _refuse_guesses(
    ours: Sequence[_Name], theirs: Sequence[_Name], arrays: Mapping[str, Tensor], path: str
) -> None:
    """Raise MalformedFile for variables of different classes whose arrays could be exchanged."""
    alike: dict[Shape, list[tuple[_Name, _Name]]] = {}
    for o, t in zip(ours, theirs, strict=True):
        alike.setdefault(arrays[t.full].shape, []).append((o, t))
    for pairs in alike.values():
        is_one_class = len({o.pattern for o, _ in pairs}) == 1
        if is_one_class or len({_digest(arrays[t.full]) for _, t in pairs}) == 1:
            continue
        raise MalformedFile(
            path, f"{_list([t for _, t in pairs])} may be {_list([o for o, _ in pairs])} in "
            f"several orders: nothing tells in which order their blocks were made. {RENAME}"
        )  # fmt: skip


def _describe(other_orders: Sequence[_Name]) -> Iterator[str]:
    if other_orders:
        yield (
            f"{_list(list(dict.fromkeys(other_orders)))} fit other arrays as well, in the order of "
            "their use: they were paired as their names and the numbers in them tell, which Gluon "
            "counts as it makes blocks"
        )


def _list(names: Sequence[_Name]) -> str:
    return list_first([repr(n.full) for n in names], FEW)


def rename_arrays(params: Params, names: Mapping[str, str]) -> Params:
    """The arrays under the names of their variables; those of no variable keep theirs."""
    back = {array: variable for variable, array in names.items()}
    by_name = params.by_name()
    return params._replace(
        names=tuple(back.get(n, n) for n in by_name), tensors=tuple(by_name.values())
    )


def format_matches(names: Mapping[str, str]) -> Iterator[str]:
    """Lines that say which array was taken for which variable."""
    width = max(map(len, names), default=0)
    for variable, array in names.items():
        if variable != array:
            yield f"{variable:<{width}} is {array}, by kind, shape and order"
