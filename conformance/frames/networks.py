"""Networks as symbols of MXNet, with the shapes of what is fed to them.

They are of the kinds whose inputs, labels and parameters are hard to tell apart by a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from serde.ir.graph import EMPTY

from .symbols import (
    attend,
    batch_norm_as,
    cond,
    conv,
    dense,
    foreach,
    gluon_cnn,
    gluon_concurrent,
    gluon_own_parameter,
    gluon_recurrent,
    group_of_parts,
    group_twice,
    group_with_input,
    group_with_parameter,
    lstm,
    make_loss_alone,
    make_loss_beside,
    make_loss_blocks,
    make_loss_label,
    make_loss_of_more,
    positions,
    regression,
    shared,
    small_cnn,
    ssd,
    two_regressions,
    two_weights_sum,
    unrolled,
    while_loop,
)

Shape = tuple[int, ...]
BATCH = 3
ROW, IMAGE, STEPS = (BATCH, 6), (BATCH, 2, 8, 8), (BATCH, 4, 6)


class Network(NamedTuple):
    """How a symbol is made, the shapes of its inputs and labels, and the sizes of integers.

    ``plain`` are shapes of parameters that no operator infers; ``batch`` are the axes of samples
    where that is not the first, None where there is none.
    """

    make: Callable[[Any], Any]
    data: Mapping[str, Shape]
    labels: Mapping[str, Shape] = EMPTY
    integers: Mapping[str, int] = EMPTY
    plain: Mapping[str, Shape] = EMPTY
    batch: Mapping[str, int | None] = EMPTY
    lost: tuple[int, ...] = ()  # outputs that only a label tells

    def resize(self, name: str, count: int | str) -> tuple[Any, ...]:
        """The shape of an input or a label for a number of samples."""
        shape = {**self.data, **self.labels}[name]
        axis = self.batch.get(name, 0)
        return tuple(count if at == axis else d for at, d in enumerate(shape))


NETWORKS: dict[str, Network] = {
    "mlp": Network(lambda s: dense(s, s.relu(dense(s, s.var("data"), "a")), "b"), {"data": ROW}),
    "cnn": Network(small_cnn, {"data": IMAGE}, {"softmax_label": (BATCH,)}),
    "input beside its name": Network(
        lambda s: dense(s, s.var("weight_data"), "weight"), {"weight_data": ROW}
    ),
    "input called weight": Network(lambda s: dense(s, s.var("weight")), {"weight": ROW}),
    "input called as a layer's weight": Network(
        lambda s: dense(s, s.var("x_weight"), "y", 4) + dense(s, s.var("data"), "d", 4),
        {"x_weight": (BATCH, 7), "data": ROW},
    ),
    "input called bias": Network(
        lambda s: s.broadcast_add(dense(s, s.var("data")), s.var("bias")),
        {"data": ROW, "bias": (BATCH, 1)},
    ),
    "inputs called gamma and beta": Network(
        lambda s: s.broadcast_add(
            s.broadcast_mul(dense(s, s.var("data")), s.var("film_gamma")), s.var("film_beta")
        ),
        {"data": ROW, "film_gamma": (BATCH, 5), "film_beta": (BATCH, 5)},
    ),
    "parameter called data": Network(
        lambda s: s.FullyConnected(s.var("x"), s.var("data"), num_hidden=5, no_bias=True),
        {"x": ROW},
    ),
    "plain parameter": Network(
        lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("scale")),
        {"data": ROW},
        plain={"scale": (1, 5)},
    ),
    "plain parameter in front": Network(
        lambda s: dense(s, s.broadcast_mul(s.var("data"), s.var("scale"))),
        {"data": ROW},
        plain={"scale": (1, 6)},
    ),
    "plain parameter of one number": Network(
        lambda s: dense(s, s.broadcast_mul(s.var("data"), s.var("scale", shape=(1,)))),
        {"data": ROW},
    ),
    "dot with a plain parameter": Network(
        lambda s: s.dot(s.var("data"), s.var("matrix")), {"data": ROW}, plain={"matrix": (6, 4)}
    ),
    "sum of parameters": Network(two_weights_sum, {"data": ROW}, plain={"a": (1, 6), "b": (1, 6)}),
    "input of one number": Network(
        lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("factor")),
        {"data": ROW, "factor": (1,)},
        batch={"factor": None},
    ),
    "mask of one column": Network(
        lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("mask")),
        {"data": ROW, "mask": (BATCH, 1)},
    ),
    "mask of all": Network(
        lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("mask")),
        {"data": ROW, "mask": (BATCH, 5)},
    ),
    "mask in front": Network(
        lambda s: dense(s, s.broadcast_mul(s.var("data"), s.var("mask"))),
        {"data": ROW, "mask": (BATCH, 1)},
    ),
    "mask of an image": Network(
        lambda s: s.broadcast_mul(conv(s, s.var("data")), s.var("mask")),
        {"data": IMAGE, "mask": (BATCH, 1, 8, 8)},
    ),
    "attention with a mask": Network(attend, {"data": STEPS, "mask": (BATCH, 4)}),
    "positions": Network(
        positions, {"tokens": (BATCH, 4)}, plain={"positions": (1, 4, 6)}, integers={"tokens": 20}
    ),
    "shared": Network(shared, {"left": ROW, "right": ROW}),
    "tied": Network(
        lambda s: (
            lambda w: s.FullyConnected(
                s.Embedding(s.var("ids"), w, input_dim=9, output_dim=6),
                w,
                no_bias=True,
                num_hidden=9,
                flatten=False,
            )
        )(s.var("table_weight")),
        {"ids": (BATCH, 4)},
        integers={"ids": 9},
    ),
    "lstm": Network(lstm, {"data": STEPS}),
    "lstm with states": Network(
        lambda s: s.RNN(
            s.var("data"),
            s.var("p"),
            s.var("h"),
            s.var("c"),
            state_size=5,
            num_layers=1,
            mode="lstm",
            state_outputs=True,
            name="r",
        ),
        {"data": (4, BATCH, 6), "h": (1, BATCH, 5), "c": (1, BATCH, 5)},
        batch={"data": 1, "h": 1, "c": 1},
    ),
    **{
        f"unrolled {c}": Network(lambda s, c=c: unrolled(s, c), {"data": STEPS})
        for c in ("lstm", "gru", "rnn")
    },
    "foreach": Network(foreach, {"data": STEPS}),
    "while_loop": Network(while_loop, {"data": ROW}),
    "cond": Network(
        cond,
        {"data": ROW, "flag": (1,)},
        batch={"flag": None},
        plain={"a_weight": (5, 6), "a_bias": (5,), "b_weight": (5, 6), "b_bias": (5,)},
    ),
    "detector": Network(ssd, {"data": IMAGE}),
    "group twice": Network(group_twice, {"data": ROW}),
    "group of parts": Network(group_of_parts, {"data": ROW}),
    "group with an input": Network(group_with_input, {"data": ROW, "other": (BATCH, 3)}),
    "group with a parameter": Network(group_with_parameter, {"data": ROW}),
    "MakeLoss alone": Network(make_loss_alone, {"data": ROW}),
    "MakeLoss beside": Network(make_loss_beside, {"data": ROW}),
    "MakeLoss of more": Network(make_loss_of_more, {"data": ROW, "target": (BATCH, 5)}),
    "MakeLoss of blocks": Network(make_loss_blocks, {"x": ROW, "y": ROW}),
    "MakeLoss with a label": Network(
        make_loss_label, {"data": ROW}, {"label": (BATCH,)}, lost=(1,)
    ),
    "regression": Network(regression, {"data": ROW}, {"lro_label": (BATCH, 1)}),
    "two regressions": Network(
        two_regressions, {"data": ROW}, {"a_label": (BATCH, 2), "target": (BATCH, 1)}
    ),
    **{
        op: Network(lambda s, op=op: batch_norm_as(s, op), {"data": IMAGE})
        for op in ("BatchNorm", "InstanceNorm")
    },
    "LayerNorm": Network(lambda s: s.LayerNorm(s.var("data"), name="ln"), {"data": STEPS}),
    "PReLU": Network(
        lambda s: s.LeakyReLU(conv(s, s.var("data")), act_type="prelu", name="p"), {"data": IMAGE}
    ),
    "no parameters": Network(lambda s: s.softmax(s.var("data") * 2), {"data": ROW}),
    "two inputs added": Network(lambda s: s.var("a") + s.var("b"), {"a": ROW, "b": ROW}),
    "two inputs broadcast": Network(
        lambda s: s.broadcast_add(s.var("a"), s.var("b")), {"a": ROW, "b": (BATCH, 1)}
    ),
    "lengths": Network(
        lambda s: s.SequenceMask(
            s.SwapAxis(dense(s, s.var("data"), flatten=False), dim1=0, dim2=1),
            s.var("length"),
            use_sequence_length=True,
            name="m",
        ),
        {"data": STEPS, "length": (BATCH,)},
        integers={"length": 4},
    ),
    "take of a parameter": Network(
        lambda s: s.take(s.var("table"), s.var("ids")),
        {"ids": (BATCH, 4)},
        plain={"table": (7, 3)},
        integers={"ids": 7},
    ),
    "cosine of a parameter": Network(
        lambda s: s.dot(
            s.L2Normalization(dense(s, s.var("data"))),
            s.L2Normalization(s.var("centers")),
            transpose_b=True,
        ),
        {"data": ROW},
        plain={"centers": (4, 5)},
    ),
    "gluon cnn": Network(gluon_cnn, {"data": IMAGE}),
    "gluon concurrent": Network(gluon_concurrent, {"data": ROW}),
    **{
        f"gluon {k}": Network(lambda s, k=k: gluon_recurrent(s, k), {"data": STEPS})
        for k in ("LSTM", "GRU")
    },
    "gluon own parameter": Network(gluon_own_parameter, {"data": ROW}),
    "deconvolution": Network(
        lambda s: s.Deconvolution(
            s.var("data"), num_filter=3, kernel=(4, 4), stride=(2, 2), pad=(1, 1), name="up"
        ),
        {"data": IMAGE},
    ),
    "scalar loss of data": Network(
        lambda s: (lambda x: s.Group([s.MakeLoss(s.mean(dense(s, x))), s.BlockGrad(x)]))(
            s.var("data")
        ),
        {"data": ROW},
    ),
    "zeros beside": Network(
        lambda s: s.Concat(s.zeros((0, 2)), dense(s, s.var("data")), dim=1), {"data": ROW}
    ),
    "broadcast_like": Network(
        lambda s: s.broadcast_like(s.expand_dims(s.var("v"), axis=0), dense(s, s.var("data"))),
        {"data": ROW},
        plain={"v": (5,)},
    ),
    "regions": Network(
        lambda s: s.ROIPooling(
            conv(s, s.var("data")), s.var("rois"), pooled_size=(2, 2), spatial_scale=1.0
        ),
        {"data": IMAGE, "rois": (5, 5)},
        integers={"rois": 3},
        batch={"rois": None},
    ),
    "where": Network(
        lambda s: (lambda x: s.where(s.var("choice"), dense(s, x, "a"), dense(s, x, "b")))(
            s.var("data")
        ),
        {"data": ROW, "choice": (BATCH, 5)},
        integers={"choice": 2},
    ),
    "svm": Network(
        lambda s: s.SVMOutput(dense(s, s.var("data")), s.var("label"), name="svm"),
        {"data": ROW},
        {"label": (BATCH,)},
    ),
    "entropy beside": Network(
        lambda s: (
            lambda y, label: s.Group(
                [s.SoftmaxOutput(y, label, name="softmax"), s.softmax_cross_entropy(y, label)]
            )
        )(dense(s, s.var("data")), s.var("label")),
        {"data": ROW},
        {"label": (BATCH,)},
        lost=(1,),
    ),
}
