"""Measure which operators TVM's importer into Relax gets right, and with which element types.

    SERDE_RELAX=FOLDER python -m conformance.relax_operators [OPERATOR …]

    SERDE_RELAX=FOLDER python -m conformance.relax_operators --symbolic

The support table is measured as conformance/operator_support.py tells. Operators named are measured
anew.

``--symbolic`` runs the tests that are right with a name for every size above 1, equal sizes with
equal names, and with a name for the first size only. Operators that are right in all of them are
written to formats/onnx/consumers/relax/dynamic_shape_support.py.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from collections import defaultdict
from pathlib import Path

import onnx

from serde.formats.onnx.consumers.relax.support_table import MEASURED, SUPPORTED
from serde.formats.onnx.consumers.relax.target import OPSET
from testing.node_cases import difference
from testing.relax.relax_live import RELAX, RelaxError, run

from .operator_support import Consumer, Tried, tests, write_table

PAGE = Path(__file__).parents[1] / "formats" / "onnx" / "consumers" / "relax" / "support_table.py"
CONSUMER = Consumer(
    title="TVM's importer into Relax", package="apache-tvm", opset=OPSET, run=run,
    version=lambda: str(RELAX.ask("version")), page=PAGE, maker="relax_operators",
)  # fmt: skip
SYMBOLIC_PAGE = PAGE.with_name("dynamic_shape_support.py")
SYMBOLIC_HEADER = '''\
"""Operators TVM's importer into Relax gets right with symbolic sizes.

Made by `python -m conformance.relax_operators --symbolic`, with apache-tvm {tvm},
at opset {opset}.
"""

from __future__ import annotations

SYMBOLIC = frozenset(
    """
{lines}
    """.split()
)
'''


def name_sizes(model: onnx.ModelProto, batch: bool) -> onnx.ModelProto:
    """The model with names for the sizes of its inputs that no constant fixes; or for the first
    size of the first input, and for that of others that begin with as many.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    shapes = [list(entry.type.tensor_type.shape.dim) for entry in copy.graph.input]
    fixed = {d for held in copy.graph.initializer for d in held.static_shape}
    leading = shapes[0][0].dim_value if shapes and shapes[0] else 0
    for dims in shapes:
        for dim in dims[:1] if batch else dims:
            size = dim.dim_value
            if size > 1 and size not in fixed and (not batch or size == leading):
                dim.dim_param = f"n{size}"
    for entry in copy.graph.output:
        entry.type.tensor_type.ClearField("shape")
    return copy


def is_right(tried: Tried, model: onnx.ModelProto) -> str | None:
    """What is not right of a test in another form, if anything."""
    ((arrays, expected),) = tried.case.data
    feeds = dict(zip((i.name for i in model.graph.input), arrays, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        try:
            got = run(f"{folder}/m.onnx", feeds)
        except RelaxError as error:
            return str(error).strip().splitlines()[-1][:100]
    return difference(tried.case, expected, got)


def measure_symbolic() -> None:
    """Write which operators are right with symbolic sizes."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for tried in tests(OPSET):
        if tried.op not in SUPPORTED or is_right(tried, tried.case.model) is not None:
            continue
        for batch in (True, False):
            reason = is_right(tried, name_sizes(tried.case.model, batch))
            counts[tried.op][reason is not None] += 1
            if reason is not None:
                print(tried.op, tried.case.name, "batch" if batch else "all", reason, sep="; ")
    right = " ".join(sorted(op for op, (good, bad) in counts.items() if good and not bad))
    lines = textwrap.fill(right, 96, initial_indent="    ", subsequent_indent="    ")
    text = SYMBOLIC_HEADER.format(tvm=RELAX.ask("version"), opset=OPSET, lines=lines)
    SYMBOLIC_PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--symbolic"]:
        measure_symbolic()
    else:
        write_table(CONSUMER, MEASURED, sys.argv[1:])
