"""Networks as they are trained: with labels, losses and outputs for metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Shapes = dict[str, tuple[int, ...]]


class Trained(NamedTuple):
    """How a symbol is made, the shapes of its inputs and of what only training reads.

    ``outputs`` are the places of those that are left; all unless told. ``integers`` are inputs
    of integers below 5.
    """

    make: Callable[[Any], Any]
    inputs: Shapes
    labels: Shapes
    outputs: tuple[int, ...] | None = None
    integers: tuple[str, ...] = ()


def dense(s: Any, x: Any, units: int, name: str, **attrs: Any) -> Any:
    return s.FullyConnected(x, num_hidden=units, name=name, **attrs)


def conv(s: Any, x: Any, count: int, name: str, size: int = 3, stride: int = 1) -> Any:
    return s.Convolution(
        x, num_filter=count, kernel=(size, size), pad=(size // 2,) * 2, stride=(stride,) * 2,
        name=name,
    )  # fmt: skip


def classifier(s: Any, label: Any = None) -> Any:
    return s.SoftmaxOutput(dense(s, s.var("data"), 5, "fc"), label, name="softmax")


def two_heads(s: Any) -> Any:
    x, parts = s.var("data"), s.SliceChannel(s.var("label"), num_outputs=2, axis=1)
    first = s.SoftmaxOutput(dense(s, x, 5, "a"), s.Reshape(parts[0], shape=(-1,)), name="kind")
    second = s.LogisticRegressionOutput(dense(s, x, 1, "b"), parts[1], name="size")
    return s.Group([first, second])


def one_hot_regression(s: Any) -> Any:
    target = s.one_hot(s.var("label"), depth=6)
    return s.MAERegressionOutput(dense(s, s.var("data"), 6, "fc"), target, name="error")


def language_model(s: Any) -> Any:
    """``label`` is that of each word; time comes first inside."""
    words = s.Embedding(s.var("data"), input_dim=20, output_dim=8, name="words")
    y = s.RNN(
        s.SwapAxis(words, dim1=0, dim2=1), s.var("rnn_parameters"), s.var("begin_h"),
        s.var("begin_c"), state_size=6, num_layers=1, mode="lstm", name="rnn",
    )  # fmt: skip
    y = dense(s, s.Reshape(y, shape=(-1, 6)), 20, "next")
    label = s.Reshape(s.SwapAxis(s.var("label"), dim1=0, dim2=1), shape=(-1,))
    return s.SoftmaxOutput(y, label, name="softmax")


def segmentation(s: Any) -> Any:
    x = s.var("data")
    y = s.Pooling(conv(s, x, 4, "conv"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    y = s.Deconvolution(
        conv(s, y, 3, "score", 1), num_filter=3, kernel=(4, 4), stride=(2, 2), no_bias=True,
        name="larger",
    )  # fmt: skip
    y = s.Crop(y, x, offset=(1, 1), num_args=2, name="crop")
    return s.SoftmaxOutput(
        y, s.Cast(s.var("label"), dtype="float32"), multi_output=True, use_ignore=True, name="mask"
    )


def embed(s: Any, *names: str) -> list[Any]:
    """Inputs through one layer that they share."""
    weight, bias = s.var("w_weight"), s.var("w_bias")
    return [s.FullyConnected(s.var(n), weight, bias, num_hidden=4) for n in names]


def siamese(s: Any) -> Any:
    a, b = embed(s, "a", "b")
    distance = s.sum(s.square(a - b), axis=1)
    label = s.var("label")
    loss = label * distance + (1 - label) * s.maximum(1 - distance, 0)
    return s.Group([s.MakeLoss(loss, name="loss"), s.BlockGrad(a, name="x"), s.BlockGrad(b)])


def triplet(s: Any) -> Any:
    a, same, other = embed(s, "anchor", "same", "other")
    loss = s.sum(s.square(a - same), axis=1) - s.sum(s.square(a - other), axis=1) + 1
    return s.Group([s.BlockGrad(a, name="x"), s.MakeLoss(s.maximum(loss, 0), name="loss")])


def text_reader(s: Any) -> Any:
    """As MXNet's example for CTC: softmax and the loss, both made losses."""
    y = dense(s, s.var("data"), 6, "letters", flatten=False)
    loss = s.MakeLoss(s.contrib.ctc_loss(y, s.var("label")), name="ctc")
    shares = s.BlockGrad(s.MakeLoss(s.SoftmaxActivation(s.Reshape(y, shape=(-1, 6)))))
    return s.Group([shares, loss])


def own_loss(s: Any) -> Any:
    shares = s.softmax(dense(s, s.var("data"), 5, "fc"))
    loss = s.MakeLoss(-s.log(s.pick(shares, s.var("label"))), name="loss")
    return s.Group([s.MakeLoss(shares, name="shares"), loss])


def proposals(s: Any) -> Any:
    """As networks of two stages are trained: the loss of places has other labels, and a batch."""
    y, label = conv(s, s.var("data"), 4, "conv"), s.var("label")
    kinds = s.Reshape(conv(s, y, 4, "kind", 1), shape=(0, 2, -1))
    kinds = s.SoftmaxOutput(kinds, label, multi_output=True, name="kinds")
    off = s.smooth_l1(s.var("weight") * (conv(s, y, 8, "place", 1) - s.var("target")), scalar=3)
    loss = s.Reshape(s.MakeLoss(off, grad_scale=0.1), shape=(1, -1, 8), name="loss")
    return s.Group([kinds, loss, s.BlockGrad(label, name="truth")])


def metrics(s: Any) -> Any:
    """The label, and the loss, are outputs for metrics to read."""
    y, label = dense(s, s.var("data"), 5, "fc"), s.Reshape(s.var("label"), shape=(-1,))
    return s.Group([
        s.SoftmaxOutput(y, label, name="softmax"), s.BlockGrad(label, name="truth"),
        s.softmax_cross_entropy(y, label, name="entropy"),
    ])  # fmt: skip


def detector(s: Any) -> Any:
    """As SSD is trained: shares, loss of places, targets, and what is detected."""
    x = s.Activation(conv(s, s.var("data"), 6, "c", stride=2), act_type="relu")
    boxes = s.contrib.MultiBoxPrior(x, sizes=(0.3, 0.5), ratios=(1, 2))
    kinds = s.Reshape(s.transpose(conv(s, x, 12, "kind"), axes=(0, 2, 3, 1)), shape=(0, -1, 4))
    kinds = s.transpose(kinds, axes=(0, 2, 1))
    places = s.Flatten(s.transpose(conv(s, x, 12, "place"), axes=(0, 2, 3, 1)))
    target = s.contrib.MultiBoxTarget(
        boxes, s.var("label"), kinds, negative_mining_ratio=3, negative_mining_thresh=0.5
    )
    shares = s.SoftmaxOutput(kinds, target[2], multi_output=True, use_ignore=True, name="shares")
    off = s.smooth_l1(target[1] * (places - target[0]), scalar=1.0)
    detections = s.contrib.MultiBoxDetection(shares, places, boxes, nms_threshold=0.5)
    return s.Group([
        shares, s.MakeLoss(off, normalization="valid", name="loss"),
        s.MakeLoss(target[2], grad_scale=0, name="truth"),
        s.MakeLoss(detections, grad_scale=0, name="found"),
    ])  # fmt: skip


def autoencoder(s: Any) -> Any:
    x = s.var("data")
    code = s.IdentityAttachKLSparseReg(s.sigmoid(dense(s, x, 3, "in")), name="sparse")
    return s.LinearRegressionOutput(dense(s, code, 7, "out"), x, name="same")


def generator(s: Any) -> Any:
    """A generator that reads its label to compute, with a head that does not."""
    x, label = s.var("data"), s.Reshape(s.var("label"), shape=(-1, 1))
    product = s.broadcast_mul(dense(s, x, 5, "fc"), label, name="made")
    return s.Group([product, s.LinearRegressionOutput(dense(s, x, 1, "guess"), label, name="kind")])


def lone_loss(s: Any) -> Any:
    label = s.Reshape(s.var("label"), shape=(-1, 1))
    return s.MakeLoss(s.square(dense(s, s.var("data"), 1, "fc") - label), name="loss")


def lone_ctc(s: Any) -> Any:
    return s.contrib.ctc_loss(dense(s, s.var("data"), 6, "fc", flatten=False), s.var("label"))


def outer_losses(s: Any) -> Any:
    """Losses of inputs that have nothing in common."""
    first, second = (s.square(dense(s, s.var(n), 2, f"of_{n}")) for n in ("a", "b"))
    return s.Group([first, s.MakeLoss(second, name="loss")])


ROW = {"data": (3, 7)}


def margin(s: Any, label: Any) -> tuple[Any, Any]:
    """An embedding, and shares of classes with a margin for the one that the label names."""
    embedding = dense(s, s.var("data"), 4, "embed")
    unit = s.L2Normalization(embedding, mode="instance") * 8
    cosines = dense(s, unit, 5, "fc", no_bias=True)
    shares = s.SoftmaxOutput(cosines - s.one_hot(label, depth=5) * 2, label, name="softmax")
    return s.BlockGrad(embedding, name="embedding"), shares


def margin_metrics(s: Any) -> Any:
    label = s.var("label")
    embedding, shares = margin(s, label)
    return s.Group([embedding, s.BlockGrad(shares), s.BlockGrad(label, name="truth")])


NETWORKS = {
    "classifier": Trained(classifier, ROW, {"softmax_label": (3,)}),
    "support_vectors": Trained(
        lambda s: s.SVMOutput(dense(s, s.var("data"), 5, "fc"), s.var("label"), name="svm"),
        ROW, {"label": (3,)},
    ),
    "flattened_label": Trained(
        lambda s: classifier(s, s.Reshape(s.var("label"), shape=(-1,))), ROW, {"label": (3, 1)}
    ),
    "two_heads": Trained(two_heads, ROW, {"label": (3, 2)}),
    "one_hot": Trained(one_hot_regression, ROW, {"label": (3,)}),
    "language_model": Trained(
        language_model, {"data": (2, 5), "begin_h": (1, 2, 6), "begin_c": (1, 2, 6)},
        {"label": (2, 5)}, None, ("data",),
    ),
    "segmentation": Trained(segmentation, {"data": (2, 3, 8, 8)}, {"label": (2, 8, 8)}),
    "siamese": Trained(siamese, {"a": (3, 7), "b": (3, 7)}, {"label": (3,)}, (1, 2)),
    "triplet": Trained(triplet, {"anchor": (3, 7), "same": (3, 7), "other": (3, 7)}, {}),
    "text_reader": Trained(text_reader, {"data": (5, 2, 7)}, {"label": (2, 3)}, (0,)),
    "own_loss": Trained(own_loss, ROW, {"label": (3,)}, (0,)),
    "proposals": Trained(
        proposals, {"data": (2, 3, 6, 6), "weight": (2, 8, 6, 6), "target": (2, 8, 6, 6)},
        {"label": (2, 72)}, (0, 1),
    ),
    "metrics": Trained(metrics, ROW, {"label": (3, 1)}, (0,)),
    "margin": Trained(lambda s: s.Group(margin(s, s.var("label"))), ROW, {"label": (3,)}, (0,)),
    "margin_metrics": Trained(margin_metrics, ROW, {"label": (3,)}, (0,)),
    "lone_margin": Trained(lambda s: margin(s, s.var("label"))[1], {**ROW, "label": (3,)}, {}),
    "detector": Trained(detector, {"data": (2, 3, 16, 16)}, {"label": (2, 1, 5)}, (0, 3)),
    "autoencoder": Trained(autoencoder, ROW, {}),
    "conditioned": Trained(generator, {**ROW, "label": (3,)}, {}),
    "lone_loss": Trained(lone_loss, {**ROW, "label": (3,)}, {}),
    "lone_ctc": Trained(lone_ctc, {"data": (5, 2, 7), "label": (2, 3)}, {}),
    "outer_losses": Trained(outer_losses, {"a": (3, 7), "b": (2, 4)}, {}),
}  # fmt: skip
