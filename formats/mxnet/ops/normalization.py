"""Normalization layers."""

from __future__ import annotations

from serde.decompositions.normalization import local_response, train_batch_norm
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import may_be_same
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint
from serde.version_converter.adapters.normalization import layer_normalization, standardize

from ..rules import note_old_meaning, reads, reads_between
from ..target import legalizations, writes
from .deconvolution_phases import is_flipped

STATISTICS = ("momentum", "use_global_stats")
CALIBRATION = {"min_calib_range": ("None",), "max_calib_range": ("None",)}
ONE = {"training_mode": (0,)}


@reads("BatchNorm", ignore=("cudnn_off",), only={"output_mean_var": (False,), **CALIBRATION})
def read_batch_norm(
    g, x, gamma, beta, mean, var, *, eps=1e-3, fix_gamma=True, axis=1, momentum=0.9,
    use_global_stats=False, requantized: Hint[bool] = False,
):  # fmt: skip
    """``fix_gamma`` means a scale of 1, whatever is stored.

    For training, statistics that stay as they are have a momentum of 1.
    """
    require(x.rank >= 2, "BatchNorm of a tensor with fewer than two axes")
    channels, stored = x.ranked_shape[axis % x.rank], gamma.ranked_shape[0]
    require(
        may_be_same(channels, stored), f"parameters for {stored} channels, and there are {channels}"
    )
    gamma = ones(g, gamma) if fix_gamma else gamma
    if requantized and axis == 1 and is_flipped(g, x):
        factor = g.Div(gamma, g.Sqrt(g.Add(var, eps)))
        factor, beta, mean = (g.Reshape(v, [-1, 1, 1]) for v in (factor, beta, mean))
        return g.multiply_add(g.Sub(x, mean), factor, beta)  # as oneDNN does of blocks of channels

    moves = (1.0 if use_global_stats else momentum) if g.for_training else None

    def apply(x):
        return g.BatchNormalization(x, gamma, beta, mean, var, epsilon=eps, momentum=moves)

    return g.apply_on_axis(x, axis % x.rank, 1, apply)


@reads(
    "BatchNorm_v1", "_contrib_SyncBatchNorm",
    ignore=("ndev", "key"), only={"output_mean_var": (False,)},
)  # fmt: skip
def read_plain_batch_norm(
    g, x, gamma, beta, mean, var, *, eps=1e-3, fix_gamma=True, momentum=0.9,
    use_global_stats=False,
):  # fmt: skip
    return read_batch_norm(
        g,
        x,
        gamma,
        beta,
        mean,
        var,
        eps=eps,
        fix_gamma=fix_gamma,
        momentum=momentum,
        use_global_stats=use_global_stats,
    )


@reads(
    "_contrib_BatchNormWithReLU",
    ignore=(*STATISTICS, "cudnn_off"),
    only={"output_mean_var": (False,), **CALIBRATION},
)
def read_batch_norm_relu(g, x, gamma, beta, mean, var, *, eps=1e-3, fix_gamma=True, axis=1):
    y = read_batch_norm(g, x, gamma, beta, mean, var, eps=eps, fix_gamma=fix_gamma, axis=axis)
    return g.Relu(y)


def ones(g, like: Value):
    return g.const(arrays.ones(like.static_shape, like.type.numpy), name="ones")


@reads("LayerNorm", only={"output_mean_var": (False,)})
def read_layer_norm(g, x, gamma, beta, *, axis=-1, eps=1e-5):
    last = x.rank - 1
    if x.ranked_shape[axis] == 0:
        return x  # there is nothing to normalize, which runtimes refuse

    def apply(x):
        return g.LayerNormalization(x, gamma, beta, axis=last, epsilon=eps)

    return g.apply_on_axis(x, axis % x.rank, last, apply)


@reads("GroupNorm", only={"output_mean_var": (False,)})
def read_group_norm(g, x, gamma, beta, *, num_groups=1, eps=1e-5):
    """MXNet 1 has a scale and a shift for each group, MXNet 2 for each channel."""
    channels = x.ranked_shape[1]
    require(isinstance(channels, int), "needs to know the number of channels")
    spread = [expand_to_channels(g, v, channels) for v in (gamma, beta)]
    return g.GroupNormalization(x, *spread, num_groups=num_groups, epsilon=eps)


def expand_to_channels(g, v: Value, channels: int):
    (groups,) = v.static_shape
    per_group = g.Expand(g.Unsqueeze(v, [1]), [groups, channels // groups])
    return v if groups == channels else g.Reshape(per_group, [channels])


@reads("InstanceNorm")
def read_instance_norm(g, x, gamma, beta, *, eps=1e-3):
    return g.InstanceNormalization(x, gamma, beta, epsilon=eps)


@reads("LRN")
def read_lrn(g, x, *, nsize: int, alpha=1e-4, beta=0.75, knorm=2.0):
    require(nsize > 0 and nsize % 2 == 1, f"nsize={nsize}: runtimes take odd sizes only")
    require(
        alpha > 0 and beta > 0, f"alpha={alpha} and beta={beta}, both of which are to be above 0"
    )
    return g.LRN(x, size=nsize, alpha=alpha, beta=beta, bias=knorm)


@reads_between(0, 1100)("LRN")
def read_old_lrn(g, x, *, nsize: int, alpha=1e-4, beta=0.75, knorm=2.0):
    """Before MXNet 0.11 the first channels have the window of the first that has a whole one."""
    count, half = x.ranked_shape[1], nsize // 2
    require(nsize > 0 and nsize % 2 == 1, f"nsize={nsize}: runtimes take odd sizes only")
    require(isinstance(count, int), "needs to know the number of channels")
    require(nsize <= count, f"nsize={nsize} of {count} channels, which MXNet before 0.11 refuses")
    note_old_meaning(g, "0.11")
    squares = g.Reshape(
        g.Mul(x, x), g.Concat(g.shape_from([g.size_of(x, 0)]), [1, count, -1], axis=0)
    )
    padded = g.Pad(squares, (0, 0, half, 0, 0, 0, half, 0), g.scalar(0, x))
    mean = g.Squeeze(g.AveragePool(padded, kernel_shape=(nsize, 1), strides=(1, 1)), [1])
    places = [max(c, half) for c in range(count)]
    mean = g.Reshape(g.Gather(mean, g.const(places, DType.INT64), axis=1), g.Shape(x))
    return g.Div(x, g.Pow(g.Add(g.Mul(mean, alpha), knorm), g.scalar(beta, x)))


@reads("L2Normalization")
def read_l2_normalization(g, x, *, eps=1e-10, mode="instance"):
    modes = {"channel": (1,), "instance": range(1, x.rank), "spatial": range(2, x.rank)}
    require(mode in modes, f"mode={mode!r} is unknown")
    axes = list(modes[mode])

    def apply(g, x):
        squares = g.ReduceSumSquare(x, axes, keepdims=1) if axes else g.Mul(x, x)
        return g.Div(x, g.Sqrt(g.Add(squares, eps)))

    return g.compute_in_float32(apply, x)


@writes("BatchNormalization", ignore=("momentum",), only=ONE)
def write_batch_norm(s, x, scale, bias, mean, var, *, epsilon):
    return s.BatchNorm(x, scale, bias, mean, var, eps=epsilon, fix_gamma=False)


@writes("LayerNormalization", only={"stash_type": (1,)})
def write_layer_norm(s, x, scale, bias=None, *, axis, epsilon):
    require(axis == x.rank - 1, f"axis={axis}: MXNet normalises over one axis")
    require(bias is not None and scale.rank == 1, "a scale of one axis and a bias are wanted")
    return s.LayerNorm(x, scale, bias, axis=axis, eps=epsilon)


@writes("InstanceNormalization")
def write_instance_norm(s, x, scale, bias, *, epsilon):
    return s.InstanceNorm(x, scale, bias, eps=epsilon)


@writes("LRN")
def write_lrn(s, x, *, size, alpha, beta, bias):
    return s.LRN(x, nsize=size, alpha=alpha, beta=beta, knorm=bias)


@legalizations("LayerNormalization")
def legalize_layer_norm(
    g, x, scale, bias=None, *, axis, epsilon, stash_type, outputs: int = 1
):  # fmt: skip
    """MXNet normalises one axis, and has no outputs beside."""
    one = axis == x.rank - 1 and scale.rank == 1 and outputs == 1 and x.type is not DType.FLOAT16
    if one and bias is not None and stash_type == 1:
        return None
    if one and stash_type == 1 and scale.is_static:
        zeros = g.full_like(scale, 0.0)
        return g.LayerNormalization(x, scale, zeros, axis=axis, epsilon=epsilon)
    results = layer_normalization(
        g, x, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type
    )  # fmt: skip
    return results[:outputs]


@legalizations("BatchNormalization")
def legalize_batch_norm(g, x, *parameters, epsilon, training_mode, outputs: int = 1, **form):
    """In training the statistics are the batch's, and come out as well."""
    if training_mode:
        return train_batch_norm(g, x, *parameters, epsilon=epsilon, outputs=outputs, **form)
    if x.rank == 1:  # of one channel
        y = g.BatchNormalization(g.Unsqueeze(x, [1]), *parameters, epsilon=epsilon)
        return g.Squeeze(y, [1])
    kind = statistics_type(x, *parameters)
    data = g.cast(x, kind) if kind is DType.FLOAT64 else x
    casted = [v if v.dtype is kind else g.cast(v, kind) for v in parameters]
    if any(g.producer(v) is not None for v in casted[2:]):
        return g.cast(
            normalize_with_statistics(g, g.cast(x, kind), *casted, epsilon=epsilon), x.type
        )
    if data is x and casted == list(parameters):
        return None
    return g.cast(g.BatchNormalization(data, *casted, epsilon=epsilon), x.type)


def statistics_type(*operands: Value) -> DType:
    """The element type in which MXNet has all parameters of a BatchNorm: halves have float32."""
    return DType.FLOAT64 if any(v.type is DType.FLOAT64 for v in operands) else DType.FLOAT32


def normalize_with_statistics(
    g, x: Value, scale: Value, bias: Value, mean: Value, var: Value, *, epsilon: float
):
    """A decomposed BatchNorm: MXNet's takes no computed statistics."""
    scale, bias, mean, var = (
        g.Unsqueeze(v, list(range(1, x.rank - 1))) if x.rank > 2 else v
        for v in (scale, bias, mean, var)
    )
    return g.Add(g.Mul(g.Div(g.Sub(x, mean), g.Sqrt(g.Add(var, epsilon))), scale), bias)


@legalizations("InstanceNormalization")
def legalize_instance_norm(g, x, scale, bias, *, epsilon):
    if x.type is DType.FLOAT32:
        return None
    centred, _, inverse = standardize(g, x, list(range(2, x.rank)), epsilon)
    scale, bias = (g.Unsqueeze(v, list(range(1, x.rank - 1))) for v in (scale, bias))
    return g.Add(g.Mul(g.Mul(centred, inverse), scale), bias)


@legalizations("LRN")
def legalize_lrn(g, x, *, size, alpha, beta, bias):
    """MXNet has that of float32 images."""
    if x.type is DType.FLOAT32 and x.rank == 4 and size % 2:
        return None
    return local_response(g, x, size=size, alpha=alpha, beta=beta, bias=bias)
