"""Arrays whose names are not those of the symbol's variables: ``save_parameters`` of Gluon calls
them after a block's attributes (``features.0.weight``), not after its prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serde.errors import MalformedFile
from serde.ir.graph import Shape, Tensor, show_shape

from ..io.params import Params
from .declared import SUFFIXES, is_compatible_shape

SAME = {"moving_mean": "running_mean", "moving_var": "running_var"}


def kind_of(name: str) -> str:
    """What a parameter is, as its name ends: ``weight``, ``bias`` and so on."""
    kinds = (s[1:] for s in SUFFIXES if name.endswith((s, f".{s[1:]}")))
    kind = next(kinds, name.replace(".", "_").rpartition("_")[2])
    return SAME.get(kind, kind)


def match_arrays(
    shapes: Mapping[str, Shape | None], held: Mapping[str, Tensor], path: str
) -> dict[str, str]:
    """For each variable the array that belongs to it: those of one kind, one by one in order.

    Names that are the same belong together. ``shapes`` are those known of the variables that are
    parameters.

    Raises:
        MalformedFile: where the numbers of a kind, or the shapes of a pair, do not fit.
    """
    names = {n: n for n in shapes if n in held}
    for kind in dict.fromkeys(kind_of(n) for n in shapes if n not in names):
        ours = [n for n in shapes if n not in names and kind_of(n) == kind]
        theirs = [n for n in held if n not in shapes and kind_of(n) == kind]
        if len(ours) != len(theirs):
            raise MalformedFile(
                path, f"has {len(theirs)} arrays that are a {kind} and match no name, for "
                f"{len(ours)} such variables: they cannot be matched in order"
            )  # fmt: skip
        for ours_name, theirs_name in zip(ours, theirs, strict=True):
            shape = held[theirs_name].shape
            if not is_compatible_shape(shape, shapes[ours_name]):
                expected = show_shape(shapes[ours_name])
                raise MalformedFile(
                    path, f"{theirs_name!r} {show_shape(shape)} comes where {ours_name!r} "
                    f"{expected} is wanted: the arrays are not in the order of the variables"
                )  # fmt: skip
            names[ours_name] = theirs_name
    return names


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
