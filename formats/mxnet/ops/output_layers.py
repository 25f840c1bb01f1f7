"""Output heads in their inference form: the label plays no part in what they compute."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType
from serde.rewrite.rules import RuleTable

from ..rules import reads, reads_between

TRAINING = ("grad_scale", "ignore_label", "use_ignore", "normalization", "out_grad", "smooth_alpha")
ONEDNN_RANKS = (1, 2, 4)  # of float32 data that oneDNN takes
plain_kernels = RuleTable(reads.name)  # of operators that MXNet computes otherwise without oneDNN


@reads("SoftmaxOutput", ignore=TRAINING)
def read_softmax_output(g, x, label=None, *, multi_output=False, preserve_shape=False):
    """Over axis 1 (``multi_output``), the last (``preserve_shape``), or all of a sample.

    oneDNN takes the last axis whatever ``preserve_shape`` is.
    """
    if multi_output or preserve_shape or x.rank == 2:
        return read_plain_softmax_output(
            g, x, multi_output=multi_output, preserve_shape=preserve_shape
        )
    if x.dtype is not DType.FLOAT32 or x.rank not in ONEDNN_RANKS:
        return read_plain_softmax_output(g, x)
    sample = "each number is a sample" if x.rank == 1 else "each whole sample is"
    g.note(
        f"normalizes {x.rank}-D data over the last axis, as MXNet's oneDNN kernels do; with "
        f"--kernels plain {sample} normalized"
    )
    return g.Softmax(x, axis=x.rank - 1)


@plain_kernels("SoftmaxOutput", ignore=TRAINING)
@reads_between(0, 10700)("SoftmaxOutput", ignore=TRAINING)
def read_plain_softmax_output(g, x, label=None, *, multi_output=False, preserve_shape=False):
    """Over axis 1, the last axis, or all of a sample, which in 1-D data is one number.

    Before MXNet 1.7 all kernels do so.
    """
    if multi_output:
        require(x.rank > 1, f"multi_output=True with {x.rank}-D data, which MXNet refuses")
        return g.Softmax(x, axis=1)
    if preserve_shape or x.rank == 2:
        return g.Softmax(x, axis=x.rank - 1)
    if x.rank == 1:
        return g.full_like(x, 1.0)
    return g.Reshape(g.Softmax(g.Flatten(x, axis=1), axis=1), g.Shape(x))


@reads(
    "LinearRegressionOutput", "MAERegressionOutput", "SVMOutput",
    ignore=(*TRAINING, "valid_thresh", "margin", "regularization_coefficient", "use_linear"),
)  # fmt: skip
def read_pass_through(g, x, label=None):
    return x


@reads("LogisticRegressionOutput", ignore=TRAINING)
def read_logistic_output(g, x, label=None):
    return g.Sigmoid(x)


@reads("WarpCTC", ignore=("label_length", "input_length"))
def read_warp_ctc(g, x, label=None):
    """Of a plug-in that MXNet may be built with."""
    return g.Softmax(x, axis=x.rank - 1)
