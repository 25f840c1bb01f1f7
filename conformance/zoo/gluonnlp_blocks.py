"""Blocks of tensors around GluonNLP's models that read lists, states or vectors of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from serde.bridges.mxnet import import_mxnet


def around(inner: Any, forward: Callable[..., Any]) -> Any:
    """A block with the parameters of ``inner`` that computes ``forward(inner, F, *tensors)``."""
    gluon = import_mxnet().gluon

    class Around(gluon.HybridBlock):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            is_hybrid = isinstance(inner, gluon.HybridBlock)
            for child in [inner] if is_hybrid else inner._children.values():
                self.register_child(child)

        def hybrid_forward(self, F: Any, *tensors: Any) -> Any:
            return forward(inner, F, *tensors)

    return Around()


def decode(decoder: Any, F: Any, vectors: Any, memory: Any) -> Any:
    """A whole sequence, without masks."""
    return decoder(vectors, [memory, None])[0]


def decoded_step(decoder: Any, F: Any, vector: Any, before: Any, memory: Any) -> Any:
    """One step of a decoder that remembers the vectors it was given."""
    gluon = import_mxnet().gluon
    vectors = F.concat(before, F.expand_dims(vector, axis=1), dim=1)
    step, states, _ = gluon.HybridBlock.forward(decoder, vectors, [memory, None])
    return step, states[0]


def translate(model: Any, F: Any, source: Any, target: Any, lengths: Any, ends: Any) -> Any:
    """The scores of a target sequence's next words, both sequences padded."""
    memory, _ = model.encoder(model.src_embed(source), None, lengths)
    steps = F.contrib.arange_like(memory, axis=1)
    mask = F.broadcast_lesser(F.reshape(steps, (1, -1)), F.reshape(lengths, (-1, 1)))
    outputs, _, _ = model.decoder(model.tgt_embed(target), [memory, mask], ends)
    return model.tgt_proj(outputs)


def unroll(length: int) -> Callable[..., Any]:
    """A language model of cells, for sequences of one length, and its first states."""

    def forward(model: Any, F: Any, tokens: Any, hidden: Any, cell: Any) -> Any:
        outputs, states = model.encoder.unroll(
            length, model.embedding(tokens), [hidden, cell], layout="TNC", merge_outputs=True
        )
        return F.reshape_like(
            model.decoder(F.reshape(outputs, (-1, 0), reverse=True)), outputs, lhs_begin=0,
            lhs_end=1, rhs_begin=0, rhs_end=2,
        ), *states  # fmt: skip

    return forward


def embed(model: Any, F: Any, letters: Any, hidden: Any, cell: Any) -> Any:
    """ELMo's layers, which all begin with the same states; with a mask it makes no symbol."""
    begin = [[[hidden, cell] for _ in range(model._num_layers)] for _ in range(2)]
    layers, states = model(letters, begin)
    return [*layers, *(s for side in states for layer in side for s in layer)]


def generative(layers: int, units: int, heads: int, words: int, length: int) -> Any:
    """GPT-2 of GluonNLP's own cells: its own class is not in the wheel, but among the scripts."""
    from gluonnlp.model.attention_cell import DotProductAttentionCell, MultiHeadAttentionCell
    from gluonnlp.model.block import GELU

    mx = import_mxnet()
    nn = mx.gluon.nn

    class Layer(mx.gluon.HybridBlock):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.norms = [nn.LayerNorm(), nn.LayerNorm()]
                self.attention = MultiHeadAttentionCell(
                    DotProductAttentionCell(scaled=True), units, units, units, heads
                )
                self.merge = nn.Dense(units, flatten=False)
                self.wide = nn.Dense(4 * units, flatten=False)
                self.activation = GELU(approximate=True)
                self.narrow = nn.Dense(units, flatten=False)
            for norm in self.norms:
                self.register_child(norm)

        def hybrid_forward(self, F: Any, x: Any, mask: Any) -> Any:
            y = self.norms[0](x)
            x = x + self.merge(self.attention(y, y, y, mask)[0])
            y = self.norms[1](x)
            return x + self.narrow(self.activation(self.wide(y)))

    class Generative(mx.gluon.HybridBlock):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.words = nn.Embedding(words, units)
                self.places = nn.Embedding(length, units)
                self.layers = [Layer() for _ in range(layers)]
                self.norm = nn.LayerNorm()
                self.scores = nn.Dense(
                    words, flatten=False, use_bias=False, params=self.words.params
                )
            for layer in self.layers:
                self.register_child(layer)

        def hybrid_forward(self, F: Any, tokens: Any) -> Any:
            steps = F.contrib.arange_like(tokens, axis=1)
            x = F.broadcast_add(self.words(tokens), F.expand_dims(self.places(steps), axis=0))
            mask = F.broadcast_lesser_equal(
                F.reshape(steps, (1, 1, -1)), F.reshape(steps, (1, -1, 1))
            )
            mask = F.broadcast_like(mask, tokens, lhs_axes=(0,), rhs_axes=(0,))
            for layer in self.layers:
                x = layer(x, mask)
            return self.scores(self.norm(x))

    return Generative()
