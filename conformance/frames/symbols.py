"""Symbols of MXNet: layers, networks, and heads of them.

Each function takes MXNet's module of symbols.
"""

from __future__ import annotations

from typing import Any


def dense(s: Any, x: Any, name: str = "fc", units: int = 5, **attrs: Any) -> Any:
    return s.FullyConnected(x, num_hidden=units, name=name, **attrs)


def conv(s: Any, x: Any, name: str = "conv", count: int = 4, **attrs: Any) -> Any:
    return s.Convolution(x, num_filter=count, kernel=(3, 3), pad=(1, 1), name=name, **attrs)


def small_cnn(s: Any) -> Any:
    x = s.Activation(
        s.BatchNorm(conv(s, s.var("data")), fix_gamma=False, name="bn"), act_type="relu"
    )
    x = s.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    return s.SoftmaxOutput(dense(s, s.Flatten(x)), name="softmax")


def two_weights_sum(s: Any) -> Any:
    return dense(s, s.broadcast_add(s.var("data"), s.var("a") + s.var("b")))


def shared(s: Any) -> Any:
    w, b = s.var("w_weight"), s.var("w_bias")
    return s.Concat(
        *(s.FullyConnected(s.var(n), w, b, num_hidden=4) for n in ("left", "right")), dim=1
    )


def lstm(s: Any) -> Any:
    x = s.SwapAxis(s.var("data"), dim1=0, dim2=1)
    states = [s.zeros((1, 0, 5)) for _ in range(2)]
    return s.RNN(x, s.var("lstm_parameters"), *states, state_size=5, num_layers=1, mode="lstm",
                 name="lstm")  # fmt: skip


def unrolled(s: Any, cell: str) -> Any:
    import mxnet as mx

    kinds = {"lstm": mx.rnn.LSTMCell, "gru": mx.rnn.GRUCell, "rnn": mx.rnn.RNNCell}
    outputs, _ = kinds[cell](5, prefix=f"{cell}_").unroll(4, s.var("data"), merge_outputs=True)
    return outputs


def foreach(s: Any) -> Any:
    w = s.var("w_weight", shape=(6, 6))
    outputs, states = s.contrib.foreach(
        lambda x, h: (lambda y: (y, [y]))(s.tanh(s.dot(x, w) + h[0])),
        s.SwapAxis(s.var("data"), dim1=0, dim2=1), [s.zeros((0, 6))],
    )  # fmt: skip
    return s.Group([outputs, states[0]])


def while_loop(s: Any) -> Any:
    _, states = s.contrib.while_loop(
        lambda i, x: i < 3, lambda i, x: ([x * 2], [i + 1, s.tanh(x)]),
        [s.zeros((1,)), s.var("data")], max_iterations=4,
    )  # fmt: skip
    return states[1]


def cond(s: Any) -> Any:
    x, flag = s.var("data"), s.var("flag")
    return s.contrib.cond(flag > 0, lambda: dense(s, x, "a"), lambda: dense(s, x, "b") * 2)


def attend(s: Any) -> Any:
    """Attention with a mask of places."""
    x = s.var("data")
    q, k, v = (dense(s, x, n, 6, flatten=False) for n in "qkv")
    scores = s.batch_dot(q, k, transpose_b=True) / 2.0
    scores = s.broadcast_add(scores, s.expand_dims((s.var("mask") - 1) * 10, axis=1))
    return s.batch_dot(s.softmax(scores), v)


def positions(s: Any) -> Any:
    words = s.Embedding(s.var("tokens"), input_dim=20, output_dim=6, name="words")
    return dense(s, s.broadcast_add(words, s.var("positions")), "out", flatten=False)


def ssd(s: Any) -> Any:
    x = conv(s, s.var("data"))
    boxes = s.contrib.MultiBoxPrior(x, sizes=(0.3, 0.5), ratios=(1, 2))
    kinds = s.transpose(conv(s, x, "kind", 9), axes=(0, 2, 3, 1))
    kinds = s.transpose(s.Reshape(kinds, shape=(0, -1, 3)), axes=(0, 2, 1))
    places = s.Flatten(s.transpose(conv(s, x, "place", 12), axes=(0, 2, 3, 1)))
    return s.contrib.MultiBoxDetection(s.softmax(kinds, axis=1), places, boxes, name="found")


def group_twice(s: Any) -> Any:
    y = dense(s, s.var("data"))
    return s.Group([y, s.relu(y, name="r"), y])


def group_of_parts(s: Any) -> Any:
    parts = s.SliceChannel(dense(s, s.var("data"), units=6), num_outputs=3, name="parts")
    return s.Group([parts[2], parts, s.BlockGrad(parts[0])])


def group_with_input(s: Any) -> Any:
    x = s.var("data")
    return s.Group([x, dense(s, x), s.var("other")])


def group_with_parameter(s: Any) -> Any:
    w = s.var("fc_weight")
    return s.Group([s.FullyConnected(s.var("data"), w, num_hidden=5, name="fc"), w * 2])


def make_loss_alone(s: Any) -> Any:
    return s.MakeLoss(s.sum(s.square(dense(s, s.var("data"))), axis=1), name="loss")


def make_loss_beside(s: Any) -> Any:
    y = dense(s, s.var("data"))
    return s.Group([y, s.MakeLoss(s.square(y), name="loss")])


def make_loss_of_more(s: Any) -> Any:
    y = dense(s, s.var("data"))
    loss = s.MakeLoss(s.square(y - s.var("target")), name="loss")
    return s.Group([s.BlockGrad(y), loss])


def make_loss_blocks(s: Any) -> Any:
    a, b = (dense(s, s.var(n), f"of_{n}") for n in ("x", "y"))
    return s.Group([s.MakeLoss(a), s.make_loss(b), s.BlockGrad(a * b)])


def make_loss_label(s: Any) -> Any:
    y = s.softmax(dense(s, s.var("data")))
    return s.Group([s.BlockGrad(y), s.MakeLoss(-s.log(s.pick(y, s.var("label"))), name="loss")])


def regression(s: Any) -> Any:
    return s.LinearRegressionOutput(dense(s, s.var("data"), units=1), name="lro")


def two_regressions(s: Any) -> Any:
    x = s.var("data")
    first = s.LogisticRegressionOutput(dense(s, x, "a", 2), s.var("a_label"), name="p")
    return s.Group([first, s.MAERegressionOutput(dense(s, x, "b", 1), s.var("target"), name="q")])


def batch_norm_as(s: Any, op: str) -> Any:
    return getattr(s, op)(conv(s, s.var("data")), name="n")


def gluon_cnn(s: Any) -> Any:
    from mxnet.gluon import nn

    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, in_channels=2), nn.BatchNorm(in_channels=4), nn.PReLU())
        net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(5, in_units=4))
    return net(s.var("data"))


def gluon_concurrent(s: Any) -> Any:
    from mxnet.gluon import contrib, nn

    net = contrib.nn.HybridConcurrent(axis=1, prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=6), contrib.nn.Identity(), nn.Dense(2, in_units=6))
    return net(s.var("data"))


def gluon_recurrent(s: Any, kind: str) -> Any:
    from mxnet import gluon

    layer = getattr(gluon.rnn, kind)(5, layout="NTC", input_size=6, prefix="net_")
    return layer(s.var("data"))


def gluon_own_parameter(s: Any) -> Any:
    """A block with a parameter of its own, whose node says that it is trained."""
    from mxnet import gluon

    class Scale(gluon.HybridBlock):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(prefix="net_")
            self.scale = self.params.get("scale", shape=(1, 6))
            self.layer = gluon.nn.Dense(5, in_units=6, prefix="net_dense_")

        def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
            return self.layer(F.broadcast_mul(x, scale))

    return Scale()(s.var("data"))
