"""Every rule against live TVM, with sizes that are known and with sizes that are not.

Each case is built and run by TVM, converted from the module TVM made of it, lowered to each of
``OPSETS``, run in ONNX Runtime with and without its optimizers, and compared in shape, type and
numbers. ``batch`` and ``any`` are modules with ``Any`` where sizes were; they are compared with
what TVM computed with known ones.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to
from serde.passes import tidy
from testing.onnx_live import LEVELS, run_at, run_model
from testing.relay.ops.table import CASES
from testing.relay.running import assert_equal, fed_and_given
from testing.relay.tvm_live import ask

OPSETS = (11, 17, 21)
FIXED = {  # why a size has to be known, and the cases that are refused where one is not
    "an input of unknown size": "strided_set adaptive_*d adaptive_*even adaptive_*parts "
    "adaptive_*nhwc deformable "
    "deformable-nhwc sparse_dense* sparse_add sparse_transpose sparse_conv2d "
    "resize1d-cubic* resize3d-cubic crop_and_resize* roi_align-max yolo_reorg* multibox_prior* "
    "all_class_nms* proposal* regular_nms-[36]",
    "a matrix of unknown size": "matrix_set_diag*",
    "an axis of unknown size": "cumprod-* sliding_window",
    "a signal of unknown length": "stft* dft*",
    "needs the static shape": "qnn.conv2d qnn.conv2d-[cndgz]* qnn.conv2d_transpose*",
}
LIVE = [name for name, case in CASES.items() if not case.slow]


@pytest.mark.parametrize("name", LIVE)
def test_computes_what_tvm_does(name: str, tmp_path: Path) -> None:
    case, file = CASES[name], str(tmp_path / "io.npz")
    forms = ask("live", name, case.expression, list(case.inputs), case.oracle, file)
    feeds, outputs = fed_and_given(file)
    fixed, refusals = reason_to_refuse(name), 0
    for naming, text in forms.items():
        if text is None:
            continue
        try:
            graph = tidy(to_ir(module_graph(parse_json(text, name), None, name)))
        except Unconvertible as error:
            if naming == "static" or not fixed:
                raise
            assert fixed in str(error)
            refusals += 1
            continue
        check_types(graph, outputs)
        for opset in sorted({*OPSETS, max(case.since, OPSETS[-1])}):
            if opset < case.since:
                with pytest.raises(Unconvertible):
                    lower_to(graph, opset)
                continue
            model = to_proto(from_ir(graph, opset))
            for level in LEVELS:
                assert_equal(run_at(level, model, feeds), outputs, case.rows)
    assert bool(fixed) == bool(refusals), f"converts with unknown sizes: {fixed}"


def reason_to_refuse(name: str) -> str:
    """Why a case is refused where sizes are unknown."""
    reasons = [why for why, names in FIXED.items() if any(fnmatch(name, n) for n in names.split())]
    return reasons[0] if reasons else ""


def check_types(graph: Graph, outputs: list[np.ndarray]) -> None:
    assert len(graph.outputs) == len(outputs)
    for value, array in zip(graph.outputs, outputs, strict=True):
        assert value.dtype is not None and value.dtype.numpy == array.dtype, f"{value}\n{graph}"
        assert value.shape is not None and len(value.shape) == array.ndim, f"{value}\n{graph}"
        for dim, size in zip(value.shape, array.shape, strict=True):
            assert not isinstance(dim, int) or dim == size, f"{array.shape}\n{graph}"


@pytest.mark.parametrize(
    ("expression", "shapes", "exact"),
    [
        ("R.nn.dense(a, b)", ((4, 4096), (5, 4096)), lambda a, b: a @ b.T),
        ("R.sum(R.abs(a), axis=1)", ((2, 10000),), lambda a: abs(a).sum(1)),
    ],
)
def test_halves_are_added_up_more_precisely_than_by_tvm(expression, shapes, exact, tmp_path):
    """As docs/reference/relay-operators.md says; when it fails, results may be compared more closely."""
    sizes = [",".join(map(str, s)) + ":float16" for s in shapes]
    forms = ask("live", "halves", expression, sizes, "", str(tmp_path / "io.npz"))
    feeds, outputs = fed_and_given(tmp_path / "io.npz")
    theirs = outputs[0].astype("float64")
    graph = tidy(to_ir(module_graph(parse_json(forms["static"], "halves"))))
    (ours,) = run_model(to_proto(from_ir(graph, 17)), feeds)
    true = exact(*(v.astype("float64") for v in feeds.values()))
    scale = np.abs(true).max()
    assert np.abs(ours - true).max() / scale < 1e-3
    assert np.abs(theirs - true).max() / scale > 4e-3
