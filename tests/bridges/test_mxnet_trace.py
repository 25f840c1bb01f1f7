"""Gluon blocks that cannot be hybridized: traced, and run beside MXNet."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.bridges import onnxruntime as runtime
from serde.errors import SerdeError, UsageError
from testing.mxnet_live import live_mxnet


@pytest.fixture(scope="module")
def mx():
    module = live_mxnet()
    module.random.seed(0)
    return module


def block_of(mx, forward, **children):
    """A Gluon block with children, and a Python function as its ``forward``."""

    class Traced(mx.gluon.Block):
        def __init__(self):
            super().__init__()
            for name, child in children.items():
                setattr(self, name, child)

        def forward(self, *xs):
            return forward(self, *xs)

    block = Traced()
    block.initialize(mx.init.Normal(0.5))
    return block


def unrolled_lstm(mx):
    """A recurrent cell in a Python loop."""

    def forward(self, x):
        state = self.cell.begin_state(x.shape[0])
        for at in range(x.shape[1]):
            out, state = self.cell(x[:, at], state)
        return out, state[1]

    return block_of(mx, forward, cell=mx.gluon.rnn.LSTMCell(4))


def greedy_decoder(mx):
    """Each step feeds the best token of the one before."""

    def forward(self, x):
        token = mx.nd.argmax(self.start(x), axis=1)
        scores = []
        for _ in range(3):
            logits = self.out(self.embed(token))
            token = logits.argmax(axis=1)
            scores.append(logits)
        return mx.nd.stack(*scores, axis=1)

    nn = mx.gluon.nn
    return block_of(mx, forward, start=nn.Dense(5), embed=nn.Embedding(5, 4), out=nn.Dense(5))


def recursive_tree(mx):
    """A recursion over a tree of rows, as tree networks do."""

    def merge(self, rows):
        if len(rows) == 1:
            return rows[0]
        half = len(rows) // 2
        return mx.nd.tanh(
            self.join(mx.nd.concat(merge(self, rows[:half]), merge(self, rows[half:])))
        )

    def forward(self, x):
        return merge(self, [x[:, i] for i in range(x.shape[1])])

    return block_of(mx, forward, join=mx.gluon.nn.Dense(3))


def routing(mx):
    """Capsules: agreement by iteration, with assignments to local arrays."""

    def forward(self, x):
        votes = self.votes(x).reshape((x.shape[0], 3, 4))
        weights = mx.nd.zeros((x.shape[0], 3, 1))
        for _ in range(2):
            shares = mx.nd.softmax(weights, axis=1)
            total = (shares * votes).sum(axis=1, keepdims=True)
            weights = weights + (votes * total).sum(axis=2, keepdims=True)
        weights[:, 0] = 0
        return total, weights

    return block_of(mx, forward, votes=mx.gluon.nn.Dense(12))


def lambdas(mx):
    """Lambda blocks and a hybridized child."""
    nn = mx.gluon.nn
    net = nn.Sequential()
    child = nn.HybridSequential()
    child.add(nn.Dense(6, activation="relu"), nn.BatchNorm())
    child.hybridize()
    net.add(nn.Lambda("relu"), child, nn.Lambda(lambda x: x * 2 - x.mean(axis=1, keepdims=True)))
    net.initialize(mx.init.Normal(0.5))
    return net


def early_exit(mx):
    """Layers until the numbers are large enough: data decide."""

    def forward(self, x):
        for _ in range(4):
            x = self.layer(x)
            if float(x.abs().max().asscalar()) > 1e-3:
                break
        return x

    return block_of(mx, forward, layer=mx.gluon.nn.Dense(3, flatten=False))


def attention(mx):
    """A mask from Python sizes, and matrix products of slices."""

    def forward(self, x):
        length = x.shape[1]
        mask = mx.nd.array(np.tril(np.ones((length, length), np.float32)))
        q, k, v = mx.nd.split(self.project(x), 3, axis=2)
        scores = mx.nd.batch_dot(q, k, transpose_b=True) / 2
        scores = mx.nd.where(mx.nd.broadcast_like(mask.expand_dims(0), scores), scores,
                             mx.nd.full(scores.shape, -1e9))  # fmt: skip
        return mx.nd.batch_dot(scores.softmax(), v)

    return block_of(mx, forward, project=mx.gluon.nn.Dense(12, flatten=False))


def foreach(mx):
    """``contrib.foreach`` runs its body as Python."""

    def forward(self, x):
        def step(row, state):
            out = mx.nd.tanh(self.layer(row) + state[0])
            return out, [out]

        outs, states = mx.nd.contrib.foreach(step, x.swapaxes(0, 1), [mx.nd.zeros((x.shape[0], 3))])
        return outs, states[0]

    return block_of(mx, forward, layer=mx.gluon.nn.Dense(3))


def pyramid(mx):
    """Convolutions shared over scales that Python counts."""

    def forward(self, x):
        image, levels = x.reshape((x.shape[0], 1, 3, -1)), []
        while min(image.shape[2:]) >= 1 and len(levels) < 2:
            levels.append(self.conv(image).mean(axis=(2, 3)))
            image = mx.nd.UpSampling(image, scale=2, sample_type="nearest")
        return mx.nd.concat(*levels, dim=1)

    return block_of(mx, forward, conv=mx.gluon.nn.Conv2D(2, 1))


def in_place(mx):
    """Arrays that are changed after they are made."""

    def forward(self, x):
        y = self.layer(x)
        y += 1
        y[:, 1:3] = y[:, 0:1] * 2
        y *= y
        z = mx.nd.zeros_like(y)
        z[:] = y
        z[0] = 5
        return z, y.astype("float64")

    return block_of(mx, forward, layer=mx.gluon.nn.Dense(4))


MODELS = {
    "unrolled LSTM": (unrolled_lstm, (2, 3, 4)),
    "greedy decoder": (greedy_decoder, (2, 3)),
    "recursive tree": (recursive_tree, (2, 4, 3)),
    "routing": (routing, (2, 5)),
    "lambdas": (lambdas, (2, 3)),
    "early exit": (early_exit, (2, 3)),
    "attention": (attention, (2, 3, 4)),
    "foreach": (foreach, (2, 4, 3)),
    "pyramid": (pyramid, (2, 6)),
    "in place": (in_place, (2, 3)),
}


def check(mx, block, *arrays, path):
    """Trace with some numbers, and compare with others of the same shapes."""
    from serde.bridges.mxnet import trace

    graph = trace(block, *arrays)
    serde.save(graph, path)
    for scale in (1, -0.5):
        inputs = [x * scale for x in arrays]
        feeds = {v.name: x.asnumpy() for v, x in zip(graph.inputs, inputs, strict=True)}
        expected = block(*inputs)
        expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
        for actual, reference in zip(runtime.run(path, feeds), expected, strict=True):
            np.testing.assert_allclose(actual, reference.asnumpy(), rtol=1e-5, atol=1e-6)
            assert actual.dtype == reference.dtype
    return graph


@pytest.mark.parametrize("name", MODELS)
def test_models_agree(mx, name, tmp_path):
    make, shape = MODELS[name]
    x = mx.nd.array(np.random.default_rng(0).normal(size=shape))
    graph = check(mx, make(mx), x, path=tmp_path / "m.onnx")
    sources = [s for n in graph.nodes for s in n.sources]
    assert any(s.name.startswith("test_mxnet_trace.py:") for s in sources)
    assert bool(graph.notes) == (name == "early exit"), graph.notes


def test_numpy_arrays_of_mxnet(mx, tmp_path):
    """``mx.np`` code with loops."""

    def forward(self, x):
        weight = self.weight.data()
        total = mx.np.zeros((x.shape[0], 3))
        for power in range(1, 3):
            total = total + mx.np.tanh(mx.np.dot(x, weight)) ** power
        scaled = mx.np.tensordot(total, mx.np.ones((3, 2)), axes=1)
        return mx.np.where(scaled > 0, scaled, mx.np.exp(scaled)), total.reshape(-1, 1)[1:]

    mx.npx.set_np()
    try:
        block = block_of(mx, forward)
        block.weight = mx.gluon.Parameter("weight", shape=(4, 3))
        block.weight.initialize(mx.init.Normal(0.5))
        block.params._params["weight"] = block.weight
        x = mx.np.array(np.random.default_rng(0).normal(size=(2, 4)), dtype="float32")
        check(mx, block, x, path=tmp_path / "m.onnx")
    finally:
        mx.npx.reset_np()


def test_the_line_that_data_decide_is_told(mx):
    from serde.bridges.mxnet import trace

    graph = trace(early_exit(mx), mx.nd.ones((2, 3)))
    (note,) = graph.notes
    assert note.startswith("test_mxnet_trace.py:") and "the graph does what this run did" in note


def test_a_batch_by_name(mx, tmp_path):
    from serde.bridges.mxnet import trace

    net = lambdas(mx)
    graph = trace(net, mx.nd.ones((2, 3)), rebatch="N")
    assert graph.inputs[0].shape == ("N", 3)
    serde.save(graph, tmp_path / "m.onnx")
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("f4")
    (actual,) = runtime.run(tmp_path / "m.onnx", {"data": x})
    np.testing.assert_allclose(actual, net(mx.nd.array(x)).asnumpy(), rtol=1e-5, atol=1e-6)


def change_input(self, x):
    x[:] = 0
    return x + 1


def write_through_view(self, x):
    y = x * 2
    view = y[0]
    view[:] = 0
    return y


@pytest.mark.parametrize(
    ("forward", "message"),
    [(change_input, "the block changes an input"), (write_through_view, "Copy one of them")],
)
def test_what_is_refused(mx, forward, message):
    from serde.bridges.mxnet import trace

    with pytest.raises(SerdeError, match=message) as caught:
        trace(block_of(mx, forward), mx.nd.ones((2, 3)))
    assert "test_mxnet_trace.py:" in str(caught.value)
    assert mx.nd.ones((2,)).asnumpy().tolist() == [1, 1]  # MXNet works as before


def test_inputs_are_arrays(mx):
    from serde.bridges.mxnet import trace

    with pytest.raises(UsageError):
        trace(block_of(mx, change_input), np.ones(3))
