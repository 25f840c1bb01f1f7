"""Output heads in their inference form: the label plays no part in what they compute."""

from __future__ import annotations

from ..rules import reads

TRAINING = ("grad_scale", "ignore_label", "use_ignore", "normalization", "out_grad", "smooth_alpha")


@reads("SoftmaxOutput", ignore=TRAINING)
def read_softmax_output(g, x, label=None, *, multi_output=False, preserve_shape=False):
    """Over axis 1 (``multi_output``), the last (``preserve_shape``), or all of a sample."""
    if x.rank == 2 or (multi_output and x.rank > 2):
        return g.Softmax(x, axis=1)
    if preserve_shape or x.rank == 1:
        return g.Softmax(x, axis=x.rank - 1)
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
