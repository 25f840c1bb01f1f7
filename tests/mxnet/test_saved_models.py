"""Files as MXNet's own ways of saving leave them, converted and compared with the live network."""

from __future__ import annotations

import tarfile

import numpy as np
import onnxruntime
import pytest

import serde
from serde.errors import SerdeError
from testing.mxnet_live import live_mxnet

GENERATOR = np.random.default_rng(5)
X = GENERATOR.standard_normal((2, 3, 6, 6)).astype("float32")


def convert_and_run(source, target, **options):
    """What the conversion of a model for a batch of any size gives for ``X``, by output."""
    serde.convert(source, target, inputs={"data": ("N", *X.shape[1:])}, **options)
    session = onnxruntime.InferenceSession(str(target))
    names = [o.name for o in session.get_outputs()]
    assert [i.name for i in session.get_inputs()] == ["data"]
    return dict(zip(names, session.run(None, {"data": X}), strict=True))


def trained_symbol(mx, label):
    """A network as Module trains it, with two heads of which one reads a label."""
    y = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="conv")
    y = mx.sym.Activation(mx.sym.BatchNorm(y, name="norm"), act_type="relu", name="relu")
    y = mx.sym.FullyConnected(mx.sym.Dropout(y), num_hidden=5, name="dense")
    head = mx.sym.SoftmaxOutput(y, mx.sym.var(label), name="prob", normalization="batch")
    return mx.sym.Group([head, mx.sym.BlockGrad(y, name="scores")])


@pytest.fixture(scope="module", params=["softmax_label", "answer", "the_truth_label"])
def checkpoint(request, tmp_path_factory):
    """The prefix of a Module's checkpoint, and a function from internals to what MXNet gives."""
    mx = live_mxnet()
    symbol = trained_symbol(mx, request.param)
    module = mx.mod.Module(symbol, label_names=[request.param], context=mx.cpu())
    shapes = [("data", X.shape)], [(request.param, (len(X),))]
    module.bind(*shapes)
    mx.random.seed(2)
    module.init_params(mx.init.Normal(0.3))
    held = module.get_params()
    for name, array in held[1].items():
        array[:] = GENERATOR.uniform(0.5, 1.5, array.shape) * ("var" in name)
    module.set_params(*held)
    prefix = tmp_path_factory.mktemp("module") / "trained"
    module.save_checkpoint(str(prefix), 7)

    def live(name):
        part = symbol.get_internals()[name]
        names = {*part.list_arguments(), *part.list_auxiliary_states()}
        arrays = {n: a for group in held for n, a in group.items() if n in names}
        arrays["data"] = mx.nd.array(X)
        if request.param in names:
            arrays[request.param] = mx.nd.zeros(len(X))
        states = {n: arrays.pop(n) for n in part.list_auxiliary_states()}
        bound = part.bind(mx.cpu(), arrays, grad_req="null", aux_states=states)
        return bound.forward()[0].asnumpy()

    return prefix, live


def test_a_checkpoint_of_a_module(checkpoint, tmp_path):
    prefix, live = checkpoint
    got = convert_and_run(prefix, tmp_path / "trained.onnx")
    assert [*got] == ["prob_output", "scores_output"]
    for name, y in got.items():
        np.testing.assert_allclose(y, live(name), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("internal", ["relu", "norm_output", "dense", "conv_output"])
def test_cut_at_an_internal(checkpoint, internal, tmp_path):
    prefix, live = checkpoint
    ((name, y),) = convert_and_run(prefix, tmp_path / "part.onnx", outputs=[internal]).items()
    assert name == internal.removesuffix("_output") + "_output"
    np.testing.assert_allclose(y, live(name), rtol=1e-4, atol=1e-5)


def test_a_model_of_sagemaker(checkpoint, tmp_path):
    """Its image classifier packs a checkpoint and a list of shapes."""
    prefix, live = checkpoint
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for end in ("-symbol.json", "-0007.params"):
            packed.add(f"{prefix}{end}", f"model_algo_1{end}")
        shapes = tmp_path / "model-shapes.json"
        shapes.write_text('[{"shape": [2, 3, 6, 6], "name": "data"}]')
        packed.add(shapes, shapes.name)
    got = convert_and_run(archive, tmp_path / "trained.onnx")
    np.testing.assert_allclose(got["prob_output"], live("prob_output"), rtol=1e-4, atol=1e-6)


def block(mx):
    """A block of several kinds of layers, two of one shape among them."""
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    for _ in range(2):
        net.add(nn.Conv2D(3, 3, padding=1, in_channels=3), nn.BatchNorm(in_channels=3))
    net.add(nn.Dense(7, in_units=108, activation="tanh"), nn.Dense(7, in_units=7))
    return net


def test_saved_parameters_with_the_symbol_of_another_block(tmp_path):
    """``save_parameters`` names arrays by where they stand, and prefixes count blocks."""
    mx = live_mxnet()
    net, other = block(mx), block(mx)
    for number, one in enumerate((net, other)):
        mx.random.seed(number)
        one.initialize(mx.init.Normal(0.3))
        for name, parameter in one.collect_params("running_.*|.*gamma|.*beta").items():
            low = 0.5 if name.endswith("var") else -1
            drawn = GENERATOR.uniform(low, 1.5, parameter.shape)
            parameter.set_data(mx.nd.array(drawn))
    other.hybridize()
    other(mx.nd.array(X))
    other.export(str(tmp_path / "other"))
    net.save_parameters(str(tmp_path / "net.params"))
    symbol, options = tmp_path / "other-symbol.json", {"params": tmp_path / "net.params"}
    with pytest.raises(SerdeError, match="match_params="):
        convert_and_run(symbol, tmp_path / "net.onnx", **options)
    (y,) = convert_and_run(symbol, tmp_path / "net.onnx", match_params=True, **options).values()
    np.testing.assert_allclose(y, net(mx.nd.array(X)).asnumpy(), rtol=1e-4, atol=1e-5)
