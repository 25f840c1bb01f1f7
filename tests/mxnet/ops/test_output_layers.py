"""Output heads in their inference form."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.to_ir import to_ir
from serde.legalize.convert import lower_to
from serde.passes.cut_inputs import with_inputs
from testing.mxnet.cases import (
    _compare,
    _runs,
    _symbol_json,
    case,
    f16,
    f32,
    f64,
    ints,
    live,
    operator_test,
    refuses,
    without_onednn,
)
from testing.mxnet_live import live_mxnet
from testing.onnx_live import LEVELS


def softmax_of_rows(case):
    """What MXNet's plug-in for WarpCTC computes, which stock builds of MXNet have not."""
    x = case.inputs[0]
    rows = live_mxnet().nd.array(x.reshape(-1, x.shape[-1]))
    return [live_mxnet().nd.softmax(rows).asnumpy().reshape(x.shape).astype(np.float32)]


CASES = [
    case("SoftmaxOutput", f32(2, 3), ints(2, high=2)),
    case("SoftmaxOutput", f32(2, 3, 4), ints(2, 3, high=2)),
    case("SoftmaxOutput", f32(2, 3, 4), ints(2, 4, high=2), multi_output=True),
    case("SoftmaxOutput", f32(2, 3, 4, 5), ints(2, 4, 5, high=2), multi_output=True),
    case(
        "SoftmaxOutput",
        f32(2, 3, 4, 5),
        ints(2, 20, high=2),
        multi_output=True,
        use_ignore=True,
        ignore_label=0,
        normalization="valid",
    ),
    case("SoftmaxOutput", f32(2, 3, 4), ints(2, 3, high=2), preserve_shape=True),
    case("SoftmaxOutput", f32(2, 3, 4), ints(2, 4, high=2), preserve_shape=True, multi_output=True),
    case(
        "SoftmaxOutput",
        f32(2, 3),
        ints(2, 3, high=2),
        out_grad=True,
        smooth_alpha=0.1,
        grad_scale=2,
    ),
    case("SoftmaxOutput", f64(2, 3), ints(2, high=2).astype("float64")),
    *(
        case(op, f32(2, 3), f32(2, 3, seed=1))
        for op in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput")
    ),
    *(
        case(op, f32(2, 3, 4), f32(2, 3, 4, seed=1), grad_scale=2)
        for op in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput")
    ),
    case("SVMOutput", f32(2, 3), ints(2)),
    case("SVMOutput", f32(2, 3), ints(2), margin=0.5, regularization_coefficient=2, use_linear=1),
    case("MakeLoss", f32(2, 3)),
    case("MakeLoss", f32(2, 3), grad_scale=2, normalization="batch", valid_thresh=0.1),
    case("make_loss", f32(2, 3)),
    *(  # of operators without parameters MXNet ignores attributes
        case(op, *(f32(2, 3),) * count, dtype="float32", grad_scale=2, no_such_attribute="(1, 2)")
        for op, count in (
            ("make_loss", 1),
            ("BlockGrad", 1),
            ("Flatten", 1),
            ("abs", 1),
            ("LinearRegressionOutput", 2),
            ("elemwise_add", 2),
            ("where", 3),
        )
    ),
    *(
        refuses(
            op, f32(2, 3), f32(2, 3), no_such_attribute=1, says="unknown attribute no_such_attr"
        )
        for op in ("SoftmaxOutput", "SVMOutput", "Concat", "dot")
    ),
    *(
        case(op, x, y)
        for op in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput")
        for x, y in ((f32(3), f32(3)), (f64(2, 1), f64(2)))
    ),
    case("SVMOutput", f64(2, 3), ints(2).astype("float64")),
    *(case(op, x) for op in ("MakeLoss", "make_loss") for x in (f64(2, 3), f16(3))),
    case("SoftmaxOutput", f32(7), f32(7)),
    *(
        case("WarpCTC", f32(*s), ints(6, high=2), label_length=3, input_length=4).but(
            oracle=softmax_of_rows
        )
        for s in ((8, 5), (4, 2, 5), (8, 1))
    ),
]
SAMPLES = [  # data and label of samples that are neither rows nor channels
    (f32(7), f32(7)),
    (f32(2, 3, 4), ints(2, 3, high=2)),
    (f32(2, 3, 4, 5), ints(2, 3, 4, high=2)),
    (f32(1, 3, 4, 4), ints(1, 3, 4, high=2)),
    (f32(2, 3, 2, 2, 3), ints(2, 3, 2, 2, high=2)),
    (f64(7), f64(7)),
    (f64(2, 3, 4, 5), f64(2, 3, 4)),
    (f16(3, 2, 4, 2), f16(3, 2, 4)),
    (f16(2, 3, 4), f16(2, 3)),
]
CASES += [case("SoftmaxOutput", *sample) for sample in SAMPLES]
CASES += [case("SoftmaxOutput", f32(2, 3, 4, 5), ints(2, 3, 4), preserve_shape=True)]
CASES += [case("SoftmaxOutput", f32(2, 3, 4, 5), ints(2, 3, 4), use_ignore=True, grad_scale=2)]
test_heads = operator_test(CASES)


@pytest.mark.parametrize(("x", "label"), SAMPLES, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_plain_kernels(x, label):
    """``kernels="plain"`` computes what MXNet does without oneDNN."""
    table = case("SoftmaxOutput", x, label)
    (expected,) = without_onednn(table)
    graph = read(table, kernels="plain")
    assert not any("oneDNN" in note for note in graph.notes)
    for _, got in _runs(lower_to(graph, 17), table, LEVELS):
        _compare(table, got, [expected], str(graph))


@pytest.mark.parametrize(("x", "label"), SAMPLES, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_a_note_tells_where_kernels_disagree(x, label):
    table = case("SoftmaxOutput", x, label)
    (stock,), (plain,) = live(table), without_onednn(table)
    notes = [note for note in read(table).notes if "--kernels plain" in note]
    assert bool(notes) == (not np.allclose(stock, plain, atol=1e-3))
    assert not notes or notes[0].startswith("SoftmaxOutput ×1 ('op') normalizes ")


def test_a_note_tells_which_attributes_are_ignored():
    notes = read(case("make_loss", f32(2, 3), dtype="float32", a=1, __lr_mult__=2)).notes
    assert notes[0] == ("make_loss ×1 ('op') has attributes that are ignored: a=1, dtype=float32")


def read(table, **options):
    graph = decode_symbol(parse_symbol(_symbol_json(table)), None, "case")
    inputs = {f"x{i}": (x.shape, x.dtype) for i, x in enumerate(table.inputs)}
    return to_ir(with_inputs(graph, inputs), **options)
