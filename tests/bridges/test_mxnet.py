"""MXNet's live objects, and MXNet itself on today's NumPy."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.bridges import mxnet as bridge
from serde.errors import MissingDependency, SerdeError, Unconvertible, UsageError
from testing.mxnet_live import live_mxnet

X = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def mx():
    return live_mxnet()


@pytest.fixture(scope="module")
def net(mx):
    """A small block that has run, its parameters seeded, no two of them alike."""
    block = mx.gluon.nn.HybridSequential(prefix="net_")
    with block.name_scope():
        block.add(
            mx.gluon.nn.Conv2D(4, 3, padding=1, in_channels=3),
            mx.gluon.nn.BatchNorm(in_channels=4),
            mx.gluon.nn.Activation("relu"),
            mx.gluon.nn.Dropout(0.5),
            mx.gluon.nn.Dense(5, in_units=256),
        )
    block.initialize()
    rng = np.random.default_rng(2)
    for param in block.collect_params().values():
        param.set_data(mx.nd.array(rng.uniform(0.1, 0.5, param.shape)))
    block.hybridize()
    block(mx.nd.array(X))
    return block


@pytest.fixture(scope="module")
def exported(mx, net, tmp_path_factory):
    """The block's files: symbol and parameters."""
    prefix = tmp_path_factory.mktemp("mxnet") / "net"
    net.export(str(prefix), epoch=3)
    return f"{prefix}-symbol.json", f"{prefix}-0003.params"


@pytest.fixture(scope="module")
def symbol(mx, exported):
    return mx.sym.load(exported[0])


@pytest.fixture(scope="module")
def arrays(mx, exported):
    return mx.nd.load(exported[1])


@pytest.fixture(scope="module")
def expected(mx, net):
    return net(mx.nd.array(X)).asnumpy()


def run_onnx(path, feeds=None):
    session = onnxruntime.InferenceSession(os.fspath(path))
    return session.run(None, feeds or {"data": X})


def plain(arrays):
    return {n.partition(":")[2]: a for n, a in arrays.items()}


FORMS = {
    "a saved dictionary": lambda mx, arrays: arrays,
    "plain names": lambda mx, arrays: plain(arrays),
    "NumPy arrays": lambda mx, arrays: {n: a.asnumpy() for n, a in plain(arrays).items()},
    "arguments and states": lambda mx, arrays: tuple(
        {n[4:]: a for n, a in arrays.items() if n.startswith(kind)} for kind in ("arg:", "aux:")
    ),
    "a list of both": lambda mx, arrays: [
        {n[4:]: a for n, a in arrays.items() if n.startswith(kind)} for kind in ("arg:", "aux:")
    ],
    "a sparse array among them": lambda mx, arrays: {
        n: a.tostype("row_sparse") if n.endswith("weight") and a.ndim == 2 else a
        for n, a in plain(arrays).items()
    },
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_symbol_with_its_parameters_in_any_form(mx, symbol, arrays, expected, form, tmp_path):
    path = serde.export(symbol, form(mx, arrays), "onnx", tmp_path / "m.onnx",
                        inputs={"data": ("N", 3, 8, 8)})  # fmt: skip
    np.testing.assert_allclose(run_onnx(path)[0], expected, rtol=1e-5)


def test_a_symbol_with_a_file_of_parameters(symbol, exported, expected, tmp_path):
    serde.convert(symbol, tmp_path / "m.onnx", params=exported[1])
    np.testing.assert_allclose(run_onnx(tmp_path / "m.onnx")[0], expected, rtol=1e-5)


def test_a_live_symbol_gives_what_its_file_does(symbol, arrays, exported, tmp_path):
    shape = {"data": (2, 3, 8, 8)}
    serde.convert(symbol, tmp_path / "live.onnx", params=arrays, inputs=shape)
    serde.convert(exported[0], tmp_path / "file.onnx", inputs=shape)
    live, file = (onnx.load(tmp_path / f"{n}.onnx") for n in ("live", "file"))
    assert [n.SerializeToString() for n in live.graph.node] == [
        n.SerializeToString() for n in file.graph.node
    ]


def test_a_hybridized_block(net, expected, tmp_path):
    report = serde.convert(net, tmp_path / "m.onnx", inputs={"data": X}, verify=True)
    assert report.verification.ok and report.verification.source == "mxnet"
    np.testing.assert_allclose(run_onnx(tmp_path / "m.onnx")[0], expected, rtol=1e-5)


def test_a_block_that_has_not_run_is_refused(mx):
    block = mx.gluon.nn.Dense(2, prefix="d_")
    with pytest.raises(UsageError, match=r"block 'd' has no symbol yet: call hybridize\(\).*trace"):
        serde.load(block)


def test_a_block_holds_its_own_parameters(net, arrays):
    with pytest.raises(UsageError, match="leave params out"):
        serde.load(net, params=arrays)


def test_parameters_that_are_none(symbol):
    with pytest.raises(UsageError, match="a mapping of names to arrays, not int"):
        serde.load(symbol, params=3)


def test_missing_parameters_are_refused_and_extra_ones_left_out_as_in_files(symbol, arrays):
    some = {n: a for n, a in plain(arrays).items() if not n.endswith("conv0_bias")}
    with pytest.raises(SerdeError, match="net_conv0_bias"):
        serde.load(symbol, params=some)
    more = {**plain(arrays), "stray": np.zeros(2, np.float32)}
    for ignore_extra in (False, True):
        graph = serde.load(symbol, params=more, ignore_extra=ignore_extra)
        assert any("'stray' left out" in note for note in graph.notes)


class TestFacade:
    def test_the_names_as_announced(self, mx):
        assert mx.serde.export is serde.export and mx.serde.import_ is serde.import_
        assert getattr(mx.serde, "import") is serde.import_ and mx.serde.load is serde.load
        assert sys.modules["mxnet.serde"] is mx.serde

    def test_export_and_import(self, mx, symbol, arrays, expected, tmp_path):
        path = mx.serde.export(symbol, arrays, "onnx", str(tmp_path / "m.onnx"))
        np.testing.assert_allclose(run_onnx(path)[0], expected, rtol=1e-5)
        again, params = mx.serde.import_(path, other_format="onnx")
        assert again.list_outputs() == symbol.list_outputs()
        assert mx.serde.export(again, params, "onnx", path) == path
        np.testing.assert_allclose(run_onnx(path)[0], expected, rtol=1e-5)
        graph = mx.serde.import_(path, other_format="onnx", to="graph")
        assert [v.name for v in graph.inputs] == ["data"]

    def test_a_path_is_chosen_where_none_is_given(
        self, mx, symbol, arrays, exported, monkeypatch, tmp_path
    ):
        monkeypatch.chdir(tmp_path)
        assert mx.serde.export(symbol, arrays, "onnx") == f"{symbol.name}.onnx"
        assert mx.serde.export(exported[0], exported[1]) == exported[0].replace(
            "-symbol.json", ".onnx"
        )

    def test_an_object_is_written_as_it_is(self, mx, symbol, arrays, expected, tmp_path):
        path = mx.serde.export(symbol, arrays, "mxnet", tmp_path / "m-symbol.json")
        again, arguments, states = mx.model.load_checkpoint(str(tmp_path / "m"), 0)
        assert path == str(tmp_path / "m-symbol.json")
        assert again.list_outputs() == symbol.list_outputs()
        held = [*(f"arg:{n}" for n in arguments), *(f"aux:{n}" for n in states)]
        assert set(held) <= set(arrays)


class TestExportModel:
    def test_the_signature_begins_as_that_of_mxnet(self, mx):
        """Every parameter of ``mxnet.onnx.export_model``, in order and with its default."""
        theirs = inspect.signature(mx.onnx.export_model).parameters
        ours = inspect.signature(bridge.export_model).parameters
        expected = [(p.name, p.default, p.kind) for p in theirs.values()]
        assert [(p.name, p.default, p.kind) for p in ours.values()][: len(expected)] == expected
        assert all(p.kind is p.KEYWORD_ONLY or p.kind is p.VAR_KEYWORD
                   for p in list(ours.values())[len(expected) :])  # fmt: skip

    @pytest.mark.parametrize("live", [True, False])
    def test_objects_and_paths(self, symbol, arrays, exported, expected, live, tmp_path):
        source = (symbol, arrays) if live else exported
        path = str(tmp_path / "m.onnx")
        assert bridge.export_model(*source, [(2, 3, 8, 8)], np.float32, path) == path
        np.testing.assert_allclose(run_onnx(path)[0], expected, rtol=1e-5)
        assert shapes_of(path) == {"data": [2, 3, 8, 8]}

    def test_shapes_follow_the_order_of_the_data_inputs(self, mx, tmp_path):
        b, a = mx.sym.Variable("b"), mx.sym.Variable("a")
        weight = mx.sym.Variable("w")
        y = mx.sym.FullyConnected(b, weight, num_hidden=2, no_bias=True) + a
        label = mx.sym.Variable("softmax_label")
        out = mx.sym.SoftmaxOutput(y, label, name="softmax")
        path = str(tmp_path / "m.onnx")
        bridge.export_model(out, {"w": mx.nd.ones((2, 5))}, [(3, 5), (3, 2)], np.float32, path)
        assert shapes_of(path) == {"b": [3, 5], "a": [3, 2]}
        with pytest.raises(UsageError, match="1 input shapes for 2 inputs: 'b', 'a'"):
            bridge.export_model(out, {"w": mx.nd.ones((2, 5))}, [(3, 5)], np.float32, path)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"dynamic": True}, [None] * 4),
            ({"dynamic": True, "dynamic_input_shapes": [("N", 3, "H", None)]}, ["N", 3, "H", None]),
            ({"dynamic": True, "dynamic_input_shapes": [("None", 3, 8, 8)]}, [None, 3, 8, 8]),
            ({}, [2, 3, 8, 8]),
        ],
    )
    def test_open_dimensions(self, mx, options, expected, tmp_path):
        path = str(tmp_path / "m.onnx")
        net = mx.sym.relu(mx.sym.Variable("data"))
        bridge.export_model(net, {}, [(2, 3, 8, 8)], np.float32, path, **options)
        assert shapes_of(path)["data"] == expected
        np.testing.assert_array_equal(run_onnx(path)[0], np.maximum(X, 0))

    @pytest.mark.parametrize(
        ("shapes", "options", "expected"),
        [
            ([(2, 4)], {}, [2, 4]),
            ([[2, 4]], {}, [2, 4]),
            (((2, 4),), {}, [2, 4]),
            (np.ones((1, 2), int) * [2, 4], {}, [2, 4]),
            ((2, 4), {}, [2, 4]),
            ((2, 4), {"dynamic": True}, [None, None]),
            ((2, 4), {"dynamic": True, "dynamic_input_shapes": (None, 4)}, [None, 4]),
            (None, {"dynamic": True, "dynamic_input_shapes": [("N", 4)]}, ["N", 4]),
            ([None], {}, None),
        ],
        ids=str,
    )
    def test_forms_of_shapes(self, mx, shapes, options, expected, tmp_path):
        path = str(tmp_path / "m.onnx")
        net = mx.sym.relu(mx.sym.Variable("data"))
        if expected is None:
            with pytest.raises(UsageError, match="needs its shape|inputs={'data': "):
                bridge.export_model(net, {}, shapes, np.float32, path)
            return
        bridge.export_model(net, {}, shapes, np.float32, path, **options)
        assert shapes_of(path) == {"data": expected}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"dynamic_input_shapes": [(None, 4)]}, "set dynamic=True"),
            ({"dynamic": True, "dynamic_input_shapes": [(None, 4, 1)]}, "not of the ranks of"),
            ({"dynamic": True, "dynamic_input_shapes": [(None, 4), (2,)]}, "not of the ranks of"),
        ],
    )
    def test_dynamic_shapes_go_with_the_shapes(self, mx, options, message, tmp_path):
        """As MXNet's exporter asserts."""
        net = mx.sym.relu(mx.sym.Variable("data"))
        with pytest.raises(UsageError, match=message):
            bridge.export_model(net, {}, [(2, 4)], np.float32, str(tmp_path / "m.onnx"), **options)

    @pytest.mark.parametrize("kinds", ["float64", [np.float64], (np.dtype("float64"),), np.float64])
    def test_forms_of_types(self, mx, kinds, tmp_path):
        path = str(tmp_path / "m.onnx")
        bridge.export_model(mx.sym.relu(mx.sym.Variable("data")), {}, [(2,)], kinds, path)
        (info,) = onnx.load(path).graph.input
        assert info.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE

    @pytest.mark.parametrize(
        "form",
        [
            lambda p: p,
            lambda p: {f"arg:{n}": a for n, a in p.items()},
            lambda p: [p, {}],
            lambda p: ({}, p),
            lambda p: {**p, "unused": p["w"]},
        ],
    )
    def test_forms_of_parameters(self, mx, form, tmp_path):
        path = str(tmp_path / "m.onnx")
        params = form({"w": mx.nd.array([[2, 3]])})
        net = mx.sym.FullyConnected(
            mx.sym.Variable("data"), mx.sym.Variable("w"), num_hidden=1, no_bias=True
        )
        bridge.export_model(net, params, [(1, 2)], np.float32, path)
        session = onnxruntime.InferenceSession(path)
        assert session.run(None, {"data": np.float32([[4, 5]])})[0] == 23

    def test_parameters_of_other_releases(self, symbol, arrays, tmp_path):
        path = tmp_path / "m.onnx"
        bridge.export_model(
            symbol, arrays, [(2, 3, 8, 8)], np.float32, str(path), opset_version=12,
            large_model=True,
        )  # fmt: skip
        model = onnx.load(str(path), load_external_data=False)
        assert model.opset_import[0].version == 12
        assert any(i.data_location == onnx.TensorProto.EXTERNAL for i in model.graph.initializer)

    def test_older_names_and_a_type_for_each_input(self, mx, tmp_path):
        path = str(tmp_path / "m.onnx")
        net = mx.sym.Embedding(
            mx.sym.Variable("i"), mx.sym.Variable("w"), input_dim=4, output_dim=2
        )
        net = mx.sym.broadcast_add(net, mx.sym.Variable("x"))
        bridge.export_model(
            net, {"w": mx.nd.ones((4, 2))}, onnx_file_path=path,
            input_shape=[(3,), (3, 2)], input_type=[np.int32, np.float32],
        )  # fmt: skip
        kinds = [i.type.tensor_type.elem_type for i in onnx.load(path).graph.input]
        assert kinds == [onnx.TensorProto.INT32, onnx.TensorProto.FLOAT]

    @pytest.mark.parametrize(
        ("op", "attrs", "written"),
        [
            ("_random_normal", {"loc": 5, "scale": 2}, "RandomNormal"),
            ("_random_uniform", {"low": 2, "high": 4}, "RandomUniform"),
        ],
    )
    def test_random_operators_are_those_of_onnx(self, mx, op, attrs, written, tmp_path):
        """As MXNet's exporter has them; other ways are options."""
        path, data = str(tmp_path / "m.onnx"), mx.sym.Variable("data")
        draw = getattr(mx.sym._internal, op)
        noise = draw(shape=(2, 300), **attrs)
        bridge.export_model(noise + data, {}, [(2, 300)], np.float32, path)
        assert written in {n.op_type for n in onnx.load(path).graph.node}
        session = onnxruntime.InferenceSession(path)
        y = session.run(None, {"data": np.zeros((2, 300), "float32")})[0]
        mean = attrs.get("loc", 3)
        assert abs(y.mean() - mean) < 0.5 and y.std() > 0.3
        with pytest.raises(Unconvertible, match="draws random numbers"):
            bridge.export_model(noise + data, {}, [(2, 300)], np.float32, path, random="refuse")

    def test_verbose_prints_a_report_and_options_go_through(self, symbol, arrays, capsys, tmp_path):
        path = str(tmp_path / "m.onnx")
        bridge.export_model(symbol, arrays, [(2, 3, 8, 8)], np.float32, path, True,
                            run_shape_inference=True, opset=13)  # fmt: skip
        assert '"ok": true' in capsys.readouterr().out
        assert onnx.load(path).opset_import[0].version == 13


def shapes_of(path):
    return {
        i.name: [d.dim_param or (d.dim_value if d.HasField("dim_value") else None)
                 for d in i.type.tensor_type.shape.dim]
        for i in onnx.load(path).graph.input
    }  # fmt: skip


class TestRun:
    def test_files_and_objects_are_run_in_inference_mode(self, symbol, arrays, exported, expected):
        for source, params in ((exported[0], None), (symbol, arrays), (symbol, exported[1])):
            (y,) = bridge.run(source, {"data": X}, params=params)
            np.testing.assert_array_equal(y, expected)

    def test_inner_layers_are_run(self, symbol, arrays):
        inner = [n for n in symbol.get_internals().list_outputs() if n.endswith("fwd_output")][:2]
        outputs = bridge.run(symbol, {"data": X}, params=arrays, outputs=inner)
        assert [y.shape for y in outputs] == [(2, 4, 8, 8)] * 2
        by_layer = bridge.run(symbol, {"data": X}, params=arrays,
                              outputs=[n.removesuffix("_output") for n in inner])  # fmt: skip
        np.testing.assert_array_equal(outputs[0], by_layer[0])

    def test_labels_are_made_up(self, mx):
        net = mx.sym.SoftmaxOutput(mx.sym.Variable("data"), name="softmax")
        (y,) = bridge.run(net, {"data": np.zeros((2, 4), np.float32)})
        np.testing.assert_allclose(y, np.full((2, 4), 0.25))

    def test_inputs_the_model_cannot_take_are_told(self, symbol, arrays):
        with pytest.raises(SerdeError, match="MXNet cannot run the model on these inputs: .*Shape"):
            bridge.run(symbol, {"data": X[:, :, :4]}, params=arrays)

    def test_a_conversion_is_verified_layer_by_layer_of_choice(self, symbol, arrays, tmp_path):
        inner = [n for n in symbol.get_internals().list_outputs() if n.endswith("fwd_output")]
        comparison = serde.convert(symbol, tmp_path / "m.onnx", params=arrays, inputs={"data": X},
                                   outputs=[inner[0], inner[-1]], rename={"data": "pixels"},
                                   verify=True).verification  # fmt: skip
        assert comparison.ok and [o.name for o in comparison.outputs] == [inner[0], inner[-1]]

    def test_wrong_weights_are_found(self, symbol, arrays, exported, tmp_path):
        wrong = {n: a * 1.01 if n.endswith("dense0_weight") else a for n, a in arrays.items()}
        serde.convert(symbol, tmp_path / "m.onnx", params=wrong, inputs={"data": X})
        comparison = serde.verify(exported[0], tmp_path / "m.onnx")
        assert comparison.done and not comparison.ok


def test_without_mxnet_the_pip_line_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "mxnet", None)
    with pytest.raises(MissingDependency, match="pip install --no-deps mxnet==1.9.1 .* setuptools"):
        bridge.import_mxnet()


def fresh(code):
    """Run ``code`` in a new interpreter, in which every warning is an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )


def test_importing_the_bridge_lets_mxnet_be_imported():
    live_mxnet()
    proc = fresh(
        "import sys, serde.bridges.mxnet\n"
        "assert 'mxnet' not in sys.modules\n"
        "import mxnet\n"
        "assert mxnet.nd.ones((2,)).asnumpy().sum() == 2\n"
        "import mxnet.serde as facade\n"
        "assert facade is mxnet.serde and callable(facade.export)\n"
    )
    assert (proc.returncode, proc.stderr) == (0, "")


def test_layers_take_sizes_that_are_numpys_numbers(mx):
    layer = mx.gluon.nn.Conv2D(np.int64(4), np.int64(3), in_channels=np.int64(2))
    assert layer.weight.shape == (4, 2, 3, 3)
    assert mx.sym.var("x", shape=(np.int64(3), 4)).attr("__shape__") == "(3, 4)"


def test_importing_mxnet_first_serves_as_well():
    live_mxnet()
    proc = fresh(
        "from serde.bridges.numpy_compat import import_mxnet\n"
        "mxnet = import_mxnet()\n"
        "assert not hasattr(mxnet, 'serde')\n"
        "import serde.bridges.mxnet\n"
        "assert callable(mxnet.serde.export)\n"
    )
    assert (proc.returncode, proc.stderr) == (0, "")


def test_the_finder_is_put_in_once_and_finds_nothing_else():
    import importlib

    finders = [f for f in sys.meta_path if type(f).__name__ == "_Finder"]
    assert len(finders) == 1
    importlib.reload(bridge)
    assert len([f for f in sys.meta_path if type(f).__name__ == "_Finder"]) <= 2
    assert finders[0].find_spec("numpy", None) is None
    assert finders[0].find_spec("mxnet.gluon", None) is None


class TestPlainKernels:
    """``kernels="plain"`` runs MXNet in a process that does not use oneDNN."""

    def test_a_conversion_is_compared_with_the_kernels_it_follows(self, mx, tmp_path):
        net = mx.sym.SoftmaxOutput(mx.sym.Variable("file"), name="softmax")
        options = {"inputs": {"file": (2, 3, 4, 5)}, "verify": True}
        stock = serde.convert(net, tmp_path / "stock.onnx", **options)
        plain = serde.convert(net, tmp_path / "plain.onnx", kernels="plain", **options)
        assert stock.ok and plain.ok
        x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("float32")
        feeds = {"file": x}
        (row,), (sample,) = bridge.run(net, feeds), bridge.run(net, feeds, kernels="plain")
        np.testing.assert_allclose(row.sum(3), 1, rtol=1e-5)
        np.testing.assert_allclose(sample.sum((1, 2, 3)), 1, rtol=1e-5)

    def test_parameters_and_outputs_are_handed_over(self, mx):
        x, w = np.float32([[1, 2]]), np.float32([[3, 4], [5, 6]])
        net = mx.sym.FullyConnected(
            mx.sym.Variable("x"), mx.sym.Variable("a/w"), num_hidden=2, no_bias=True, name="fc"
        )
        params = {"a/w": mx.nd.array(w)}
        options = {"params": params, "outputs": ["fc"], "kernels": "plain"}
        (actual,) = bridge.run(mx.sym.relu(net), {"x": x}, **options)
        np.testing.assert_array_equal(actual, x @ w.T)

    def test_what_mxnet_cannot_run_is_an_error_of_ours(self, mx):
        net = mx.sym.Deconvolution(mx.sym.Variable("x"), mx.sym.Variable("w"), kernel=(2, 2, 2),
                                   num_filter=2, no_bias=True)  # fmt: skip
        shapes = {"x": (1, 2, 3, 3, 3), "w": (2, 2, 2, 2, 2)}
        feeds = {name: np.zeros(shape, "float32") for name, shape in shapes.items()}
        with pytest.raises(
            SerdeError, match="MXNet cannot run the model on these inputs: MXNetErr"
        ):
            bridge.run(net, feeds, kernels="plain")

    def test_there_are_two_kinds(self, mx, tmp_path):
        net = mx.sym.relu(mx.sym.Variable("x"))
        with pytest.raises(SerdeError, match="kernels='mkl' is not one of onednn, plain"):
            serde.convert(net, tmp_path / "m.onnx", inputs={"x": (2,)}, kernels="mkl")


OLD_SCRIPT = """
import numpy as np
import serde.bridges.mxnet
serde.bridges.mxnet.install()
import mxnet as mx
from mxnet.contrib import onnx as onnx_mxnet
from mxnet.contrib.onnx.mx2onnx.export_model import export_model
from mxnet.contrib.onnx.onnx2mx.import_model import import_model

x = mx.sym.var("data")
sym = mx.sym.FullyConnected(x, num_hidden=2, name="fc")
sym = mx.sym.BatchNorm(sym, name="bn", fix_gamma=False)
rng = np.random.default_rng(0)
shapes = {"fc_weight": (2, 3), "fc_bias": (2,), "bn_gamma": (2,), "bn_beta": (2,)}
states = {"bn_moving_mean": (2,), "bn_moving_var": (2,)}
params = {n: mx.nd.array(rng.random(s)) for n, s in {**shapes, **states}.items()}
path = onnx_mxnet.export_model(sym, params, [(4, 3)], np.float32, "old.onnx")
assert export_model(sym, params, [(4, 3)], np.float32, "older.onnx", False, 12) == "older.onnx"
assert mx.onnx.export_model(sym, params, [(4, 3)], np.float32, "new.onnx", dynamic=True) == "new.onnx"
assert "FullyConnected" in mx.onnx.get_operator_support()

meta = onnx_mxnet.get_model_metadata("new.onnx")
assert meta["input_tensor_data"] == [("data", (0, 0))], meta
assert onnx_mxnet.get_model_metadata(path)["output_tensor_data"][0][1] == (4, 2)

again, args, auxs = onnx_mxnet.import_model(path)
assert import_model is onnx_mxnet.import_model
assert all(n.startswith("bn") for n in auxs) and set(args) <= set(again.list_arguments())
data = mx.nd.array(rng.random((4, 3)))
module = mx.mod.Module(again, data_names=["data"], label_names=None)
module.bind([("data", (4, 3))], for_training=False)
module.set_params(args, auxs)
module.forward(mx.io.DataBatch([data]))
expected = module.get_outputs()[0].asnumpy()
net = onnx_mxnet.import_to_gluon(path, ctx=mx.cpu())
np.testing.assert_allclose(net(data).asnumpy(), expected, rtol=1e-5, atol=1e-6)

import onnx, onnxruntime
assert onnx.load("older.onnx").opset_import[0].version == 12
for name in ("old.onnx", "older.onnx", "new.onnx"):
    (y,) = onnxruntime.InferenceSession(name).run(None, {"data": data.asnumpy()})
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
"""


def test_old_scripts_run_with_the_functions_replaced(mx, tmp_path):
    """In a process of its own: others here call MXNet's own functions."""
    done = subprocess.run(
        [sys.executable, "-c", OLD_SCRIPT], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
