"""Random networks: inputs, parameters and heads in confusing company and under confusing names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .networks import Network, Shape
from .symbols import conv, dense

COUNT = 160
NAMES = (
    "data x input_weight bias_in scale fc0_weight_data state gamma mask fc1 data_weight h query "
    "a.b 0 moving_mean in_beta".split()
)


class Draft:
    """A network in the making: the value so far, its shape, and what variables there are."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = [str(n) for n in self.rng.permutation(NAMES)]
        self.batch = int(self.rng.choice((1, 3)))
        self.data: dict[str, Shape] = {}
        self.labels: dict[str, Shape] = {}
        self.plain: dict[str, Shape] = {}
        self.axes: dict[str, int | None] = {}
        self.count = 0

    def name(self) -> str:
        """A name for a layer."""
        self.count += 1
        return f"fc{self.count}"

    def input(self, s: Any, shape: Shape, has_batch: bool = True) -> Any:
        name = self.names.pop()
        self.data[name] = shape
        if not has_batch:
            self.axes[name] = None
        return s.var(name)

    def parameter(self, s: Any, shape: Shape) -> Any:
        name = self.names.pop()
        self.plain[name] = shape
        return s.var(name, **({"shape": shape} if self.rng.integers(2) else {}))


Block = Callable[[Draft, Any, Any, Shape], tuple[Any, Shape]]


def add_dense(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    units = int(d.rng.integers(3, 7))
    y = dense(s, x, d.name(), units, flatten=len(shape) == 2)
    return y, (*shape[:-1], units)


def activate(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.Activation(x, act_type=str(d.rng.choice(("relu", "tanh", "sigmoid")))), shape


def scale_row(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.broadcast_mul(x, d.parameter(s, (1,) * (len(shape) - 1) + shape[-1:])), shape


def scale_number(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.broadcast_mul(x, d.parameter(s, (1,))), shape


def shift_sum(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    row = (1,) * (len(shape) - 1) + shape[-1:]
    return s.broadcast_add(x, d.parameter(s, row) + d.parameter(s, row)), shape


def mask_column(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.broadcast_mul(x, d.input(s, (*shape[:-1], 1))), shape


def add_input(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return x + d.input(s, shape), shape


def join_input(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    other = (*shape[:-1], 2)
    return s.Concat(x, d.input(s, other), dim=len(shape) - 1), (*shape[:-1], shape[-1] + 2)


def scale_input(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.broadcast_mul(x, d.input(s, (1,), False)), shape


def normalize(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.LayerNorm(x, name=d.name()), shape


def normalize_batch(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.BatchNorm(x, fix_gamma=bool(d.rng.integers(2)), name=d.name()), shape


def residual(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return x + dense(s, x, d.name(), shape[-1], flatten=len(shape) == 2), shape


def share(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    w = s.var(f"{d.name()}_weight")
    layer = {"no_bias": True, "num_hidden": shape[-1], "flatten": len(shape) == 2}
    return s.FullyConnected(s.tanh(s.FullyConnected(x, w, **layer)), w, **layer), shape


def zeros(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return x + s.zeros((0, *shape[1:])), shape


def query(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    """A learned row through a layer of its own."""
    row = dense(s, d.parameter(s, (1, 3)), d.name(), shape[-1])
    row = s.Reshape(row, shape=(1,) * (len(shape) - 1) + (-1,))
    return s.broadcast_add(x, row), shape


def drop(d: Draft, s: Any, x: Any, shape: Shape) -> tuple[Any, Shape]:
    return s.Dropout(x, p=0.5), shape


BLOCKS: tuple[Block, ...] = (
    add_dense, activate, scale_row, scale_number, shift_sum, mask_column, add_input, join_input,
    scale_input, normalize, normalize_batch, residual, share, zeros, query, drop,
)  # fmt: skip
MOST_VARIABLES = 5


def begin(d: Draft, s: Any) -> tuple[Any, Shape]:
    kind = d.rng.integers(5)
    if kind == 0:
        shape: Shape = (d.batch, 2, 6, 6)
        x = conv(s, d.input(s, shape), d.name())
        return s.Flatten(s.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="avg")), (d.batch, 36)
    if kind == 1:
        return d.input(s, (d.batch, 4, 5)), (d.batch, 4, 5)
    if kind == 2:
        a, b = (dense(s, d.input(s, (d.batch, n)), d.name(), 5) for n in (6, 7))
        return a * b, (d.batch, 5)
    x = d.input(s, (d.batch, 5))
    return (x if kind == 3 else dense(s, x, d.name(), 5)), (d.batch, 5)


def end(d: Draft, s: Any, x: Any, shape: Shape) -> Any:
    kind = d.rng.integers(8)
    y = dense(s, x, d.name(), 4, flatten=len(shape) == 2)
    if kind == 0 and len(shape) == 2:
        d.labels["softmax_label"] = shape[:1]
        return s.SoftmaxOutput(y, name="softmax")
    if kind == 1:
        d.labels["lro_label"] = (*shape[:-1], 4)
        return s.LinearRegressionOutput(y, name="lro")
    if kind == 2:
        return s.MakeLoss(s.square(y), name="loss")
    if kind == 3:
        return s.Group([s.softmax(y), s.BlockGrad(x), s.MakeLoss(s.mean(y, axis=-1))])
    if kind == 4:
        return s.Group([y, s.tanh(y), y])
    if kind == 5:
        return s.Group([s.SliceChannel(y, num_outputs=2, axis=-1), x])
    if kind == 6:
        target = d.input(s, (*shape[:-1], 4))
        return s.Group([y, s.MakeLoss(s.square(y - target))])
    return y


def draft_network(seed: int) -> Network:
    """A network of a seed; it is made twice, as its variables are known once it is made."""
    import mxnet as mx

    def make(s: Any) -> tuple[Draft, Any]:
        d = Draft(seed)
        x, shape = begin(d, s)
        for _ in range(int(d.rng.integers(1, 5))):
            if len(d.data) + len(d.plain) < MOST_VARIABLES:
                x, shape = BLOCKS[d.rng.integers(len(BLOCKS))](d, s, x, shape)
        return d, end(d, s, x, shape)

    with mx.name.NameManager():
        d, _ = make(mx.sym)
    return Network(lambda s: make(s)[1], d.data, d.labels, {}, d.plain, d.axes)
