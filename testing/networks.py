"""Real MXNet networks with seeded weights, for tests and benchmarks to convert."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from testing.mxnet_live import live_mxnet

SAMPLES = 3  # how many samples the inputs of a built network hold
VOCABULARY, UNITS, LENGTH = 50, 32, 7
HEADS, MAX_LENGTH = 4, 16

VISION = {  # name: the image size the network is meant for
    "alexnet": 224,
    **{f"densenet{n}": 224 for n in (121, 161, 169, 201)},
    "inceptionv3": 299,
    **{f"mobilenet{m}": 224 for m in ("1.0", "0.75", "0.5", "0.25")},
    **{f"mobilenetv2_{m}": 224 for m in ("1.0", "0.75", "0.5", "0.25")},
    **{f"resnet{n}_v{v}": 224 for v in (1, 2) for n in (18, 34, 50, 101, 152)},
    **{f"squeezenet1.{n}": 224 for n in (0, 1)},
    **{f"vgg{n}{bn}": 224 for n in (11, 13, 16, 19) for bn in ("", "_bn")},
}
SMALLEST = {  # by the letters a name starts with: a small image the network still makes sense of
    "alexnet": 63,
    "densenet": 221,
    "inceptionv": 299,
    "mobilenet": 32,
    "resnet": 32,
    "squeezenet": 213,
    "vgg": 32,
}


@dataclass(frozen=True)
class Network:
    """A Gluon block and sample inputs for it, in call order and by their exported names.

    ``batch_axis`` holds the axis of each input that counts samples.
    """

    name: str
    kind: str
    block: Any
    inputs: Mapping[str, np.ndarray]
    batch_axis: Mapping[str, int]


def build(name: str, size: int | None = None) -> Network:
    """The network of that name; ``size`` is the image size, if not the one it is meant for.

    The weights depend on nothing but the name and, through the batch statistics, ``size``.
    """
    with live_mxnet().name.NameManager():  # else the names count the blocks made so far
        network = NETWORKS[name](name) if size is None else NETWORKS[name](name, size=size)
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    _draw_weights(network, generator)
    _calibrate(network, generator)
    return network


def smallest(name: str) -> int:
    """The image size to run the vision network of that name on where speed matters."""
    return next(size for family, size in SMALLEST.items() if name.startswith(family))


def feeds(network: Network, batch: int) -> dict[str, np.ndarray]:
    """The inputs of the network with the given number of samples, repeated if need be."""
    picked = np.arange(batch) % SAMPLES
    return {n: np.take(x, picked, network.batch_axis[n]) for n, x in network.inputs.items()}


def shapes(network: Network) -> dict[str, tuple[int | str, ...]]:
    """The shape of each input, with ``"N"`` where the samples are counted."""
    return {
        name: tuple("N" if i == network.batch_axis[name] else d for i, d in enumerate(x.shape))
        for name, x in network.inputs.items()
    }


def export(network: Network, folder: Path | str) -> tuple[Path, Path]:
    """Write the symbol and the parameters of the network into ``folder``; their paths.

    Where ``fix_gamma`` is set the stored gamma is not 1, as in files of other trainers: MXNet
    ignores it, and overwrites it with ones whenever the block runs.
    """
    network.block.hybridize()
    compute(network, feeds(network, 1))  # a block can be exported once it has run hybridized
    for layer in _batch_norms(network.block):
        if layer._kwargs["fix_gamma"]:
            layer.gamma.set_data(live_mxnet().nd.full(layer.gamma.shape, 1.5))
    path = Path(folder) / network.name
    network.block.export(str(path), epoch=0)
    return path.with_name(f"{path.name}-symbol.json"), path.with_name(f"{path.name}-0000.params")


def compute(network: Network, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What the network computes in inference mode."""
    nd = live_mxnet().nd
    result = network.block(*(nd.array(feeds[n], dtype=feeds[n].dtype) for n in network.inputs))
    return [y.asnumpy() for y in (result if isinstance(result, list | tuple) else [result])]


def load_params(path: Path | str) -> dict[str, np.ndarray]:
    """The arrays of a ``.params`` file under their plain names, arguments and states together."""
    arrays = live_mxnet().nd.load(str(path))
    named = dict(arrays)  # a file without arrays loads as an empty list
    return {name.partition(":")[2]: array.asnumpy() for name, array in named.items()}


def _draw_weights(network: Network, generator: np.random.Generator) -> None:
    """Fill the parameters so that activations neither die nor explode, and no bias is zero."""
    mx = live_mxnet()
    network.block.infer_shape(*(mx.nd.array(x, dtype=x.dtype) for x in network.inputs.values()))
    network.block.initialize(mx.init.Zero())
    for name, param in network.block.collect_params().items():
        if name.endswith(("gamma", "running_var")):
            values = generator.uniform(0.5, 1.5, param.shape)
        elif name.endswith("weight"):
            values = generator.standard_normal(param.shape, np.float32)
            values *= math.sqrt(2 / math.prod(param.shape[1:]))  # He et al. 2015
        else:
            values = generator.normal(0, 0.1, param.shape)
        param.set_data(mx.nd.array(values))


def _calibrate(network: Network, generator: np.random.Generator) -> None:
    """Set the moving statistics of each BatchNorm near those of its whole input for one sample.

    They are not taken channel by channel: a channel of one pixel has no variance.
    """
    mx = live_mxnet()

    def set_statistics(layer: Any, inputs: tuple[Any, ...]) -> None:
        x = inputs[0].asnumpy()
        means = x.mean() + x.std() * generator.normal(0, 0.3, x.shape[1])
        layer.running_mean.set_data(mx.nd.array(means))
        layer.running_var.set_data(x.var() * layer.running_var.data())

    hooks = [n.register_forward_pre_hook(set_statistics) for n in _batch_norms(network.block)]
    if hooks:
        compute(network, feeds(network, 1))
    for hook in hooks:
        hook.detach()


def _batch_norms(block: Any) -> list[Any]:
    layers: list[Any] = []
    norm = live_mxnet().gluon.nn.BatchNorm
    block.apply(lambda layer: layers.append(layer) if isinstance(layer, norm) else None)
    return layers


def _vision(name: str, size: int | None = None) -> Network:
    size = VISION[name] if size is None else size
    images = np.random.default_rng(1).standard_normal((SAMPLES, 3, size, size), np.float32)
    block = live_mxnet().gluon.model_zoo.vision.get_model(name)
    return Network(name, "vision", block, {"data": images}, {"data": 0})


def _language_model(
    name: str,
    *,
    cell: str = "LSTM",
    layers: int = 1,
    layout: str = "TNC",
    explicit: bool = False,
    tied: bool = False,
    **options: Any,
) -> Network:
    """Embedding, recurrent layers and a decoder; ``explicit`` states go in and come out."""
    gluon = live_mxnet().gluon

    class LanguageModel(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.embedding = gluon.nn.Embedding(VOCABULARY, UNITS)
                self.dropout = gluon.nn.Dropout(0.2)
                make = getattr(gluon.rnn, cell)
                self.rnn = make(UNITS, layers, layout=layout, dropout=0.1 * (layers > 1), **options)
                shared = self.embedding.params if tied else None
                self.decoder = gluon.nn.Dense(VOCABULARY, flatten=False, params=shared)

        def hybrid_forward(self, F: Any, tokens: Any, *states: Any) -> Any:
            x = self.dropout(self.embedding(tokens))
            if not states:
                return self.decoder(self.dropout(self.rnn(x)))
            y, new_states = self.rnn(x, list(states))
            return [self.decoder(self.dropout(y)), *new_states]

    generator = np.random.default_rng(1)
    batch_axis = layout.index("N")
    shape = (SAMPLES, LENGTH) if batch_axis == 0 else (LENGTH, SAMPLES)
    tokens = generator.integers(VOCABULARY, size=shape).astype(np.float32)
    if not explicit:
        return Network(name, "language", LanguageModel(), {"data": tokens}, {"data": batch_axis})
    directions = 2 if options.get("bidirectional") else 1
    shape = (layers * directions, SAMPLES, UNITS)
    inputs = {"data0": tokens}
    for i in range(1, 3 if cell == "LSTM" else 2):
        inputs[f"data{i}"] = generator.standard_normal(shape, np.float32)
    axes = dict.fromkeys(inputs, 1) | {"data0": batch_axis}
    return Network(name, "language", LanguageModel(), inputs, axes)


LANGUAGE: dict[str, dict[str, Any]] = {
    "lstm": {},
    "lstm_ntc_2": {"layers": 2, "layout": "NTC"},
    "lstm_bidirectional": {"layers": 2, "bidirectional": True},
    "lstm_states": {"layers": 2, "explicit": True},
    "lstm_tied": {"tied": True},
    "gru": {"cell": "GRU"},
    "gru_ntc_2": {"cell": "GRU", "layers": 2, "layout": "NTC"},
    "gru_bidirectional": {"cell": "GRU", "bidirectional": True, "explicit": True},
    "gru_states": {"cell": "GRU", "layout": "NTC", "explicit": True},
    "rnn_relu": {"cell": "RNN", "activation": "relu"},
    "rnn_tanh_2": {"cell": "RNN", "activation": "tanh", "layers": 2, "layout": "NTC"},
}


def _attention(form: str, masking: str) -> Any:
    """Multi-head self-attention over ``x``, ``(N, T, C)`` or, interleaved, ``(T, N, C)``."""
    gluon = live_mxnet().gluon
    interleaved, scale = form == "interleaved", math.sqrt(UNITS // HEADS)

    class Attention(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                for name in ("query", "key", "value"):
                    weight = self.params.get(f"{name}_weight", shape=(UNITS, UNITS))
                    bias = self.params.get(f"{name}_bias", shape=(UNITS,))
                    setattr(self, f"{name}_weight", weight)
                    setattr(self, f"{name}_bias", bias)
                self.dropout = gluon.nn.Dropout(0.1)
                self.output = gluon.nn.Dense(UNITS, flatten=False, in_units=UNITS)

        def hybrid_forward(self, F: Any, x: Any, mask: Any, **params: Any) -> Any:
            q, k, v = (
                [params[f"{name}_{part}"] for part in ("weight", "bias")]
                for name in ("query", "key", "value")
            )
            attend = self.attend_interleaved if interleaved else self.batch_dot
            return self.output(attend(F, x, mask, q, k, v))

        def attend_interleaved(self, F: Any, x: Any, mask: Any, *projections: Any) -> Any:
            weights = [F.reshape(w, (HEADS, -1, 0), reverse=True) for w, _ in projections]
            weight = F.reshape(F.concat(*weights, dim=-2), (-1, 0), reverse=True)
            biases = [F.reshape(b, (HEADS, -1)) for _, b in projections]
            bias = F.reshape(F.stack(*biases, axis=1), -1)
            qkv = F.FullyConnected(x, weight, bias, num_hidden=3 * UNITS, flatten=False)
            scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=HEADS)
            shares = self.shares(F, scores, mask)
            return F.contrib.interleaved_matmul_selfatt_valatt(qkv, shares, heads=HEADS)

        def batch_dot(self, F: Any, x: Any, mask: Any, *projections: Any) -> Any:
            def per_head(weight: Any, bias: Any) -> Any:
                y = F.FullyConnected(x, weight, bias, num_hidden=UNITS, flatten=False)
                y = F.transpose(F.reshape(y, (0, 0, HEADS, -1)), (0, 2, 1, 3))
                return F.reshape(y, (-1, 0, 0), reverse=True)

            q, k, v = (per_head(*projection) for projection in projections)
            shares = self.shares(F, F.batch_dot(q / scale, k, transpose_b=True), mask)
            y = F.reshape(F.batch_dot(shares, v), (-1, HEADS, 0, 0), reverse=True)
            return F.reshape(F.transpose(y, (0, 2, 1, 3)), (0, 0, -1))

        def shares(self, F: Any, scores: Any, mask: Any) -> Any:
            if masking == "length":  # mask: (N * heads, T) times the number of valid tokens
                return self.dropout(F.softmax(scores, mask, use_length=True, axis=-1))
            mask = F.broadcast_like(mask, scores)
            scores = F.where(mask, scores, -1e9 * F.ones_like(scores))
            return self.dropout(F.softmax(scores, axis=-1) * mask)

    return Attention()


def _encoder(name: str, *, form: str, masking: str, positions: str, dtype: str) -> Network:
    """A BERT-like encoder: outputs per token, and the first token's through the pooler."""
    gluon = live_mxnet().gluon
    nn, time_major = gluon.nn, form == "interleaved"
    time_axis, layers = (0 if time_major else 1), 2

    class Layer(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.attention = _attention(form, masking)
                self.norm1, self.norm2 = nn.LayerNorm(epsilon=1e-12), nn.LayerNorm()
                self.inner = nn.Dense(4 * UNITS, flatten=False)
                self.outer = nn.Dense(UNITS, flatten=False)
                self.dropout = nn.Dropout(0.1)

        def hybrid_forward(self, F: Any, x: Any, mask: Any) -> Any:
            x = self.norm1(self.dropout(self.attention(x, mask)) + x)
            y = F.LeakyReLU(self.inner(x), act_type="gelu")
            return self.norm2(self.dropout(self.outer(y)) + x)

    class Encoder(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.word, self.segment = nn.Embedding(VOCABULARY, UNITS), nn.Embedding(2, UNITS)
                self.position_weight = self.params.get("position_weight", shape=(MAX_LENGTH, UNITS))
                self.norm, self.dropout = nn.LayerNorm(epsilon=1e-12), nn.Dropout(0.1)
                self.layers = nn.HybridSequential()
                self.layers.add(*(Layer() for _ in range(layers)))
                self.pooler = nn.Dense(UNITS, activation="tanh", flatten=False)

        def hybrid_forward(
            self, F: Any, tokens: Any, segments: Any, valid: Any, position_weight: Any
        ) -> Any:
            x = self.word(tokens) + self.segment(segments)
            if time_major:
                x = F.swapaxes(x, 0, 1)
            steps = F.contrib.arange_like(x, axis=time_axis)
            if positions == "lookup":
                place = F.Embedding(steps, position_weight, MAX_LENGTH, UNITS)
                place = F.expand_dims(place, 1 - time_axis)
            else:
                place = F.expand_dims(position_weight, 1 - time_axis)
                place = F.slice_like(place, x, axes=(time_axis,))
            x = self.dropout(self.norm(F.broadcast_add(x, place)))
            mask = self.mask(F, steps, valid)
            for layer in self.layers:
                x = layer(x, mask)
            first = F.slice_axis(x, axis=time_axis, begin=0, end=1)
            return x, self.pooler(F.reshape(first, (-1, UNITS)))

        def mask(self, F: Any, steps: Any, valid: Any) -> Any:
            if masking == "where":
                valid = F.reshape(F.cast(valid, "float32"), (-1, 1))
                mask = F.broadcast_lesser(F.reshape(steps, (1, -1)), valid)
                return F.expand_dims(F.repeat(mask, repeats=HEADS, axis=0), 1)
            zeros = F.expand_dims(F.zeros_like(steps), 0)
            lengths = F.cast(F.broadcast_add(F.expand_dims(valid, 1), zeros), "int32")
            lengths = F.broadcast_axis(F.expand_dims(lengths, 1), axis=1, size=HEADS)
            return F.reshape(lengths, (-1, 0), reverse=True)

    generator = np.random.default_rng(1)
    inputs = {
        "data0": generator.integers(VOCABULARY, size=(SAMPLES, LENGTH)).astype(dtype),
        "data1": generator.integers(2, size=(SAMPLES, LENGTH)).astype(dtype),
        "data2": np.array([LENGTH - 2, 1, LENGTH], "float32"),
    }
    return Network(name, "encoder", Encoder(), inputs, dict.fromkeys(inputs, 0))


ENCODERS: dict[str, dict[str, str]] = {
    "bert_batch_dot": {
        "form": "batch_dot",
        "masking": "length",
        "positions": "lookup",
        "dtype": "float32",
    },
    "bert_batch_dot_where": {
        "form": "batch_dot",
        "masking": "where",
        "positions": "slice",
        "dtype": "int32",
    },
    "bert_interleaved": {
        "form": "interleaved",
        "masking": "length",
        "positions": "lookup",
        "dtype": "float32",
    },
    "bert_interleaved_where": {
        "form": "interleaved",
        "masking": "where",
        "positions": "slice",
        "dtype": "int32",
    },
}

NETWORKS: dict[str, Callable[..., Network]] = {
    **dict.fromkeys(VISION, _vision),
    **{name: partial(_language_model, **options) for name, options in LANGUAGE.items()},
    **{name: partial(_encoder, **options) for name, options in ENCODERS.items()},
}
