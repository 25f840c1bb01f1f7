"""One operator of each family in the IR, as text."""

from __future__ import annotations

from testing.mxnet.cases import case, f32, i32, ints, of, operator_test

CASES = [
    case("log2", i32(3)).but(
        printed="""
graph case(%x0: int32[3]):
  %op/Cast: float64[3] = Cast(%x0, round_mode='up', saturate=1, to=11)
  %op/Log: float64[3] = Log(%op/Cast)
  %op/Mul: float64[3] = Mul(%op/Log, 1.4426950408889634)
  %op/Add: float64[3] = Add(%op/Mul, 1e-12)
  %op_output: int32[3] = Cast(%op/Add, round_mode='up', saturate=1, to=6)
  return %op_output
"""
    ),
    case("_mul_scalar", f32(2, 3), scalar=2).but(
        printed="""
graph case(%x0: float32[2,3]):
  %op_output: float32[2,3] = Mul(%x0, 2.0)
  return %op_output
"""
    ),
    case("_equal_scalar", f32(2, 3), scalar=1).but(
        printed="""
graph case(%x0: float32[2,3]):
  %op/Equal: bool[2,3] = Equal(%x0, 1.0)
  %op_output: float32[2,3] = Cast(%op/Equal, round_mode='up', saturate=1, to=1)
  return %op_output
"""
    ),
    case("amp_cast", f32(2), dtype="float16").but(
        printed="""
graph case(%x0: float32[2]):
  %op_output: float16[2] = Cast(%x0, round_mode='up', saturate=1, to=10)
  return %op_output
"""
    ),
    case("sum", f32(2, 3, 4), axis=1, exclude=True).but(
        printed="""
graph case(%x0: float32[2,3,4]):
  %op_output: float32[3] = ReduceSum(%x0, [0, 2], keepdims=0, noop_with_empty_axes=0)
  return %op_output
"""
    ),
    case("Activation", f32(2, 3), act_type="softrelu").but(
        printed="""
graph case(%x0: float32[2,3]):
  %op_output: float32[2,3] = Softplus(%x0)
  return %op_output
"""
    ),
    case("LayerNorm", f32(2, 3, 4), f32(3), f32(3, seed=1), axis=1)
    .but(params=())
    .but(
        printed="""
graph case(%x0: float32[2,3,4], %x1: float32[3], %x2: float32[3]):
  %op/Transpose: float32[2,4,3] = Transpose(%x0, perm=[0, 2, 1])
  %op/LayerNormalization: float32[2,4,3] = LayerNormalization(%op/Transpose, %x1, %x2, axis=2, epsilon=1e-05, stash_type=1)
  %op_output: float32[2,3,4] = Transpose(%op/LayerNormalization, perm=[0, 2, 1])
  return %op_output
"""
    ),
    case("BatchNorm", f32(2, 3, 4), f32(3), f32(3, seed=1), f32(3), f32(3, low=0.5))
    .but(params=(1,))
    .but(
        printed="""
graph case(%x0: float32[2,3,4], %x2: float32[3], %x3: float32[3], %x4: float32[3]):
  %op_output: float32[2,3,4] = BatchNormalization(%x0, [1.0, 1.0, 1.0], %x2, %x3, %x4, epsilon=0.001, momentum=0.9, training_mode=0)
  return %op_output
"""
    ),
    case(
        "Convolution",
        f32(1, 3, 8, 8),
        f32(4, 3, 3, 3),
        kernel=(3, 3),
        num_filter=4,
        pad=(1, 1),
        no_bias=True,
    ).but(
        printed="""
graph case(%x0: float32[1,3,8,8]):
  %op_output: float32[1,4,8,8] = Conv(%x0, %x1, dilations=[1, 1], group=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
  return %op_output
"""
    ),
    case(
        "Pooling",
        f32(1, 3, 8, 8),
        kernel=(3, 3),
        stride=(2, 2),
        pad=(1, 1),
        pooling_convention="full",
        pool_type="avg",
    ).but(
        printed="""
graph case(%x0: float32[1,3,8,8]):
  %op/Pad: float32[1,3,10,10] = Pad(%x0, [0, 0, 1, 1, 0, 0, 1, 1], 0.0, mode='constant')
  %op_output: float32[1,3,5,5] = AveragePool(%op/Pad, ceil_mode=1, count_include_pad=0, dilations=[1, 1], kernel_shape=[3, 3], pads=[0, 0, 0, 0], strides=[2, 2])
  return %op_output
"""
    ),
    case("Reshape", f32(2, 3, 4), shape="(0, -3)").but(
        printed="""
graph case(%x0: float32[2,3,4]):
  %op_output: float32[2,12] = Reshape(%x0, [2, 12], allowzero=0)
  return %op_output
"""
    ),
    case("take", f32(4, 3), of([0, 5])).but(
        printed="""
graph case(%x0: float32[4,3], %x1: float32[2]):
  %op/Clip: float32[2] = Clip(%x1, 0.0, 3.0)
  %op/Cast: int64[2] = Cast(%op/Clip, round_mode='up', saturate=1, to=7)
  %op_output: float32[2,3] = Gather(%x0, %op/Cast, axis=0)
  return %op_output
"""
    ),
    case("FullyConnected", f32(2, 3, 4), f32(6, 4), num_hidden=6, no_bias=True, flatten=False).but(
        printed="""
graph case(%x0: float32[2,3,4]):
  %op_output: float32[2,3,6] = MatMul(%x0, %x1/Transpose)
  return %op_output
"""
    ),
    case("_contrib_div_sqrt_dim", f32(2, 4)).but(
        printed="""
graph case(%x0: float32[2,4]):
  %op_output: float32[2,4] = Mul(%x0, 0.5)
  return %op_output
"""
    ),
    case("SoftmaxOutput", f32(2, 3, 4), ints(2, 3, high=2)).but(
        printed="""
graph case(%x0: float32[2,3,4]):
  %op/Flatten: float32[2,12] = Flatten(%x0, axis=1)
  %op/Softmax: float32[2,12] = Softmax(%op/Flatten, axis=1)
  %op_output: float32[2,3,4] = Reshape(%op/Softmax, [2, 3, 4], allowzero=0)
  return %op_output
"""
    ),
    case(
        "RNN",
        f32(5, 2, 3),
        f32(144),
        f32(1, 2, 4),
        f32(1, 2, 4),
        mode="lstm",
        state_size=4,
        num_layers=1,
    ).but(
        printed="""
graph case(%x0: float32[5,2,3], %x2: float32[1,2,4], %x3: float32[1,2,4]):
  %op/LSTM: float32[5,1,2,4], %op/LSTM_1: float32[1,2,4], %op/LSTM_2: float32[1,2,4] = LSTM(%x0, %x1/Reshape_1, %x1/Reshape_3, %op/Concat, _, %x2, %x3, direction='forward', hidden_size=4, input_forget=0, layout=0)
  %op_output: float32[5,2,4] = Squeeze(%op/LSTM, [1])
  return %op_output
"""
    ),
    case("UpSampling", f32(1, 2, 3, 3), scale=2, sample_type="nearest", num_args=1).but(
        printed="""
graph case(%x0: float32[1,2,3,3]):
  %op_output: float32[1,2,6,6] = Resize(%x0, _, [1.0, 1.0, 2.0, 2.0], antialias=0, coordinate_transformation_mode='asymmetric', cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, keep_aspect_ratio_policy='stretch', mode='nearest', nearest_mode='floor')
  return %op_output
"""
    ),
    case("SequenceLast", f32(4, 3, 2), of([2, 4, 1]), use_sequence_length=True).but(
        printed="""
graph case(%x0: float32[4,3,2], %x1: float32[3]):
  %op/Cast: int64[3] = Cast(%x1, round_mode='up', saturate=1, to=7)
  %op/Transpose: float32[3,4,2] = Transpose(%x0, perm=[1, 0, 2])
  %op/Sub: int64[3] = Sub(%op/Cast, 1)
  %op/Unsqueeze: int64[3,1] = Unsqueeze(%op/Sub, [1])
  %op_output: float32[3,2] = GatherND(%op/Transpose, %op/Unsqueeze, batch_dims=1)
  return %op_output
"""
    ),
    case("topk", f32(2, 5), k=2, ret_typ="both")
    .but(outputs=2)
    .but(
        printed="""
graph case(%x0: float32[2,5]):
  %op_output0: float32[2,2], %op/TopK_1: int64[2,2] = TopK(%x0, [2], axis=1, largest=1, sorted=1)
  %op_output1: float32[2,2] = Cast(%op/TopK_1, round_mode='up', saturate=1, to=1)
  return %op_output0, %op_output1
"""
    ),
    case("diag", f32(3, 3)).but(
        printed="""
graph case(%x0: float32[3,3]):
  %op/Reshape: float32[9] = Reshape(%x0, [-1], allowzero=0)
  %op_output: float32[3] = Gather(%op/Reshape, [0, 4, 8], axis=0)
  return %op_output
"""
    ),
    case("scatter_nd", f32(2, 3), of([[1, 0]]), shape="(4, 3)").but(
        printed="""
graph case(%x0: float32[2,3], %x1: float32[1,2]):
  %op/Cast: int64[1,2] = Cast(%x1, round_mode='up', saturate=1, to=7)
  %op/Transpose: int64[2,1] = Transpose(%op/Cast, perm=[1, 0])
  %op_output: float32[4,3] = ScatterND(%op/ConstantOfShape, %op/Transpose, %x0, reduction='none')
  return %op_output
"""
    ),
    case("_contrib_box_decode", f32(1, 2, 4), f32(1, 2, 4, low=0.1)).but(
        printed="""
graph case(%x0: float32[1,2,4], %x1: float32[1,2,4]):
  %op/Slice: float32[1,2,2] = Slice(%x0, [0], [2], [2], [1])
  %op/Slice_1: float32[1,2,2] = Slice(%x0, [2], [4], [2], [1])
  %op/Slice_2: float32[1,2,2] = Slice(%x1, [0], [2], [2], [1])
  %op/Slice_3: float32[1,2,2] = Slice(%x1, [2], [4], [2], [1])
  %op/Mul: float32[1,2,2] = Mul(%op/Slice, %op/Slice_3)
  %op/Add: float32[1,2,2] = Add(%op/Mul, %op/Slice_2)
  %op/Exp: float32[1,2,2] = Exp(%op/Slice_1)
  %op/Mul_1: float32[1,2,2] = Mul(%op/Slice_3, 0.5)
  %op/Mul_2: float32[1,2,2] = Mul(%op/Exp, %op/Mul_1)
  %op/Sub: float32[1,2,2] = Sub(%op/Add, %op/Mul_2)
  %op/Add_1: float32[1,2,2] = Add(%op/Add, %op/Mul_2)
  %op_output: float32[1,2,4] = Concat(%op/Sub, %op/Add_1, axis=2)
  return %op_output
"""
    ),
    case(
        "ROIPooling", f32(1, 2, 8, 8), of([[0, 1, 1, 6, 6]]), pooled_size=(2, 2), spatial_scale=0.5
    ).but(
        printed="""
graph case(%x0: float32[1,2,8,8], %x1: float32[1,5]):
  %op/Slice: float32[1,1] = Slice(%x1, [0], [1], [1], [1])
  %op/Slice_1: float32[1,4] = Slice(%x1, [1], [5], [1], [1])
  %op/Max: float32[1,1] = Max(%op/Slice, 0.0)
  %op/Concat: float32[1,5] = Concat(%op/Max, %op/Slice_1, axis=1)
  %op/MaxRoiPool: float32[1,2,2,2] = MaxRoiPool(%x0, %op/Concat, pooled_shape=[2, 2], spatial_scale=0.5)
  %op/Cast: int64[1,1] = Cast(%op/Slice, round_mode='up', saturate=1, to=7)
  %op/Less: bool[1,1] = Less(%op/Cast, 0)
  %op/Unsqueeze: bool[1,1,1,1] = Unsqueeze(%op/Less, [2, 3])
  %op_output: float32[1,2,2,2] = Where(%op/Unsqueeze, 0.0, %op/MaxRoiPool)
  return %op_output
"""
    ),
    case("_np_cumsum", f32(2, 3), axis=1).but(
        printed="""
graph case(%x0: float32[2,3]):
  %op_output: float32[2,3] = CumSum(%x0, 1, exclusive=0, reverse=0)
  return %op_output
"""
    ),
    case("depth_to_space", f32(1, 4, 2, 2), block_size=2).but(
        printed="""
graph case(%x0: float32[1,4,2,2]):
  %op_output: float32[1,1,4,4] = DepthToSpace(%x0, blocksize=2, mode='DCR')
  return %op_output
"""
    ),
    case("_linalg_trmm", f32(3, 3), f32(3, 3, seed=1)).but(
        printed="""
graph case(%x0: float32[3,3], %x1: float32[3,3]):
  %op/Trilu: float32[3,3] = Trilu(%x0, 0, upper=0)
  %op_output: float32[3,3] = MatMul(%op/Trilu, %x1)
  return %op_output
"""
    ),
    case("_np_roll", f32(2, 3), shift=1, axis=1)
    .but(np_shape=True)
    .but(
        printed="""
graph case(%x0: float32[2,3]):
  %op/Slice: float32[2,1] = Slice(%x0, [2], [2147483647], [1], [1])
  %op/Slice_1: float32[2,2] = Slice(%x0, [0], [2], [1], [1])
  %op_output: float32[2,3] = Concat(%op/Slice, %op/Slice_1, axis=1)
  return %op_output
"""
    ),
]

test_printed = operator_test(CASES)
