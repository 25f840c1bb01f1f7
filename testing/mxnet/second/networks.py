"""Networks of MXNet 2.0's numpy interface, for ``conformance.mxnet_second``.

It runs in an environment of ``testing/mxnet/releases_live.py``, and is written for Python 3.7: Gluon's
vision zoo and recurrent layers, networks of the kinds that the chapters of Dive into Deep Learning
build, and those of its package ``d2l``, with random weights.
"""

import math
import zlib
from functools import partial

import mxnet as mx
import numpy as onp
from mxnet import gluon, np, npx
from mxnet.gluon import nn, rnn
from mxnet.gluon.model_zoo import vision

from testing.mxnet.second import attention, images, sequences
from testing.mxnet.second.blocks import (
    HEADS,
    LENGTH,
    UNITS,
    VOCABULARY,
    Function,
    chain,
    conv,
    image,
    words,
)

SMALLEST = {  # by the letters a name starts with: a small image the network still makes sense of
    "alexnet": 63, "densenet": 221, "inception": 299, "mobilenet": 32, "resnet": 32,
    "squeezenet": 213, "vgg": 32,
}  # fmt: skip
VISION = (
    "alexnet densenet121 densenet161 densenet169 densenet201 inceptionv3 mobilenet1.0 "
    "mobilenet0.75 mobilenet0.5 mobilenet0.25 mobilenetv2_1.0 mobilenetv2_0.75 mobilenetv2_0.5 "
    "mobilenetv2_0.25 resnet18_v1 resnet34_v1 resnet50_v1 resnet101_v1 resnet152_v1 resnet18_v2 "
    "resnet34_v2 resnet50_v2 resnet101_v2 resnet152_v2 squeezenet1.0 squeezenet1.1 vgg11 vgg13 "
    "vgg16 vgg19 vgg11_bn vgg13_bn vgg16_bn vgg19_bn"
).split()
ROWS, SERIES = ("float32", (2, 8)), ("float32", (2, LENGTH, 8))
LENGTHS, FEATURES = ("float32", (2,), 1, LENGTH), ("float32", (2, LENGTH, HEADS, 4))
USERS = ("int32", (2,))
NETWORKS = {
    "mlp": (lambda: chain(nn.Dense(20, activation="relu"), nn.Dropout(0.2), nn.Dense(10)), [image()]),
    "lenet": (images.lenet, [image()]),
    "lenet_relu_max": (partial(images.lenet, "relu", nn.MaxPool2D), [image()]),
    "lenet_batch_norm": (partial(images.lenet, "sigmoid", norm=True), [image()]),
    "vgg_small": (lambda: chain(conv(8), nn.MaxPool2D(2, 2), conv(16), conv(16), nn.MaxPool2D(2, 2),
                                nn.Dense(20, activation="relu"), nn.Dense(10)), [image(32)]),
    "nin": (images.nin, [image(64)]),
    "googlenet": (lambda: chain(conv(8, 7, 3, strides=2), nn.MaxPool2D(3, 2, 1),
                                images.inception(4, (4, 8), (2, 4), 4), images.inception(4, (4, 8), (2, 4), 4),
                                nn.GlobalAvgPool2D(), nn.Dense(10)), [image(48)]),
    "resnet_small": (lambda: chain(images.residual(8), images.residual(16, 2), nn.GlobalAvgPool2D(), nn.Dense(10)),
                     [image(32, 3)]),
    "resnext_small": (lambda: chain(conv(8), images.residual(8, 1, 4), images.residual(16, 2, 8), nn.GlobalAvgPool2D(),
                                    nn.Dense(10)), [image(32, 3)]),
    "densenet_small": (lambda: chain(conv(8), images.dense_block(3, 4), nn.BatchNorm(), nn.Conv2D(8, 1),
                                     nn.AvgPool2D(2, 2), images.dense_block(2, 4), nn.GlobalAvgPool2D(),
                                     nn.Dense(10)), [image(32)]),
    "norms": (images.norms, [image(10, 3)]),
    "fcn": (images.segmentation, [image(32, 3)]),
    "tiny_ssd": (images.TinyDetector, [image(32, 3)]),
    "dcgan_generator": (images.generator, [("float32", (2, 10, 4, 4))]),
    "dcgan_discriminator": (images.discriminator, [image(16, 3)]),
    **{f"{kind.lower()}{'_states' * states}{''.join(f'_{v}' for v in more.values())}":
       (partial(sequences.recurrent, kind, states, **more), [("float32", (LENGTH, 2, 8))])
       for kind in ("RNN", "GRU", "LSTM") for states in (False, True)
       for more in ({}, {"num_layers": 2}, {"num_layers": 2, "bidirectional": True})},
    **{f"cells_{kind.lower()}": (lambda kind=kind: sequences.unroll_cells(getattr(rnn, kind)(UNITS, input_size=8), rnn.DropoutCell(0.5)),
                                 [SERIES]) for kind in ("RNNCell", "LSTMCell", "GRUCell")},
    "cells_residual": (lambda: sequences.unroll_cells(rnn.ResidualCell(rnn.GRUCell(8, input_size=8)), rnn.LSTMCell(8, input_size=8)), [SERIES]),
    "cells_both_ways": (lambda: sequences.both_ways(rnn.LSTMCell(UNITS, input_size=8), rnn.GRUCell(UNITS, input_size=8)), [SERIES]),
    "while_loop": (lambda: Function(sequences.grow), [ROWS]),
    "cond": (lambda: Function(sequences.choose), [ROWS, ROWS]),
    "seq2seq": (sequences.Seq2Seq, [words(), words()]),
    "bahdanau": (sequences.Additive, [words(), LENGTHS, words()]),
    "attention": (attention.Attention, [("float32", (2, LENGTH, UNITS))] * 3 + [LENGTHS]),
    "transformer_lengths": (attention.Transformer, [words(), LENGTHS]),
    "transformer_no_mask": (partial(attention.Transformer, act="gelu"), [words()]),
    "transformer_masked_softmax": (partial(attention.Transformer, "masked"), [words(), ("bool", (2 * HEADS, LENGTH, LENGTH))]),
    "transformer_where": (partial(attention.Transformer, "where"), [words(), ("bool", (2 * HEADS, 1, LENGTH))]),
    "bert": (attention.Bert, [words(), ("int32", (2, LENGTH), 0, 2), LENGTHS, ("int32", (2, 3), 0, LENGTH)]),
    "bert_picking": (attention.Picking, [words(), ("int32", (2, 3), 0, LENGTH)]),
    "translator": (attention.Translator, [words(), LENGTHS, words()]),
    "vision_transformer": (attention.Patches, [image(16, 3)]),
    "text_cnn": (sequences.TextCnn, [words()]),
    "text_birnn": (lambda: chain(nn.Embedding(VOCABULARY, 8), rnn.LSTM(UNITS, 2, layout="NTC",
                                 bidirectional=True), nn.Dense(2)), [words()]),
    "entailment": (sequences.Entailment, [words(), words()]),
    "skip_gram": (lambda: Function(lambda a, b, x, y: npx.batch_dot(a(x), b(y).swapaxes(1, 2)),
                                   nn.Embedding(VOCABULARY, 8), nn.Embedding(VOCABULARY, 8)),
                  [words(1), words()]),
    "matrix_factors": (lambda: Function(
        lambda p, q, b, c, x, y: (p(x) * q(y)).sum(axis=1) + np.squeeze(b(x)) + np.squeeze(c(y)),
        *(nn.Embedding(VOCABULARY, n) for n in (8, 8, 1, 1))), [USERS, USERS]),
    "auto_rec": (lambda: chain(nn.Dense(8, activation="sigmoid"), nn.Dropout(0.1), nn.Dense(8)), [ROWS]),
    "neural_factors": (sequences.NeuralFactors, [USERS, USERS]),
    "caser": (sequences.Caser, [("int32", (2, 1)), words(), ("int32", (2, 1))]),
    "factorization_machine": (partial(sequences.Factorization, False), [words()]),
    "deep_fm": (partial(sequences.Factorization, True), [words()]),
    "einsum": (lambda: Function(attention.einsums), [FEATURES] * 3),
    "statistics": (lambda: Function(sequences.statistics), [ROWS]),
}  # fmt: skip


def import_book():
    """The package of Dive into Deep Learning, with blocks that can be exported."""
    gluon.nn.Block, gluon.nn.Sequential = nn.HybridBlock, nn.HybridSequential
    from d2l import mxnet as book

    def add_positions(self, x):
        return x + self.table.data()[:, : x.shape[1], :]

    make = book.PositionalEncoding.__init__

    def keep_positions(self, units, dropout, max_len=1000):
        make(self, units, dropout, 20)
        self.table = gluon.Constant(self.P)

    book.PositionalEncoding.__init__ = keep_positions
    book.PositionalEncoding.forward = add_positions
    return book


STATES = ("float32", (2, LENGTH, UNITS))
BOOK = {  # networks of the package
    "book_lenet": (lambda d2l: d2l.LeNet().net, [image()]),
    "book_resnet18": (lambda d2l: d2l.resnet18(10), [image(32, 3)]),
    "book_residual": (lambda d2l: chain(d2l.Residual(8, True, 2), d2l.Residual(8)), [image(16, 3)]),
    "book_resnext": (lambda d2l: d2l.ResNeXtBlock(16, 4, 1, True, 2), [image(16, 3)]),
    "book_softmax_regression": (lambda d2l: d2l.SoftmaxRegression(10, 0.1).net, [image()]),
    "book_linear_regression": (lambda d2l: d2l.LinearRegression(0.1).net, [ROWS]),
    "book_rnn": (lambda d2l: Function(lambda rnn, x: rnn(x), d2l.RNN(UNITS).rnn), [("float32", (LENGTH, 2, 8))]),
    "book_gru": (lambda d2l: Function(lambda rnn, x: rnn(x), d2l.GRU(UNITS, 2).rnn), [("float32", (LENGTH, 2, 8))]),
    "book_dot_product_attention": (lambda d2l: d2l.DotProductAttention(0.1), [STATES] * 3 + [LENGTHS]),
    "book_additive_attention": (lambda d2l: d2l.AdditiveAttention(8, 0.1), [STATES] * 3 + [LENGTHS]),
    "book_multi_head_attention": (lambda d2l: d2l.MultiHeadAttention(UNITS, HEADS, 0.1),
                                  [STATES] * 3 + [LENGTHS]),
    "book_feed_forward": (lambda d2l: d2l.PositionWiseFFN(8, UNITS), [STATES]),
    "book_add_norm": (lambda d2l: d2l.AddNorm(0.1), [STATES] * 2),
    "book_encoder_block": (lambda d2l: d2l.TransformerEncoderBlock(UNITS, 32, HEADS, 0.1),
                           [STATES, LENGTHS]),
    "book_transformer_encoder": (
        lambda d2l: d2l.TransformerEncoder(VOCABULARY, UNITS, 32, HEADS, 2, 0.1), [words(), LENGTHS]),
    "book_mask_lm_mlp": (lambda d2l: d2l.MaskLM(VOCABULARY, UNITS).mlp, [STATES]),
    "book_next_sentence": (lambda d2l: d2l.NextSentencePred(), [ROWS]),
}  # fmt: skip


def names():
    """All networks."""
    return [*NETWORKS, *BOOK, *VISION]


def build(name):
    """The network of that name, and the types and shapes of what it is run on."""
    if name in VISION:
        size = next(n for family, n in SMALLEST.items() if name.startswith(family))
        return vision.get_model(name), [image(size, 3)]
    if name in BOOK:
        make, inputs = BOOK[name]
        return make(import_book()), inputs
    make, inputs = NETWORKS[name]
    return make(), inputs


def draw(generator, dtype, shape, low=0, high=VOCABULARY):
    """Random numbers of a type."""
    if dtype == "bool":
        return generator.randint(0, 4, shape) > 0
    if dtype == "float32" and high == VOCABULARY:
        return generator.standard_normal(shape).astype(dtype)
    return generator.randint(low, high, shape).astype(dtype)


def fill(block, generator):
    """Weights that keep activations in bounds, and statistics that are no identity."""
    for name, parameter in sorted(block.collect_params().items()):
        shape, last = parameter.shape, name.rsplit(".", 1)[-1]
        if last in ("gamma", "running_var"):
            numbers = generator.uniform(0.8, 1.2, shape)
        elif len(shape) > 1:
            numbers = generator.standard_normal(shape) * math.sqrt(
                1.6 / max(onp.prod(shape[1:]), 1)
            )
        else:
            numbers = generator.standard_normal(shape) * 0.1
        parameter.set_data(np.array(numbers.astype("float32")))


def export(name, folder):
    """Write the network's symbol, parameters, inputs and outputs to a folder."""
    generator = onp.random.RandomState(zlib.crc32(name.encode()))
    block, inputs = build(name)
    block.initialize(mx.init.Uniform(0.1))
    values = [draw(generator, *each) for each in inputs]
    arrays = [np.array(x, dtype=x.dtype) for x in values]
    block.hybridize()
    block(*arrays)  # now the shapes are known
    fill(block, generator)
    outputs = block(*arrays)
    block.export(folder + "/" + name)
    names = ["data"] if len(values) == 1 else [f"data{i}" for i in range(len(values))]
    results = flatten(outputs)
    onp.savez(
        folder + "/" + name + ".npz",
        **{
            "x:" + n: x
            for n, x in zip(names, values)  # noqa: B905
        },
        **{f"y{i:02d}": y.asnumpy() for i, y in enumerate(results)},
    )
    return len(results)


def flatten(value):
    """The arrays of a nested result."""
    return (
        [y for part in value for y in flatten(part)]
        if isinstance(value, (list, tuple))
        else [value]
    )
