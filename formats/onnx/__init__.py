"""ONNX files: read at any opset, written at any opset."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from serde.errors import UsageError
from serde.ir.graph import Graph
from serde.legalize.convert import LOWEST_WRITTEN, lower_to, raise_to_ir, require_opset
from serde.plugins import Format
from serde.rewrite.custom_ops import Readers, without_unused_imports
from serde.rewrite.outline import KEEP, Keep, outlined

from . import contrib
from .consumers.onnxruntime import avoid_runtime_forms, operators_without_kernel
from .reader import read_model
from .repair import repair as mend
from .writer import FUNCTIONS_IR, check_target, least_ir_version, write_model


def claims(path: Path) -> bool:
    """Whether ``path`` holds an ONNX model: a protobuf message that starts as one does."""
    if not path.is_file():
        return False
    if path.suffix == ".onnx":
        return True
    with path.open("rb") as file:
        head = file.read(2)
    return len(head) == 2 and head[0] == 0x08 and 0 < head[1] < 32  # field 1: the IR version


def to_ir(graph: Graph, keep_domain: Collection[str] = ()) -> Graph:
    """Rewrite a graph of any opset into the IR.

    ``keep_domain`` are domains whose operators are carried along even where they could be read as
    operators of the standard: ``com.microsoft``, for a model that stays with ONNX Runtime.
    """
    readers = Readers(
        contrib.TABLES, contrib.REFUSALS, contrib.OPSETS, contrib.SYNONYMS, tuple(keep_domain)
    )
    return without_unused_imports(raise_to_ir(graph, readers), contrib.TABLES)


def from_ir(
    graph: Graph,
    opset: int = 17,
    ir_version: int | None = None,
    spelled_out: frozenset[str] = frozenset(),
    functions: Keep = "keep",
    integer_kernels: bool = True,
    importer: str | None = None,
) -> Graph:
    """Lower the IR to ``opset``; functions are kept where the file's IR version has them.

    ``integer_kernels`` writes products of integers in units of 1 as ``QLinearConv`` and
    ``QLinearMatMul``, which every runtime computes alike.
    ``importer="relax"`` keeps to what TVM's importer into Relax gets right.
    """
    require_opset(opset, LOWEST_WRITTEN)
    if importer is not None:
        return _for_importer(graph, opset, importer)
    if functions not in KEEP:
        raise UsageError(f"functions={functions!r} is not one of {', '.join(KEEP)}")
    version = least_ir_version(opset) if ir_version is None else ir_version
    kept = functions if version >= FUNCTIONS_IR else "inline"
    spelled_out |= operators_without_kernel(opset)
    lowered = lower_to(graph, opset, kept != "inline", spelled_out, integer_kernels)
    return outlined(avoid_runtime_forms(lowered), kept)


def _for_importer(graph: Graph, opset: int, importer: str) -> Graph:
    from .consumers import relax

    if importer != "relax":
        raise UsageError(f"importer={importer!r} is not relax")
    if opset != relax.OPSET:
        raise UsageError(f"TVM's importer into Relax is known at opset {relax.OPSET} only")
    return relax.for_relax(graph)


FORMAT = Format(
    name="onnx",
    suffixes=(".onnx",),
    claims=claims,
    decode=read_model,
    to_ir=to_ir,
    from_ir=from_ir,
    encode=write_model,
    repair=mend,
    check_target=check_target,
    options={
        "decode": frozenset({"strict_paths"}),
        "to_ir": frozenset({"keep_domain"}),
        "from_ir": frozenset(
            {"opset", "ir_version", "spelled_out", "functions", "integer_kernels", "importer"}
        ),
        "encode": frozenset({"ir_version", "external_data"}),
    },
    tables=(contrib.reads, contrib.reads_default),
)
