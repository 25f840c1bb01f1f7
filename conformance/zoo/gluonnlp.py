"""The networks of GluonNLP with random weights, for ``conformance.zoo``.

Networks of 24 layers are built with three: more of the same tell nothing more.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from conformance.zoo import gluonnlp_blocks as blocks
from conformance.zoo.compare import Run, Sample
from serde.bridges.mxnet import import_mxnet

WORDS, LENGTH, MORE, UNITS = 300, 12, 17, 512
Inputs = Mapping[str, np.ndarray[Any, Any]]
Made = tuple[Any, Mapping[str, Sequence[int | str]]]  # a block, and what its inputs look like


def vocabulary() -> Any:
    import gluonnlp

    words = Counter({f"word{i}": WORDS - i for i in range(WORDS)})
    return gluonnlp.vocab.BERTVocab(words)


def transformer(name: str, layers: int, *inputs: str, **options: Any) -> Made:
    """A BERT of some kind; its inputs are tokens, token types and lengths."""
    from gluonnlp.model import bert

    kind = bert.bert_hparams
    kind[name]["num_layers"] = layers
    factory = getattr(bert, name)
    block, _ = factory(dataset_name=None, vocab=vocabulary(), pretrained=False, **options)
    shapes = {"tokens": ("N", "T"), "types": ("N", "T"), "length": ("N",), "places": ("N", 3)}
    return block, {i: shapes[i] for i in inputs}


def recurrent(name: str) -> Made:
    """A language model: tokens by time and sample; the states begin with zeros."""
    from gluonnlp.model import language_model

    still = {"dropout": 0.0} if name.startswith("standard") else {}  # its dropout takes no symbols
    block, _ = getattr(language_model, name)(vocab=vocabulary(), pretrained=False, **still)
    return block, {"tokens": ("T", "N")}


def coders() -> Any:
    """The parts of transformer_en_de_512: the encoder, the decoder, and its single step."""
    from gluonnlp.model import transformer as module

    return module.get_transformer_encoder_decoder(
        num_layers=6, units=UNITS, hidden_size=2048, num_heads=8, max_src_length=60,
        max_tgt_length=60,
    )  # fmt: skip


def encoder_decoder(part: str) -> Made:
    encoder, decoder, step = coders()
    vectors, memory = {"vectors": ("N", "T", UNITS)}, {"memory": ("N", "S", UNITS)}
    if part == "encoder":
        return encoder, vectors
    if part == "decoder":
        return blocks.around(decoder, blocks.decode), vectors | memory
    step = blocks.around(step, blocks.decoded_step)
    return step, {"vector": ("N", UNITS)} | vectors | memory


def translator() -> Made:
    """Encoder, decoder and embeddings, reading tokens and lengths of both languages."""
    from gluonnlp.model.translation import NMTModel

    words = vocabulary()
    block = NMTModel(words, words, *coders(), embed_size=UNITS, share_embed=True, tie_weights=True)
    block = blocks.around(block, blocks.translate)
    return block, {"tokens": ("N", "T"), "target": ("N", "S"), "length": ("N",), "ends": ("N",)}


def projected_lstm(name: str) -> Made:
    """A language model of LSTM cells with projections, whose states are inputs."""
    from gluonnlp.model import language_model

    block, _ = getattr(language_model, name)(vocab=vocabulary())
    block = blocks.around(block, blocks.unroll(LENGTH))
    return block, {"tokens": (LENGTH, "N"), "hidden": ("N", UNITS), "cell": ("N", 2048)}


def of_letters(name: str) -> Made:
    """ELMo; the sizes in its name are those of its states."""
    from gluonnlp.model import elmo

    block, _ = getattr(elmo, name)()
    cell, hidden = (int(n) for n in name.partition("_2x")[2].split("_")[:2])
    block = blocks.around(block, blocks.embed)
    return block, {
        "letters": ("N", "T", 50), "hidden": ("N", hidden), "cell": ("N", cell)
    }  # fmt: skip


def generative() -> Made:
    """GPT-2 of 117 million parameters, all but the vocabulary's."""
    return blocks.generative(12, 768, 12, WORDS, 1024), {"tokens": ("N", "T")}


BERT = ("tokens", "types", "length")
NETWORKS: Mapping[str, Callable[[], Made]] = {
    "bert_12_768_12": partial(
        transformer, "bert_12_768_12", 12, *BERT, use_decoder=False, use_classifier=False
    ),
    "bert_12_768_12 with its heads": partial(
        transformer, "bert_12_768_12", 2, *BERT, "places", use_decoder=True, use_classifier=True
    ),
    "bert_24_1024_16": partial(
        transformer, "bert_24_1024_16", 3, *BERT, use_decoder=False, use_classifier=False
    ),
    "roberta_12_768_12": partial(
        transformer, "roberta_12_768_12", 12, "tokens", "length", use_decoder=False
    ),
    "roberta_24_1024_16": partial(
        transformer, "roberta_24_1024_16", 3, "tokens", "length", use_decoder=False
    ),
    "distilbert_6_768_12": partial(transformer, "distilbert_6_768_12", 6, "tokens", "length"),
    "ernie_12_768_12": partial(
        transformer, "ernie_12_768_12", 12, *BERT, use_decoder=False, use_classifier=False
    ),
    **{
        name: partial(recurrent, name)
        for name in (
            "standard_lstm_lm_200", "standard_lstm_lm_650", "standard_lstm_lm_1500",
            "awd_lstm_lm_600", "awd_lstm_lm_1150",
        )
    },
    "transformer_en_de_512 encoder": partial(encoder_decoder, "encoder"),
    "transformer_en_de_512 decoder": partial(encoder_decoder, "decoder"),
    "transformer_en_de_512 decoder, one step": partial(encoder_decoder, "step"),
    "transformer_en_de_512": translator,
    "big_rnn_lm_2048_512": partial(projected_lstm, "big_rnn_lm_2048_512"),
    **{
        name: partial(of_letters, name)
        for name in (
            "elmo_2x1024_128_2048cnn_1xhighway", "elmo_2x2048_256_2048cnn_1xhighway",
            "elmo_2x4096_512_2048cnn_2xhighway",
        )
    },
    "gpt2_117m, of the library's cells": generative,
}  # fmt: skip


def names() -> list[str]:
    """Every network."""
    return list(NETWORKS)


def sample(name: str, folder: Path) -> Sample:
    """Build the network of that name, export it into ``folder``, and make inputs for it."""
    mx = import_mxnet()
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    mx.random.seed(1)
    with mx.name.NameManager():
        block, shapes = NETWORKS[name]()
    block.initialize(mx.init.Normal(0.05))
    sizes = [{"N": 1, "T": LENGTH, "S": MORE}, {"N": 2, "T": MORE, "S": LENGTH}]
    names = ["data"] if len(shapes) == 1 else [f"data{i}" for i in range(len(shapes))]
    feeds = [
        {n: draw(i, s, dims, generator) for n, (i, s) in zip(names, shapes.items(), strict=True)}
        for dims in sizes
    ]
    block.hybridize()
    block(*(mx.nd.array(x) for x in feeds[0].values()))
    prefix = folder / name.replace(" ", "_")
    block.export(str(prefix))
    named = dict(zip(names, shapes.values(), strict=True))
    return Sample(prefix, feeds[0], [Run(feeds[1], named)])


def draw(
    name: str, shape: Sequence[int | str], sizes: Mapping[str, int], generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    """An input of that name."""
    dims = [sizes.get(d, d) for d in shape]  # type: ignore[arg-type]
    if name in ("vector", "vectors", "memory", "hidden", "cell"):
        return generator.standard_normal(dims, np.float32)
    high = {
        "tokens": WORDS, "target": WORDS, "types": 2, "places": sizes["T"], "letters": 262,
        "length": sizes["T"] + 1, "ends": sizes["S"] + 1,
    }[name]  # fmt: skip
    return generator.integers(name in ("length", "ends"), high, dims).astype("float32")
