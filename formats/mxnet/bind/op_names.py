"""What MXNet calls operators and their outputs.

These are MXNet 1.9.1's own answers; tests/mxnet/test_op_names.py asks it again.
"""

from __future__ import annotations

from collections.abc import Mapping

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
# Outputs that bear names of their own.
NAMED = {
    "BatchNorm": ("output", "mean", "var"),
    "LayerNorm": ("output", "mean", "std"),
    "GroupNorm": ("output", "mean", "std"),
    "RNN": ("output", "state_output", "statecell_output"),
    "make_loss": ("loss",),
    "_contrib_Proposal": ("output", "score"),
    "_contrib_MultiProposal": ("output", "score"),
    "_contrib_MultiBoxTarget": ("loc_target", "loc_mask", "cls_target"),
    "_contrib_quantize_asym": ("output", "scale", "shift"),
    "_contrib_calibrate_entropy": ("threshold", "divergence"),
    "_contrib_hawkesll": ("output", "out_state"),
    "_npi_std": ("std", "mean", "var"),
    "_npi_var": ("var", "mean"),
    **dict.fromkeys("_npi_concatenate _npi_dstack _npi_hstack _npi_matmul".split(), ("out",)),
}
QUANTIZED = ("output", "min_output", "max_output")
FUSED = ("output", "output_min", "output_max")
# Operators whose outputs are numbered even where a symbol reads, or shows, only the first.
NUMBERED = frozenset(
    "SliceChannel CTCLoss sort moments _histogram "
    "_contrib_box_nms _contrib_box_encode _contrib_bipartite_matching _contrib_quantize "
    "_contrib_quantize_v2 _contrib_requantize _contrib_dgl_csr_neighbor_uniform_sample "
    "_contrib_dgl_csr_neighbor_non_uniform_sample "
    "_linalg_det _linalg_slogdet _linalg_gelqf _linalg_syevd "
    "_npi_average _npi_det _npi_eig _npi_eigh _npi_exponential "
    "_npi_gumbel _npi_histogram _npi_logistic _npi_norm _npi_normal _npi_normal_n _npi_pareto "
    "_npi_rayleigh _npi_slogdet _npi_sort _npi_svd _npi_weibull".split()
)


def canonical_name(op: str, version: int) -> str:
    """The name that the rules of an operator have, for a file of a release."""
    return (SECOND_NAMES if version >= SECOND else CANONICAL).get(op, op)


def output_names(op: str, name: str, attrs: Mapping[str, str], count: int) -> list[str]:
    """What MXNet's ``list_outputs`` calls the first ``count`` outputs of a node."""
    suffixes = QUANTIZED if op.startswith("_contrib_quantized_") else NAMED.get(op, ())
    suffixes = FUSED if op.startswith("_sg_mkldnn_") else suffixes
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
    return op in NUMBERED
