"""What MXNet calls operators and their outputs.

These are MXNet 1.9.1's own answers; tests/mxnet/test_op_names.py asks it again.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..operators import describe
from ..ops.aliases import FAMILIES, JOINED, OTHERS, TITLED
from ..ops.aliases_of_2 import SECOND_FAMILIES, SECOND_OTHERS, SECOND_OWN
from ..rules import SECOND


def _expand_aliases(
    families: Mapping[tuple[str, str], str], others: Mapping[str, str]
) -> dict[str, str]:
    """The name that rules are registered under, by each other name of an operator."""
    aliases = {alias: name for name, words in others.items() for alias in words.split()}
    for (prefix, canonical_prefix), stems in families.items():
        aliases |= {prefix + stem: canonical_prefix + stem for stem in stems.split()}
    return aliases


FIRST_ALIASES = _expand_aliases(FAMILIES, OTHERS)
FIRST_ALIASES |= {name.title(): name for name in TITLED.split()}
FIRST_ALIASES |= {f"_{name.title().replace('_', '')}": name for name in JOINED.split()}
# Every name an operator goes by besides the one MXNet saves: that one.
CANONICAL = {**FIRST_ALIASES}
# MXNet 2.0's names of the layers that oneDNN fused.
CANONICAL |= {f"_sg_onednn_{op}": f"_sg_mkldnn_{op}" for op in ("conv", "fully_connected")}
# The names under which the detector's operators were built before MXNet had them.
CANONICAL |= {f"MultiBox{op}": f"_contrib_MultiBox{op}" for op in ("Prior", "Detection", "Target")}
# The same for files of MXNet 2.0: names that stand for other operators there are its own.
SECOND_NAMES = {op: name for op, name in CANONICAL.items() if op not in SECOND_OWN}
SECOND_NAMES |= {
    op: CANONICAL.get(name, name)
    for op, name in _expand_aliases(SECOND_FAMILIES, SECOND_OTHERS).items()
}


def canonical_name(op: str, version: int) -> str:
    """The name that the rules of an operator have, for a file of a release."""
    return (SECOND_NAMES if version >= SECOND else CANONICAL).get(op, op)


def output_names(op: str, name: str, attrs: Mapping[str, str], count: int) -> list[str]:
    """What MXNet's ``list_outputs`` calls the first ``count`` outputs of a node."""
    suffixes = describe(op).outputs
    if count <= len(suffixes):
        return [f"{name}_{n}" for n in suffixes[:count]]
    if count == 1 and not _is_numbered(op, attrs):
        return [f"{name}_output"]
    return [f"{name}_output{i}" for i in range(count)]


def _is_numbered(op: str, attrs: Mapping[str, str]) -> bool:
    if op == "topk":
        return attrs.get("ret_typ", "indices") in ("value", "both")
    if op in ("amp_multicast", "_np_atleast_1d", "_np_atleast_2d", "_np_atleast_3d"):
        return attrs.get("num_outputs", attrs.get("num_args")) != "1"
    if op in ("_split_v2", "_npi_hsplit"):
        parts = attrs.get("sections", "0")
        starts = attrs.get("indices", "").strip("()[], ").split(",")
        return len(starts) > 1 if parts == "0" else parts != "1"
    return describe(op).is_numbered
