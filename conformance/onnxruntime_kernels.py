"""Write the table of ONNX Runtime's kernels: ``python -m conformance.onnxruntime_kernels``.

The installed ONNX Runtime lists the kernels of its CPU provider, with the versions of the operators
and the element types by type variable. A kernel with an open end is one of its first version only.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import onnxruntime

from conformance.operator_support import LETTERS, join_table
from serde.formats.onnx.consumers.onnxruntime.target import OPSET
from serde.formats.onnx.consumers.support_table import OTHERS
from serde.ir.graph import DType
from serde.spec import schema

PAGE = Path(__file__).parents[1] / "formats/onnx/consumers/onnxruntime/support_table.py"
LAST = 2**31 - 1  # the end of an open range of versions
HALF = "tensor(float16)"  # operands of it are cast to float32 by ONNX Runtime, and results back
NAMES = {dtype: name for name, dtype in OTHERS.items()}
HEADER = '''\
"""Kernels of ONNX Runtime's CPU provider, and their element types.

Made by `python -m conformance.onnxruntime_kernels`, with onnxruntime {version}, at opset {opset}.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
{table}
"""

SUPPORTED = parse_table(MEASURED)
'''


def kernels() -> dict[str, list[Any]]:
    """The kernels of the CPU provider for the standard's operators, by operator."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    found = defaultdict(list)
    for kernel in get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            found[kernel.op_name].append(kernel)
    return found


def is_of(kernel: Any, version: int) -> bool:
    """Whether a kernel computes the version of an operator that came with opset ``version``."""
    first, last = kernel.version_range
    return first == version or (first < version <= last != LAST)


def element_types(names: set[str], variable: frozenset[str], is_read: bool) -> str:
    """The types of a type variable, of an operand or not, as a table spells them."""
    found = {d for name in names & variable if (d := schema.DTYPES_BY_NAME.get(bare(name)))}
    if is_read and HALF in variable and DType.FLOAT32 in found:
        found.add(DType.FLOAT16)
    return ",".join(sorted(map(spell, found)))


def bare(name: str) -> str:
    """The element type of a tensor, or of what holds tensors: ``seq(tensor(float))``."""
    return name.rpartition("(")[2].rstrip(")")


def spell(dtype: DType) -> str:
    """An element type as tables spell it."""
    is_known = dtype in LETTERS.values() or dtype is DType.STRING
    return dtype.numpy.newbyteorder("=").str[1:] if is_known else NAMES[dtype]


def table() -> str:
    """The text of the table for the installed ONNX Runtime."""
    operators = {}
    for op, found in kernels().items():
        operator = schema.find(op, OPSET)
        fitting = [k for k in found if operator is not None and is_of(k, operator.since)]
        if operator is None or not fitting:
            continue
        names: dict[str, set[str]] = defaultdict(set)
        for kernel in fitting:
            for variable, types in kernel.type_constraints.items():
                names[variable].update(types)
        read = {formal.tie for formal in operator.inputs}
        parts = (
            f"{name}={element_types(names[name], frozenset(v.allowed_type_strs), name in read)}"
            for v in operator.raw.type_constraints
            if (name := v.type_param_str) in names
        )
        operators[op] = " ".join(sorted(parts))
    return join_table(operators)


def text() -> str:
    """The module that holds the table."""
    return HEADER.format(version=onnxruntime.__version__, opset=OPSET, table=table())


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
