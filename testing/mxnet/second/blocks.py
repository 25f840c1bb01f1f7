"""What networks are made of; written for Python 3.7 and MXNet 2.0."""

from mxnet import gluon, npx
from mxnet.gluon import nn

npx.set_np()
UNITS, HEADS, LENGTH, VOCABULARY = 16, 4, 6, 30


def image(size=28, channels=1):
    return ("float32", (2, channels, size, size))


def words(length=LENGTH, batch=2):
    return ("int32", (batch, length))


class Function(nn.HybridBlock):
    """A function of blocks and arrays as a block."""

    def __init__(self, function, *blocks, **shapes):
        super().__init__()
        self.function = function
        self.count = len(blocks)
        for i, block in enumerate(blocks):
            setattr(self, f"block{i}", block)
        self.weights = sorted(shapes)
        for name, shape in shapes.items():
            setattr(self, name, gluon.Parameter(shape=shape))

    def forward(self, *arrays):
        blocks = [getattr(self, f"block{i}") for i in range(self.count)]
        weights = {name: getattr(self, name).data() for name in self.weights}
        return self.function(*blocks, *arrays, **weights)


def chain(*blocks):
    net = nn.HybridSequential()
    net.add(*blocks)
    return net


def conv(channels, size=3, padding=1, act="relu", **more):
    return nn.Conv2D(channels, size, padding=padding, activation=act, **more)


def masked_softmax(x, lengths):
    """Softmax over the first elements of the last axis."""
    shape = x.shape
    lengths = lengths.repeat(shape[1]) if lengths.ndim == 1 else lengths.reshape(-1)
    x = npx.sequence_mask(x.reshape(-1, shape[-1]), lengths, True, value=-1e6, axis=1)
    return npx.softmax(x).reshape(shape)
