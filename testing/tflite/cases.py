"""A case or more for each operator that is read; LiteRT's reference kernels tell what is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .models import Array, Case, Operand, Result

DRAWN = np.random.default_rng(11)


def f(*shape: int) -> Operand:
    """An input of floats."""
    return Operand(DRAWN.standard_normal(shape, np.float32))


def p(*shape: int) -> Operand:
    """An input of positive floats."""
    return Operand(DRAWN.uniform(0.1, 2, shape).astype(np.float32))


def i(*shape: int, low: int = -9, high: int = 9, dtype: str = "int32") -> Operand:
    """An input of integers."""
    return Operand(DRAWN.integers(low, high, shape).astype(dtype))


def b(*shape: int) -> Operand:
    """An input of booleans."""
    return Operand(DRAWN.integers(0, 2, shape).astype(bool))


def c(value: Any, dtype: str = "int32") -> Operand:
    """A constant."""
    return Operand(np.asarray(value, dtype), is_constant=True)


def v(value: Any, dtype: str = "int32") -> Operand:
    """An input of such elements."""
    return Operand(np.asarray(value, dtype))


def w(*shape: int) -> Operand:
    """A constant of floats."""
    return Operand(DRAWN.standard_normal(shape, np.float32), is_constant=True)


def s(*shape: int) -> Operand:
    """What an operator keeps between runs, zeros at first."""
    return Operand(np.zeros(shape, np.float32), is_variable=True)


def q(*shape: int, scale: Any = 0.05, zero: Any = 3, dtype: str = "int8", axis: int = 0,
      constant: bool = False) -> Operand:  # fmt: skip
    """Integers that stand for real numbers."""
    info = np.iinfo(dtype)
    low, high = max(info.min, -2000), min(info.max, 2000)
    array = DRAWN.integers(low, high + 1, shape).astype(dtype)
    scales, zeros = np.atleast_1d(scale), np.atleast_1d(zero)
    return Operand(array, constant, scales, np.broadcast_to(zeros, scales.shape), axis)


def bias(size: int, scale: Any, dtype: str = "int32") -> Operand:
    """A bias of integers, which count in the unit of the products."""
    array = DRAWN.integers(-500, 500, size).astype(dtype)
    scales = np.atleast_1d(scale)
    return Operand(array, True, scales, [0] * len(scales))


def r(dtype: str = "float32", scale: float | None = None, zero: int = 0) -> Result:
    """A result."""
    return Result(dtype, () if scale is None else [scale], () if scale is None else [zero])


def case(op: str, *operands: Operand | None, to: Sequence[Result] | Result | str = "float32",
         version: int = 1, **options: Any) -> Case:  # fmt: skip
    """A case of one operator."""
    results = [Result(to)] if isinstance(to, str) else [to] if isinstance(to, Result) else to
    return Case(op, operands, [*results], options, version)


SAME, VALID = {"padding": 0}, {"padding": 1}
PAIR = {"stride_w": 1, "stride_h": 1}
TWO = {"stride_w": 2, "stride_h": 2}
POOL = {"filter_width": 3, "filter_height": 2}
UNARY = "ABS CEIL COS EXP FLOOR HARD_SWISH LOGISTIC NEG RELU RELU6 RELU_N1_TO_1 ROUND SIN SQUARE TANH ELU"
BINARY = "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE FLOOR_DIV FLOOR_MOD"
COMPARED = "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL"
BROADCAST = ((2, 3, 4, 5), (4, 1))


def list_float_cases() -> list[Case]:
    """Operators on floats and plain integers."""
    return [
        *(case(op, f(2, 3, 4)) for op in UNARY.split()),
        *(case(op, p(2, 3)) for op in ("LOG", "SQRT", "RSQRT")),
        case("SIGN", f(2, 3)), case("RELU_0_TO_1", f(3, 4)),
        *(case(op, f(*BROADCAST[0]), f(*BROADCAST[1])) for op in BINARY.split()),
        *(case(op, i(2, 9), c([3], "int32"), to="int32")
          for op in ("ADD", "MUL", "SUB", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM")),
        case("FLOOR_DIV", i(2, 9), c([-4]), to="int32"),
        case("FLOOR_MOD", i(2, 9), c([-4]), to="int32"),
        *(case(op, i(3, 4, high=-7), i(4, high=-7), to="bool") for op in COMPARED.split()),
        *(case(op, f(3, 4), f(4), to="bool") for op in COMPARED.split()),
        case("LOGICAL_AND", b(3, 4), b(4), to="bool"), case("LOGICAL_OR", b(3, 4), b(4), to="bool"),
        case("LOGICAL_NOT", b(3, 4), to="bool"),
        case("POW", p(3, 4), f(4)), case("ATAN2", f(3, 4), f(3, 4)),
        case("ADD", f(2, 3), f(2, 3), fused_activation_function=1),
        case("ADD", f(2, 3), f(2, 3), fused_activation_function=2),
        case("MUL", f(2, 3), f(2, 3), fused_activation_function=3),
        case("ADD_N", f(2, 3), f(2, 3), f(2, 3)),
        case("PRELU", f(2, 3, 4, 5), w(1, 1, 5)), case("LEAKY_RELU", f(3, 4), alpha=0.2),
        case("GELU", f(3, 4)), case("GELU", f(3, 4), approximate=True),
        case("CAST", f(3, 4), to="int32", out_data_type=2),
        case("CAST", i(3, 4), to="float32", in_data_type=2),
        case("CAST", i(3, 4, low=-1, high=2), to="bool", in_data_type=2, out_data_type=6),
        case("ZEROS_LIKE", f(3, 4)),
        case("SELECT", b(3), f(3, 4), f(3, 4)), case("SELECT", b(3, 4), f(3, 4), f(3, 4)),
        case("SELECT_V2", b(3, 1), f(3, 4), f(4)),
        case("BITWISE_XOR", i(3, 4), i(4), to="int32"),
        case("RIGHT_SHIFT", i(3, 4), i(3, 4, low=0, high=4), to="int32"),
        case("BUCKETIZE", f(3, 4), to="int32", boundaries=[-0.5, 0.0, 1.0]),
        case("FAKE_QUANT", f(3, 4), min=-1.0, max=1.5, num_bits=8),
    ]  # fmt: skip


def list_shape_cases() -> list[Case]:
    """Operators that arrange elements."""
    x = (2, 3, 4, 6)
    return [
        case("RESHAPE", f(*x), c([6, -1])), case("RESHAPE", f(*x), new_shape=[4, 36]),
        case("RESHAPE", f(1), c([], "int32")),
        case("SQUEEZE", f(1, 3, 1, 2)), case("SQUEEZE", f(1, 3, 1, 2), squeeze_dims=[-2]),
        case("EXPAND_DIMS", f(3, 4), c(-1)), case("EXPAND_DIMS", f(3, 4), c([1])),
        case("TRANSPOSE", f(*x), c([3, 0, 2, 1])),
        case("CONCATENATION", f(2, 3), f(2, 5), axis=-1),
        case("CONCATENATION", f(2, 3), f(4, 3), axis=0),
        case("PACK", f(2, 3), f(2, 3), axis=-1, values_count=2),
        case("UNPACK", f(2, 3), to=[r(), r(), r()], num=3, axis=1),
        case("SPLIT", c(-1), f(2, 6), to=[r(), r()], num_splits=2),
        case("SPLIT_V", f(2, 6), c([1, -1, 2]), c(1), to=[r(), r(), r()], num_splits=3),
        case("TILE", f(2, 3), c([2, 3])),
        case("BROADCAST_TO", f(3, 1), c([2, 3, 4]), version=2),
        case("BROADCAST_ARGS", c([3, 1]), c([2, 1, 4]), to="int32"),
        case("SHAPE", f(2, 3), to="int32", out_type=2), case("SHAPE", f(2, 3), to="int64", out_type=4),
        case("RANK", f(2, 3), to="int32"),
        case("FILL", c([2, 3]), f()), case("RANGE", c(1), c(9), c(3), to="int32"),
        case("BATCH_TO_SPACE_ND", f(4, 3, 4, 2), c([2, 2]), c([[0, 1], [1, 0]])),
        case("BATCH_TO_SPACE_ND", f(12, 3, 4, 2), c([2, 3]), v([[0, 1], [1, 0]])),
        case("SPACE_TO_BATCH_ND", f(1, 3, 5, 2), c([2, 3]), c([[0, 1], [1, 0]])),
        case("SPACE_TO_BATCH_ND", f(2, 3, 5, 2), c([2, 3]), v([[0, 1], [1, 0]])),
        case("SPACE_TO_BATCH_ND", f(2, 5, 3), c([2]), v([[0, 1]])),
        case("REVERSE_V2", f(*x), c([1])),
        case("REVERSE_SEQUENCE", f(3, 4, 2), c([2, 4, 1]), seq_dim=1, batch_dim=0),
        case("SLICE", f(*x), c([0, 1, 0, 2]), c([-1, 2, 3, -1])),
        case("SLICE", f(3, 4), i(2, low=0, high=2), c([1, 2])),
        case("STRIDED_SLICE", f(*x), c([0, -1, 1, 5]), c([2, -4, 3, 0]), c([1, -1, 1, -2])),
        case("STRIDED_SLICE", f(*x), c([1, 1, 0, 0]), c([0, 3, 0, 0]), c([1, 1, 1, 1]),
             shrink_axis_mask=1, end_mask=12, begin_mask=4),
        case("STRIDED_SLICE", f(*x), c([-1, 0, 0]), c([0, 0, 2]), c([1, 1, 1]), shrink_axis_mask=1,
             ellipsis_mask=2),
        case("STRIDED_SLICE", f(3, 4), c([0, 1, 0]), c([0, 3, 3]), c([1, 1, 1]), new_axis_mask=1),
        case("PAD", f(2, 3), c([[1, 0], [2, 1]])), case("PADV2", f(2, 3), c([[1, 0], [2, 1]]), w()),
        case("MIRROR_PAD", f(3, 4), c([[1, 2], [2, 1]])),
        case("MIRROR_PAD", f(3, 4), c([[1, 3], [2, 1]]), mode=1),
        case("DYNAMIC_UPDATE_SLICE", f(3, 4), f(2, 2), i(2, low=0, high=6)),
        case("GATHER", f(*x), c([[2, 0], [1, 1]]), axis=1),
        case("GATHER", f(2, 3, 4), i(2, 2, low=0, high=3), axis=1, batch_dims=1),
        case("GATHER", f(2, 3, 4), i(2, 5, low=0, high=4), axis=2, batch_dims=1),
        case("GATHER_ND", f(3, 4, 2), c([[2, 0], [1, 1]])),
        case("SCATTER_ND", c([[1], [3], [1]]), f(3, 2), c([5, 2])),
        case("SPARSE_TO_DENSE", c([[0, 1], [2, 3]]), c([3, 4]), f(2), w()),
        case("ONE_HOT", i(2, 3, low=-1, high=5), c(4), c(2.0, "float32"), c(-1.0, "float32"), axis=1),
        case("EMBEDDING_LOOKUP", i(3, low=0, high=5), w(5, 4)),
        case("WHERE", b(3, 4), to="int64"),
        case("MATRIX_DIAG", f(2, 3)), case("MATRIX_SET_DIAG", f(2, 3, 4), f(2, 3)),
        case("MATRIX_SET_DIAG", f(2, 4, 3), f(2, 3)),
        case("DEPTH_TO_SPACE", f(1, 2, 3, 8), block_size=2),
        case("DEPTH_TO_SPACE", i(1, 2, 3, 8), to="int32", block_size=2),
        case("SPACE_TO_DEPTH", f(1, 4, 6, 3), block_size=2),
        case("SPACE_TO_DEPTH", i(1, 4, 6, 3), to="int32", block_size=2),
        case("UNSORTED_SEGMENT_SUM", f(4, 2), c([2, 0, -1, 2]), c(3)),
        case("UNSORTED_SEGMENT_MAX", f(4, 2), c([2, 0, 2, 2]), c(3)),
        case("UNSORTED_SEGMENT_MIN", f(4, 2), c([2, 0, 2, 2]), c(3)),
        case("UNSORTED_SEGMENT_PROD", f(4, 2), c([2, 0, 2, 2]), c(3)),
        case("SEGMENT_SUM", f(4, 2), c([0, 0, 1, 2])),
    ]  # fmt: skip


def list_axis_cases() -> list[Case]:
    """Operators along axes."""
    reducers = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
    return [
        *(case(op, f(2, 3, 4), c([-1, 0])) for op in reducers),
        *(case(op, f(2, 3, 4), c([1]), keep_dims=True) for op in reducers),
        *(case(op, i(2, 3), c([1]), to="int32") for op in ("SUM", "REDUCE_MAX", "MEAN")),
        case("REDUCE_ANY", b(3, 4), c([1]), to="bool"), case("REDUCE_ALL", b(3, 4), c([1]), to="bool"),
        case("ARG_MAX", f(3, 4), c(-1), to="int32", output_type=2),
        case("ARG_MIN", f(3, 4), c(0), to="int64", output_type=4),
        case("CUMSUM", f(3, 4), c(1)), case("CUMSUM", f(3, 4), c(0), exclusive=True, reverse=True),
        case("TOPK_V2", f(3, 7), c(3), to=[r(), r("int32")]),
        case("UNIQUE", c([3, 1, 3, 2], "int32"), to=[r("int32"), r("int32")], idx_out_type=2),
        case("L2_NORMALIZATION", f(2, 5)),
        case("SOFTMAX", f(2, 5), beta=1.0), case("SOFTMAX", f(2, 5), beta=0.5),
        case("LOG_SOFTMAX", f(2, 5)),
        case("LOCAL_RESPONSE_NORMALIZATION", f(1, 2, 3, 7), radius=2, bias=1.0, alpha=0.3, beta=0.75),
    ]  # fmt: skip


def list_window_cases() -> list[Case]:
    """Convolutions, pools and resized images."""
    corners = DRAWN.uniform(0, 4, (6, 2)).astype(np.float32)
    boxes = Operand(np.concatenate([corners, corners + 3], 1))
    limits = (c(0.5, "float32"), c(0.2, "float32"))
    cases = [
        case("NON_MAX_SUPPRESSION_V4", boxes, p(6), c(5), *limits, to=[r("int32"), r("int32")]),
        case("NON_MAX_SUPPRESSION_V5", boxes, p(6), c(5), *limits, c(0.0, "float32"),
             to=[r("int32"), r(), r("int32")]),
        case("CONV_2D", f(2, 7, 6, 3), w(4, 3, 2, 3), w(4), **VALID, **PAIR),
        case("CONV_2D", f(2, 7, 6, 3), w(4, 3, 3, 3), w(4), **SAME, **TWO, fused_activation_function=1),
        case("CONV_2D", f(1, 9, 8, 3), w(4, 3, 3, 3), w(4), **SAME, **PAIR, dilation_h_factor=2,
             dilation_w_factor=3),
        case("CONV_2D", f(1, 7, 6, 4), w(6, 3, 3, 2), w(6), **SAME, **PAIR, version=6),
        case("DEPTHWISE_CONV_2D", f(2, 7, 6, 3), w(1, 3, 3, 6), w(6), **SAME, **TWO, depth_multiplier=2),
        case("DEPTHWISE_CONV_2D", f(2, 7, 6, 3), w(1, 3, 3, 3), w(3), **VALID, **PAIR,
             depth_multiplier=1, fused_activation_function=3),
        case("CONV_3D", f(1, 4, 5, 6, 2), w(2, 3, 2, 2, 3), w(3), **SAME, **PAIR, stride_d=2),
        case("CONV_3D_TRANSPOSE", c([1, 4, 6, 8, 2]), w(2, 3, 2, 2, 3), f(1, 2, 3, 4, 3), **SAME, **TWO,
             stride_d=2),
    ]  # fmt: skip
    for padding, sizes in ((SAME, (9, 8)), (VALID, (11, 8)), (SAME, (10, 7)), (VALID, (12, 9))):
        shape = c([1, *sizes, 4])
        cases.append(case("TRANSPOSE_CONV", shape, w(4, 3, 2, 3), f(1, 5, 4, 3), **padding, **TWO))
    shape = c([1, 8, 8, 2])
    cases.append(
        case("TRANSPOSE_CONV", shape, w(2, 3, 3, 3), f(1, 4, 4, 3), w(2), **SAME, **TWO, version=3)
    )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        cases += [
            case(op, f(2, 7, 6, 3), **SAME, **TWO, **POOL),
            case(op, f(2, 7, 6, 3), **VALID, **PAIR, **POOL),
        ]
    for modes in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        version = 3 if modes else 1
        for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
            cases += [
                case(op, f(1, 4, 5, 2), c([7, 3]), version=version, **modes),
                case(op, f(1, 3, 7, 2), c([6, 21]), version=version, **modes),
            ]
    return cases


def list_layer_cases() -> list[Case]:
    """Products and recurrent layers."""
    gates = [w(4, 3) for _ in range(4)], [w(4, 4) for _ in range(4)], [w(4) for _ in range(4)]
    none = [None] * 3
    peepholes = [w(4) for _ in range(3)]
    norm = [w(4) for _ in range(4)]

    def lstm(x, *, cells=none, coupled=False, projection=(None, None), state=4, rec=None, more=()):  # type: ignore[no-untyped-def]
        into, back, biases = (list(v) for v in gates)
        back = rec or back
        if coupled:
            into[0] = back[0] = biases[0] = None  # type: ignore[call-overload]
        return [x, *into, *back, *cells, *biases, *projection, s(2, state), s(2, 4), *more]

    tanh = {"fused_activation_function": 4}
    small = [w(4, 2) for _ in range(4)]
    return [
        case("FULLY_CONNECTED", f(2, 5), w(3, 5), w(3)),
        case("FULLY_CONNECTED", f(2, 3, 5), w(3, 5), None, fused_activation_function=1),
        case("FULLY_CONNECTED", f(2, 3, 5), w(4, 5), w(4), keep_num_dims=True, version=5),
        case("FULLY_CONNECTED", f(2, 10), w(4, 5), w(4)),
        case("BATCH_MATMUL", f(2, 3, 4), f(2, 4, 5)),
        case("BATCH_MATMUL", f(2, 4, 3), f(5, 4), adj_x=True, adj_y=True),
        case("UNIDIRECTIONAL_SEQUENCE_LSTM", *lstm(f(5, 2, 3)), time_major=True, **tanh),
        case("UNIDIRECTIONAL_SEQUENCE_LSTM", *lstm(f(2, 5, 3), cells=peepholes), **tanh),
        case("UNIDIRECTIONAL_SEQUENCE_LSTM", *lstm(f(2, 5, 3), coupled=True), cell_clip=0.5, **tanh),
        case("UNIDIRECTIONAL_SEQUENCE_LSTM",
             *lstm(f(2, 5, 3), projection=(w(2, 4), w(2)), state=2, rec=small), **tanh, proj_clip=0.6),
        case("UNIDIRECTIONAL_SEQUENCE_LSTM", *lstm(f(2, 5, 3), more=norm), **tanh),
        case("LSTM", *lstm(f(2, 3), cells=peepholes), cell_clip=3.0, **tanh),
        case("RNN", f(2, 3), w(4, 3), w(4, 4), w(4), s(2, 4), **tanh),
        case("UNIDIRECTIONAL_SEQUENCE_RNN", f(2, 5, 3), w(4, 3), w(4, 4), w(4), s(2, 4), **tanh),
        case("SVDF", f(2, 3), w(8, 3), w(8, 5), w(4), s(2, 40), rank=2, fused_activation_function=1),
        *(
            case("BIDIRECTIONAL_SEQUENCE_LSTM", f(5, 2, 3) if time_major else f(2, 5, 3),
                 *lstm(None)[1:-2], *lstm(None, cells=peepholes if is_merged else none)[1:-2],
                 *(s(2, 4) for _ in range(4)), *[None] * 9, to=[r()] * (1 if is_merged else 2),
                 time_major=time_major, merge_outputs=is_merged, **tanh)
            # Merged with samples first, LiteRT's kernel begins with other states in each run.
            for time_major, is_merged in ((True, True), (True, False), (False, False))
        ),
        *(
            case("BIDIRECTIONAL_SEQUENCE_RNN", f(5, 2, 3) if time_major else f(2, 5, 3),
                 *(v for _ in range(2) for v in (w(4, 3), w(4, 4), w(4), s(2, 4))), *[None] * 3,
                 to=[r()] * (1 if is_merged else 2), time_major=time_major,
                 merge_outputs=is_merged, **tanh)
            for time_major in (True, False) for is_merged in (True, False)
        ),
    ]  # fmt: skip


def list_quantized_cases() -> list[Case]:
    """Integers that stand for real numbers."""
    int8, uint8, int16 = r("int8", 0.1, -5), r("uint8", 0.1, 120), r("int16", 0.004)
    by_channel = np.linspace(0.01, 0.03, 4)
    images = q(1, 7, 6, 3)
    deep = q(1, 3, 3, 3, scale=by_channel[:3], zero=0, axis=3, constant=True)
    layer = q(4, 3, 3, 3, scale=by_channel, zero=0, constant=True)
    wide = q(1, 7, 6, 3, scale=0.001, zero=0, dtype="int16")
    rows = q(3, 6, scale=0.02, zero=0, constant=True)
    return [
        case("CONV_2D", images, layer, bias(4, 0.05 * by_channel), to=r("int8", 0.2, -5), **SAME, **PAIR,
             version=3, fused_activation_function=1),
        case("CONV_2D", q(1, 7, 6, 3, zero=128, dtype="uint8"),
             q(4, 3, 3, 3, scale=0.02, zero=110, dtype="uint8", constant=True), bias(4, 0.001),
             to=r("uint8", 0.4, 120), **SAME, **TWO),
        case("CONV_2D", wide, layer, bias(4, 0.001 * by_channel, "int64"), to=r("int16", 0.001), **VALID, **PAIR, version=4),
        case("DEPTHWISE_CONV_2D", images, deep, bias(3, 0.05 * by_channel[:3]), to=r("int8", 0.2, 4), **SAME,
             **PAIR, depth_multiplier=1, version=3),
        case("FULLY_CONNECTED", q(2, 6), rows, bias(3, 0.001), to=r("int8", 0.1, 3), version=4),
        case("FULLY_CONNECTED", q(2, 6, zero=128, dtype="uint8"),
             q(3, 6, scale=0.02, zero=100, dtype="uint8", constant=True), bias(3, 0.001), to=uint8),
        case("TRANSPOSE_CONV", c([1, 8, 8, 4]), layer, q(1, 4, 4, 3), to=r("int8", 0.2, 2), **SAME, **TWO),
        case("ADD", q(2, 3, 4), q(4, scale=0.1, zero=-7), to=int8, version=2),
        case("MUL", q(2, 3, 4), q(4, scale=0.1, zero=-7), to=r("int8", 0.3, 1), version=2),
        case("SUB", q(2, 3, zero=100, dtype="uint8"), q(2, 3, zero=90, dtype="uint8"), to=uint8),
        case("ADD", q(2, 3, scale=0.004, zero=0, dtype="int16"),
             q(2, 3, scale=0.002, zero=0, dtype="int16"), to=int16, version=2, pot_scale_int16=False),
        case("MAXIMUM", q(2, 3), q(2, 3), to=r("int8", 0.05, 3), version=2),
        case("LESS", q(3, 4), q(4), to="bool", version=2),
        case("AVERAGE_POOL_2D", images, to=r("int8", 0.05, 3), **SAME, **TWO, **POOL, version=2),
        case("MAX_POOL_2D", images, to=r("int8", 0.05, 3), **SAME, **TWO, **POOL, version=2),
        case("MEAN", images, c([1, 2]), to=r("int8", 0.02, 3), version=2),
        case("LOGISTIC", q(2, 9), to=r("int8", 1 / 256, -128), version=2),
        case("TANH", q(2, 9), to=r("int8", 1 / 128, 0), version=2),
        case("SOFTMAX", q(2, 9), to=r("int8", 1 / 256, -128), beta=1.0, version=2),
        case("LEAKY_RELU", q(2, 9), to=int8, alpha=0.1, version=2),
        case("HARD_SWISH", q(2, 9), to=r("int8", 0.05, -60)),
        case("RELU", q(2, 9), to=r("int8", 0.03, -128), version=2),
        case("PAD", images, c([[0, 0], [1, 2], [0, 1], [0, 0]]), to=r("int8", 0.05, 3), version=2),
        case("PAD", wide, c([[0, 0], [1, 2], [0, 1], [0, 0]]), to=r("int16", 0.001), version=3),
        case("CONCATENATION", q(2, 3), q(2, 4), to=r("int8", 0.05, 3), axis=1, version=2),
        case("CONCATENATION", q(2, 3, zero=100, dtype="uint8"), q(2, 4, zero=90, dtype="uint8"),
             to=uint8, axis=1),
        case("RESHAPE", q(2, 6), c([3, 4]), to=r("int8", 0.05, 3)),
        case("TRANSPOSE", q(2, 6), c([1, 0]), to=r("int8", 0.05, 3), version=2),
        case("RESIZE_BILINEAR", images, c([9, 8]), to=r("int8", 0.05, 3), version=2),
        case("RESIZE_NEAREST_NEIGHBOR", images, c([9, 8]), to=r("int8", 0.05, 3), version=2),
        case("QUANTIZE", f(3, 4), to=int8), case("QUANTIZE", q(3, 4), to=int8, version=2),
        case("QUANTIZE", q(3, 4), to=uint8, version=2), case("DEQUANTIZE", q(3, 4), version=2),
        case("DEQUANTIZE", Operand(np.arange(6, dtype=np.float16).reshape(2, 3), True), version=3),
        case("BATCH_MATMUL", q(2, 3, 4), q(2, 4, 5, zero=-4), to=r("int8", 0.3, 2), version=2),
        case("SPACE_TO_DEPTH", q(1, 4, 6, 3), to=r("int8", 0.05, 3), block_size=2, version=2),
        case("SPACE_TO_BATCH_ND", q(1, 3, 5, 2), c([2, 3]), c([[0, 1], [1, 0]]),
             to=r("int8", 0.05, 3), version=2),
        case("SELECT_V2", b(3, 4), q(3, 4), q(3, 4), to=r("int8", 0.05, 3)),
        case("TOPK_V2", q(3, 7), c(3), to=[r("int8", 0.05, 3), r("int32")], version=2),
        case("ARG_MAX", q(3, 7), c(1), to="int32", output_type=2, version=2),
        case("EMBEDDING_LOOKUP", i(3, low=0, high=5), q(5, 4, scale=0.03, zero=0, constant=True)),
        case("L2_NORMALIZATION", q(2, 5), to=r("int8", 1 / 128, 0), version=2),
        case("SQRT", q(2, 5, scale=0.02, zero=-128), to=r("int8", 0.01, -128)),
    ]  # fmt: skip


def list_cases() -> list[Case]:
    """All cases."""
    return [
        *list_float_cases(), *list_shape_cases(), *list_axis_cases(), *list_window_cases(),
        *list_layer_cases(), *list_quantized_cases(),
    ]  # fmt: skip


def as_feeds(case: Case) -> list[Array]:
    """What a model that is read is fed with: inputs, then zeros for what operators keep."""
    kept = [v.array for v in case.operands if v is not None and v.is_variable]
    return [*case.feeds(), *kept]
