"""The prediction networks of GluonTS with random weights, for ``conformance.zoo``."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.zoo.compare import Run, Sample
from serde.bridges.mxnet import import_mxnet

AHEAD, PAST, SERIES, CARDINALITY = 6, 12, 5, 3
LAGS = [1, 2, 7]
BINS = 32
Shapes = Mapping[str, Sequence[int | str]]
DAILY: Mapping[str, Any] = {"freq": "D", "prediction_length": AHEAD}


def feed_forward(module: Any) -> tuple[Any, Shapes]:
    """It gives the parameters of a distribution, and leaves the samples to others."""
    factory = module.simple_feedforward.SimpleFeedForwardEstimator
    estimator = factory(**DAILY, context_length=PAST, sampling=False)
    return estimator, {"past_target": ("N", PAST)}


def sampling_feed_forward(module: Any) -> tuple[Any, Shapes]:
    factory = module.simple_feedforward.SimpleFeedForwardEstimator
    return factory(**DAILY, context_length=PAST), {"past_target": ("N", PAST)}


def n_beats(module: Any) -> tuple[Any, Shapes]:
    estimator = module.n_beats.NBEATSEstimator(**DAILY, context_length=PAST, num_stacks=4)
    return estimator, dict.fromkeys(("past_target", "past_observed_values"), ("N", PAST))


def lstnet(module: Any) -> tuple[Any, Shapes]:
    estimator = module.lstnet.LSTNetEstimator(
        **DAILY, context_length=24, num_series=SERIES, skip_size=3, ar_window=6, channels=6
    )
    return estimator, dict.fromkeys(("past_target", "past_observed_values"), ("N", SERIES, 24))


def forking(name: str) -> Callable[[Any], tuple[Any, Shapes]]:
    def make(module: Any) -> tuple[Any, Shapes]:
        estimator = getattr(module.seq2seq, name)(**DAILY, context_length=PAST)
        return estimator, {
            "past_target": ("N", PAST, 1), "past_feat_dynamic": ("N", PAST, 1),
            "future_feat_dynamic": ("N", PAST, AHEAD, 1), "feat_static_cat": ("N", 1),
            "past_observed_values": ("N", PAST, 1),
        }  # fmt: skip

    return make


def fusion(module: Any) -> tuple[Any, Shapes]:
    factory = module.tft.TemporalFusionTransformerEstimator
    estimator = factory(**DAILY, context_length=PAST)
    return estimator, {
        "past_target": ("N", PAST), "past_observed_values": ("N", PAST),
        "past_feat_dynamic_real": ("N", PAST, 1), "past_feat_dynamic_cat": ("N", PAST, 1),
        "feat_dynamic_real": ("N", PAST + AHEAD, len(estimator.time_features)),
        "feat_dynamic_cat": ("N", PAST + AHEAD, 1), "feat_static_real": ("N", 1),
        "feat_static_cat": ("N", 1),
    }  # fmt: skip


def deep_ar(module: Any) -> tuple[Any, Shapes]:
    estimator = module.deepar.DeepAREstimator(
        **DAILY, context_length=PAST, lags_seq=LAGS, num_parallel_samples=4
    )
    return estimator, autoregressive(estimator)


def transformer(module: Any) -> tuple[Any, Shapes]:
    estimator = module.transformer.TransformerEstimator(
        **DAILY, context_length=PAST, lags_seq=LAGS, num_parallel_samples=4
    )
    shapes = autoregressive(estimator)
    order = ("feat_static_cat", "past_time_feat", "past_target", "past_observed_values",
             "future_time_feat")  # fmt: skip
    return estimator, {n: shapes[n] for n in order}


def autoregressive(estimator: Any) -> Shapes:
    """What networks read that feed their samples back to themselves."""
    features, history = len(estimator.time_features) + 1, PAST + max(LAGS)
    return {
        "feat_static_cat": ("N", 1), "feat_static_real": ("N", 1),
        "past_time_feat": ("N", history, features), "past_target": ("N", history),
        "past_observed_values": ("N", history), "future_time_feat": ("N", AHEAD, features),
        "past_is_pad": ("N", history),
    }  # fmt: skip


def wavenet(temperature: float) -> Callable[[Any], tuple[Any, Shapes]]:
    """It reads the places of its target among bins; of no temperature, it takes the likeliest."""

    def make(module: Any) -> tuple[Any, Shapes]:
        estimator = module.wavenet.WaveNetEstimator(
            **DAILY, num_parallel_samples=4, temperature=temperature, num_bins=BINS, n_residue=8,
            n_skip=8,
        )  # fmt: skip
        past, features = estimator.context_length, 4  # three of the day, and the age
        return estimator, {
            "feat_static_cat": ("N", 1), "bins": ("N", past), "past_observed_values": ("N", past),
            "past_time_feat": ("N", features, past), "future_time_feat": ("N", features, AHEAD),
            "scale": ("N", 1),
        }  # fmt: skip

    return make


NETWORKS: Mapping[str, Callable[[Any], tuple[Any, Shapes]]] = {
    "SimpleFeedForward": feed_forward,
    "SimpleFeedForward, samples": sampling_feed_forward,
    "N-BEATS": n_beats,
    "LSTNet": lstnet,
    "MQ-CNN": forking("MQCNNEstimator"),
    "MQ-RNN": forking("MQRNNEstimator"),
    "TFT": fusion,
    "DeepAR": deep_ar,
    "Transformer": transformer,
    "WaveNet": wavenet(1.0),
    "WaveNet, the likeliest": wavenet(0.0),
}


def names() -> list[str]:
    """Every network."""
    return list(NETWORKS)


def prediction_network(estimator: Any) -> Any:
    """The network that a trained estimator predicts with, as it is before training."""
    from gluonts.transform import Chain

    for kind in type(estimator).__mro__:
        module = sys.modules[kind.__module__]
        if hasattr(module, "copy_parameters"):  # there are none yet
            module.copy_parameters = lambda *args, **options: None
    return estimator.create_predictor(Chain([]), estimator.create_training_network()).prediction_net


def sample(name: str, folder: Path) -> Sample:
    """Build the network of that name, export it into ``folder``, and make inputs for it."""
    mx = import_mxnet()
    import gluonts.model

    for module in (
        "deepar lstnet n_beats seq2seq simple_feedforward tft transformer wavenet"
    ).split():
        __import__(f"gluonts.model.{module}")
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    mx.random.seed(1)
    estimator, shapes = NETWORKS[name](gluonts.model)
    block = prediction_network(estimator)
    block.initialize(mx.init.Normal(0.2))
    names = ["data"] if len(shapes) == 1 else [f"data{i}" for i in range(len(shapes))]
    feeds = [
        {n: draw(i, s, batch, generator) for n, (i, s) in zip(names, shapes.items(), strict=True)}
        for batch in (1, 3)
    ]
    block.hybridize()
    block(*(mx.nd.array(x) for x in feeds[0].values()))
    prefix = folder / "prediction_net"
    block.export(str(prefix))
    read = set(mx.sym.load(f"{prefix}-symbol.json").list_inputs())
    one, more = ({n: x for n, x in arrays.items() if n in read} for arrays in feeds)
    named = {n: s for n, s in zip(names, shapes.values(), strict=True) if n in read}
    return Sample(prefix, one, [Run(more, named)])


def draw(
    name: str, shape: Sequence[int | str], batch: int, generator: np.random.Generator
) -> np.ndarray[Any, Any]:
    """An input of that name: categories are all the first, what was observed is most of it."""
    dims = [batch if d == "N" else int(d) for d in shape]
    if name.endswith("_cat") or name == "past_is_pad":
        return np.zeros(dims, "float32")
    if name == "bins":
        return generator.integers(0, BINS, dims).astype("float32")
    if name == "past_observed_values":
        return (generator.random(dims) < 0.8).astype("float32")
    if name in ("past_target", "scale"):
        return generator.uniform(0.5, 3, dims).astype("float32")
    return generator.standard_normal(dims).astype("float32")
