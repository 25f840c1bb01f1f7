"""Normalisation over a batch, layers, groups and instances; Dropout with them."""

from __future__ import annotations

from serde.decompositions.normalization import train_batch_norm
from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.rewrite.rules import never
from serde.spec.schema import ELEMENT_TYPES

from . import decomposition, downgrades, upgrades
from .common import cast, make_full, require_expandable, reshape_exactly, widen_float


def standardize(g, x: Value, axes, epsilon: float):
    """``x`` less its mean over ``axes``, the mean, and the reciprocal of the deviation."""
    mean = g.ReduceMean(x, axes, keepdims=1)
    centred = g.Sub(x, mean)
    variance = g.ReduceMean(g.Mul(centred, centred), axes, keepdims=1)
    return centred, mean, g.Reciprocal(g.Sqrt(g.Add(variance, epsilon)))


@decomposition(17, "LayerNormalization")
def layer_normalization(
    g, x: Value, scale: Value, b=None, *, axis: int, epsilon: float, stash_type: int
):  # fmt: skip
    stashed = cast(g, x, ELEMENT_TYPES[stash_type])
    centred, mean, inverse = standardize(g, stashed, list(range(axis, x.rank)), epsilon)
    y = g.Mul(cast(g, g.Mul(centred, inverse), x.dtype), scale)
    return y if b is None else g.Add(y, b), mean, inverse


@decomposition(23, "RMSNormalization")
def rms_normalization(g, x: Value, scale: Value, *, axis: int, epsilon: float, stash_type: int):
    stashed = cast(g, x, ELEMENT_TYPES[stash_type])
    square = g.ReduceMean(g.Mul(stashed, stashed), list(range(axis, x.rank)), keepdims=1)
    y = g.Div(stashed, g.Sqrt(g.Add(square, epsilon)))
    return g.Mul(cast(g, y, x.dtype), cast(g, scale, x.dtype))


@decomposition(21, "GroupNormalization")
def group_normalization(
    g, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float, stash_type: int
):
    """Normalise each group as an instance. Opset 18 has the operator, but scales per group."""
    stashed = cast(g, x, ELEMENT_TYPES[stash_type])
    require_expandable(num_groups, "groups", 1 << 20)
    ones, zeros = (g.const([v] * num_groups, stashed.dtype) for v in (1.0, 0.0))
    groups = g.Reshape(stashed, [0, num_groups, -1])
    normal = g.InstanceNormalization(groups, ones, zeros, epsilon=epsilon)
    y = cast(g, reshape_exactly(g, normal, g.Shape(x)), x.dtype)
    behind = list(range(1, x.rank - 1))
    scale, bias = (g.Unsqueeze(v, behind) for v in (scale, bias))
    return g.Add(g.Mul(y, scale), bias)


@decomposition(9, "MeanVarianceNormalization")
def mean_variance_normalization(g, x: Value, *, axes: Ints):
    mean = g.ReduceMean(x, list(axes))
    centred = g.Sub(x, mean)
    deviation = g.Sqrt(g.ReduceMean(g.Mul(centred, centred), list(axes)))
    return g.Div(centred, g.Add(deviation, 1e-9))


@downgrades[15]("BatchNormalization", sizes=never)
def batch_normalization_of_one_type(
    g, x: Value, scale: Value, b: Value, mean: Value, var: Value, *, outputs=1, **rest
):
    """Before opset 15 all operands had one element type."""
    types = {v.dtype for v in (x, scale, b, mean, var)}
    norm_dtype = next((t for t in (DType.FLOAT64, DType.FLOAT32) if t in types), x.dtype)
    operands = (cast(g, v, norm_dtype) for v in (x, scale, b, mean, var))
    results = g.BatchNormalization(*operands, outputs=outputs, **rest)
    y, *running = results if isinstance(results, tuple) else (results,)
    return cast(g, y, x.dtype), *(cast(g, v, mean.dtype) for v in running)


@downgrades[14]("BatchNormalization", sizes=never)
def batch_normalization_in_parts(
    g, x: Value, scale: Value, b: Value, mean: Value, var: Value, *, epsilon: float,
    momentum: float, training_mode: int,
):  # fmt: skip
    """Spell training out: older opsets leave open which variance the running one takes in.

    The variance of halves is a float32: squares of small differences are none of theirs.
    """
    if not training_mode:
        return g.BatchNormalization(x, scale, b, mean, var, epsilon=epsilon, momentum=momentum)
    operands = [widen_float(g, v) for v in (x, scale, b, mean, var)]
    with g.at_opset(18):
        y, *running = train_batch_norm(g, *operands, epsilon=epsilon, momentum=momentum, outputs=3)
    return cast(g, y, x.dtype), *(cast(g, v, mean.dtype) for v in running)


@upgrades[14]("BatchNormalization")
def batch_normalization_mode(g, *operands: Value, outputs=1, **rest):
    """Up to opset 13 the number of outputs selected the statistics of the batch."""
    require(outputs <= 3, "the saved mean and variance of training; opset 14 and later have none")
    return g.BatchNormalization(*operands, training_mode=int(outputs > 1), outputs=outputs, **rest)


@upgrades[9]("BatchNormalization")
def batch_normalization_spatial(
    g, x: Value, scale: Value, b: Value, mean: Value, var: Value, *, epsilon: float, spatial: int,
    outputs=1, **form,
):  # fmt: skip
    """With ``spatial=0`` each activation had statistics of its own."""
    if spatial:
        form |= {"epsilon": epsilon, "outputs": outputs}
        return g.BatchNormalization(x, scale, b, mean, var, **form)
    require(outputs == 1, "training with spatial=0, which no opset after 8 has")
    inverse = g.Reciprocal(g.Sqrt(g.Add(var, epsilon)))
    return g.Add(g.Mul(g.Mul(g.Sub(x, mean), inverse), scale), b)


@upgrades[7]("BatchNormalization")
def batch_normalization_without_is_test(g, *operands: Value, is_test: int, outputs=1, **rest):
    """``is_test`` said what the number of outputs says."""
    return g.BatchNormalization(*operands, outputs=outputs, **rest)


def inference_or_training(g, x: Value, ratio, training_mode, seed):
    """Dropout's two results; in training, elements are drawn by RandomUniformLike."""
    off = training_mode is None or (
        training_mode.tensor is not None and not training_mode.array().any()
    )
    if off:
        return g.Identity(x), make_full(g, True, g.Shape(x), DType.BOOL)
    ratio = g.const(0.5, x.dtype) if ratio is None else cast(g, ratio, x.dtype)
    drawn = g.RandomUniformLike(x, seed=None if seed is None else float(seed))
    kept = g.Not(g.Less(drawn, ratio))
    if training_mode.tensor is None:
        kept = g.Or(kept, g.Not(training_mode))
        ratio = g.Mul(ratio, cast(g, training_mode, x.dtype))
    return g.Div(g.Mul(x, cast(g, kept, x.dtype)), g.Sub(1.0, ratio)), kept


@downgrades[12]("Dropout")
def dropout_without_training(
    g, x: Value, ratio=None, training_mode=None, *, seed: int | None = None
):  # fmt: skip
    with g.at_opset(13):
        return inference_or_training(g, x, ratio, training_mode, seed)


@upgrades[12]("Dropout")
def dropout_ratio_as_operand(g, x: Value, *, ratio: float, outputs=1):
    """Opsets 7 to 11 knew inference only."""
    return g.Dropout(x, g.const(ratio, DType.FLOAT32), outputs=outputs)


@upgrades[10]("Dropout")
def dropout_mask_of_booleans(g, x: Value, *, ratio: float, outputs=1):
    """The mask had the data's type before opset 10."""
    results = g.Dropout(x, ratio=ratio, outputs=outputs)
    return results if outputs == 1 else (results[0], cast(g, results[1], x.type))


@upgrades[7]("Dropout", ignore=("is_test",))
def dropout_without_is_test(g, x: Value, *, ratio: float, outputs=1):
    """Models are converted to be run: training needs opset 12 to be asked for."""
    return g.Dropout(x, ratio=ratio, outputs=outputs)
