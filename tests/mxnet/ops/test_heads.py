"""Output heads in their inference form."""

from __future__ import annotations

import numpy as np

from tests.mxnet.cases import case, f16, f32, f64, operator_test, whole
from tests.mxnet_live import live_mxnet


def softmax_of_rows(case):
    """What MXNet's plug-in for WarpCTC computes, which stock builds of MXNet have not."""
    x = case.inputs[0]
    rows = live_mxnet().nd.array(x.reshape(-1, x.shape[-1]))
    return [live_mxnet().nd.softmax(rows).asnumpy().reshape(x.shape).astype(np.float32)]


CASES = [
    case("SoftmaxOutput", f32(2, 3), whole(2, high=2)),
    case("SoftmaxOutput", f32(2, 3, 4), whole(2, 3, high=2)),
    case("SoftmaxOutput", f32(2, 3, 4), whole(2, 4, high=2), multi_output=True),
    case("SoftmaxOutput", f32(2, 3, 4, 5), whole(2, 4, 5, high=2), multi_output=True),
    case(
        "SoftmaxOutput",
        f32(2, 3, 4, 5),
        whole(2, 20, high=2),
        multi_output=True,
        use_ignore=True,
        ignore_label=0,
        normalization="valid",
    ),
    case("SoftmaxOutput", f32(2, 3, 4), whole(2, 3, high=2), preserve_shape=True),
    case(
        "SoftmaxOutput", f32(2, 3, 4), whole(2, 4, high=2), preserve_shape=True, multi_output=True
    ),
    case(
        "SoftmaxOutput",
        f32(2, 3),
        whole(2, 3, high=2),
        out_grad=True,
        smooth_alpha=0.1,
        grad_scale=2,
    ),
    case("SoftmaxOutput", f64(2, 3), whole(2, high=2).astype("float64")),
    *(
        case(op, f32(2, 3), f32(2, 3, seed=1))
        for op in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput")
    ),
    *(
        case(op, f32(2, 3, 4), f32(2, 3, 4, seed=1), grad_scale=2)
        for op in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput")
    ),
    case("SVMOutput", f32(2, 3), whole(2)),
    case("SVMOutput", f32(2, 3), whole(2), margin=0.5, regularization_coefficient=2, use_linear=1),
    case("MakeLoss", f32(2, 3)),
    case("MakeLoss", f32(2, 3), grad_scale=2, normalization="batch", valid_thresh=0.1),
    case("make_loss", f32(2, 3)),
    *(
        case(op, x, y)
        for op in ("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput")
        for x, y in ((f32(3), f32(3)), (f64(2, 1), f64(2)))
    ),
    case("SVMOutput", f64(2, 3), whole(2).astype("float64")),
    *(case(op, x) for op in ("MakeLoss", "make_loss") for x in (f64(2, 3), f16(3))),
    case("SoftmaxOutput", f32(7), f32(7)),
    *(
        case("WarpCTC", f32(*s), whole(6, high=2), label_length=3, input_length=4).but(
            oracle=softmax_of_rows
        )
        for s in ((8, 5), (4, 2, 5), (8, 1))
    ),
]
test_heads = operator_test(CASES)
