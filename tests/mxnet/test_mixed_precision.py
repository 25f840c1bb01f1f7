"""Networks that MXNet's automatic mixed precision wrote, and weights of few bits."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

import serde
from serde.bridges.mxnet import run
from serde.ir.graph import DType
from testing.mxnet_live import live_mxnet

X = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32")
HALF, SHORT = 2e-3, 2e-2  # of the scale: float16 has 11 bits, bfloat16 has 8
OPSETS = (11, 17, 21)
UNDECIDED = pytest.mark.filterwarnings("ignore:Cannot decide type:UserWarning")  # MXNet's own


def network():
    """Convolutions, BatchNorm, a sum, joined branches of which AMP keeps one in float32."""
    mx = live_mxnet()
    nn = mx.gluon.nn

    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="net_")
            with self.name_scope():
                self.first, self.norm = nn.Conv2D(4, 3, padding=1), nn.BatchNorm()
                self.side, self.last = nn.Conv2D(4, 1), nn.Dense(5)

        def hybrid_forward(self, F, x):
            y = F.relu(self.norm(self.first(x)))
            y = y + self.side(y)
            return F.softmax(self.last(y * F.exp(-y)))

    net = Net()
    mx.random.seed(3)
    net.initialize(mx.init.Normal(0.3))
    net.hybridize()
    return net, net(mx.nd.array(X)).asnumpy()


@pytest.fixture(scope="module")
def trained():
    return network()


def symbol_and_arrays(net):
    mx = live_mxnet()
    symbol = net(mx.sym.var("data"))
    held = {n: p.data() for n, p in net.collect_params().items()}
    return symbol, *(
        {n: held[n] for n in names if n in held}
        for names in (symbol.list_arguments(), symbol.list_auxiliary_states())
    )


def save_model(prefix, symbol, arguments, states, casts):
    """Write a symbol and its arrays as Module and Gluon do."""
    symbol.save(f"{prefix}-symbol.json", remove_amp_cast=not casts)
    arrays = {f"arg:{n}": x for n, x in arguments.items()}
    live_mxnet().nd.save(
        f"{prefix}-0000.params", arrays | {f"aux:{n}": x for n, x in states.items()}
    )
    return prefix


def convolution_types(prefix, opset=17):
    graph = serde.load(prefix, inputs={"data": X.shape})
    return {n.inputs[1].dtype for n in graph.nodes if n.op == "Conv"}


def run_onnx(path):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    return onnxruntime.InferenceSession(path, settings).run(None, {"data": X})[0]


def off(y, expected):
    assert y.shape == expected.shape and y.dtype == expected.dtype
    return np.abs(y - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("narrow", [False, True], ids=["float32 weights", "float16 weights"])
@pytest.mark.parametrize("batch", [2, "N"])
def test_amp_of_halves(trained, narrow, batch, tmp_path):
    """MXNet computes no halves on a CPU: its float32 network is the judge."""
    from mxnet.contrib import amp

    net, expected = trained
    parts = amp.convert_model(
        *symbol_and_arrays(net), target_dtype="float16", cast_optional_params=narrow
    )
    prefix = save_model(tmp_path / "net", *parts, casts=True)
    assert convolution_types(prefix) == {DType.FLOAT16}
    for opset in OPSETS:
        target = str(tmp_path / "net.onnx")
        serde.convert(prefix, target, inputs={"data": (batch, *X.shape[1:])}, opset=opset)
        assert off(run_onnx(target), expected) < HALF


@UNDECIDED
@pytest.mark.parametrize("kept", [False, True], ids=["casts left out", "casts kept"])
def test_amp_of_a_block(trained, kept, tmp_path):
    """``export`` leaves AMP's casts out unless told otherwise."""
    from mxnet.contrib import amp

    net, expected = trained
    mx = live_mxnet()
    block = amp.convert_hybrid_block(net, target_dtype="float16", ctx=mx.cpu())
    with pytest.raises(mx.MXNetError, match="FP16 gemm on cpu"):  # a block is to run before export
        block(mx.nd.array(X)).asnumpy()
    block.export(str(tmp_path / "net"), remove_amp_cast=not kept)
    assert convolution_types(tmp_path / "net") == {DType.FLOAT16 if kept else DType.FLOAT32}
    serde.convert(tmp_path / "net", tmp_path / "net.onnx", inputs={"data": X.shape})
    assert off(run_onnx(str(tmp_path / "net.onnx")), expected) < (HALF if kept else 1e-5)


@UNDECIDED
def test_amp_of_bfloat16(trained, tmp_path):
    """ONNX Runtime's CPU does not compute it: onnx's reference does.

    MXNet computes it on processors with AVX-512; on others its float32 stands for that.
    """
    from mxnet.contrib import amp

    net, expected = trained
    mx = live_mxnet()
    block = amp.convert_hybrid_block(net, target_dtype="bfloat16", ctx=mx.cpu())
    try:
        expected = block(mx.nd.array(X)).asnumpy()
    except mx.MXNetError as error:
        assert "could not create a primitive descriptor" in str(error)
    block.export(str(tmp_path / "net"), remove_amp_cast=False)
    assert convolution_types(tmp_path / "net") == {DType.BFLOAT16}
    for opset in (13, 22):
        serde.convert(
            tmp_path / "net", tmp_path / "net.onnx", inputs={"data": X.shape}, opset=opset
        )
        model = onnx.load(tmp_path / "net.onnx")
        (y,) = ReferenceEvaluator(model).run(None, {"data": X})
        assert off(y, expected) < SHORT


def test_a_network_cast_to_halves(trained, tmp_path):
    """``block.cast("float16")``: the input is of halves as well."""
    net, expected = trained
    symbol, arguments, states = symbol_and_arrays(net)
    halves = [{n: x.astype("float16") for n, x in part.items()} for part in (arguments, states)]
    prefix = save_model(tmp_path / "net", symbol, *halves, casts=True)
    target = str(tmp_path / "net.onnx")
    serde.convert(prefix, target, inputs={"data": (X.shape, "float16")})
    (y,) = onnxruntime.InferenceSession(target).run(None, {"data": X.astype("float16")})
    assert y.dtype == np.float16
    assert off(y.astype("float32"), expected) < 5 * HALF


def test_weights_of_int8(tmp_path):
    """Stored in a byte each and scaled in the network, and they stay so in the file."""
    mx = live_mxnet()
    generator = np.random.default_rng(1)
    arrays = {
        "weight": generator.integers(-128, 128, (64, 80)).astype("int8"),
        "scale": generator.uniform(0.01, 0.02, (64, 1)).astype("float32"),
    }
    weight = mx.sym.broadcast_mul(mx.sym.Cast(mx.sym.var("weight"), "float32"), mx.sym.var("scale"))
    y = mx.sym.FullyConnected(mx.sym.var("data"), weight, num_hidden=64, no_bias=True)
    held = {n: mx.nd.array(x, dtype=x.dtype) for n, x in arrays.items()}
    prefix = save_model(tmp_path / "net", y, held, {}, casts=True)
    data = generator.standard_normal((3, 80)).astype("float32")
    (expected,) = run(str(prefix), {"data": data})
    for opset in OPSETS:
        target = str(tmp_path / "net.onnx")
        serde.convert(prefix, target, inputs={"data": ("N", 80)}, opset=opset)
        assert TensorProto.INT8 in {t.data_type for t in onnx.load(target).graph.initializer}
        (got,) = onnxruntime.InferenceSession(target).run(None, {"data": data})
        assert off(got, expected) < 1e-5


@pytest.mark.parametrize("fused", [False, True], ids=["layer by layer", "fused by oneDNN"])
def test_a_network_that_mxnet_quantised(trained, fused, tmp_path):
    """Its weights are stored as int8, and calibrated by MXNet on the sample itself."""
    from mxnet.contrib import quantization

    net, _ = trained
    mx = live_mxnet()
    quantise = quantization.quantize_model_mkldnn if fused else quantization.quantize_model
    unable = ["elemwise_add", "elemwise_mul"]  # of some types of operands, which MXNet picks
    quantised = quantise(
        *symbol_and_arrays(net), data_names=("data",), label_names=(), ctx=mx.cpu(),
        calib_mode="naive", calib_data=mx.io.NDArrayIter(X, batch_size=1), num_calib_examples=2,
        quantized_dtype="auto" if fused else "int8", logger=None,
        excluded_op_names=unable if fused else [*unable, "Convolution"],
    )  # fmt: skip
    prefix = save_model(tmp_path / "net", *quantised, casts=True)
    (expected,) = run(str(prefix), {"data": X})
    target = str(tmp_path / "net.onnx")
    serde.convert(prefix, target, inputs={"data": ("N", *X.shape[1:])})
    assert TensorProto.INT8 in {t.data_type for t in onnx.load(target).graph.initializer}
    assert off(run_onnx(target), expected) < 1e-2
