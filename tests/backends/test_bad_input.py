"""A folder that is not as it was written, and runtimes that are not there: one clear error each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import serde
from serde.backends.manifest import hash_file, read_manifest
from serde.backends.partition import partition
from serde.cli.commands import main
from serde.errors import MalformedFile, SerdeError, UsageError
from serde.legalize.target import Target
from testing.onnx_live import ir_of

BODY = "g (float[2] x) => (float[2] y) { a = Relu(x)\n b = Erf(a)\n c = Relu(b)\n y = Abs(c) }"
FEEDS = {"x": np.zeros(2, np.float32)}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    partition(ir_of(BODY), Target("t", 21, {"Relu": {}})).save(tmp_path / "parts")
    return tmp_path / "parts"


def change(folder: Path, **values) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def parts_of(folder: Path) -> list:
    return json.loads((folder / "manifest.json").read_text())["parts"]


def refuse_file(folder: Path) -> str:
    (folder / "remainder_0.onnx").unlink()
    return "remainder_0: its file 'remainder_0.onnx' is missing"


def refuse_hash(folder: Path) -> str:
    with (folder / "remainder_0.onnx").open("ab") as file:
        file.write(b"\0")
    return "remainder_0: 'remainder_0.onnx' is another file than was written: its SHA-256 differs"


def refuse_place(folder: Path) -> str:
    parts = parts_of(folder)
    parts[0]["files"] = {"../x.onnx": "0"}
    change(folder, parts=parts)
    return "accelerator_0: '../x.onnx' is no name of a part's file"


def refuse_other_name(folder: Path) -> str:
    (folder / "mine.txt").write_text("mine")
    parts = parts_of(folder)
    parts[0]["files"] = {"mine.txt": hash_file(folder / "mine.txt")}
    change(folder, parts=parts)
    return "accelerator_0: 'mine.txt' is no name of a part's file"


def refuse_circle(folder: Path) -> str:
    parts = parts_of(folder)
    parts[0]["inputs"] = parts[2]["outputs"]
    change(folder, parts=parts)
    return "its parts wait for each other: accelerator_0, remainder_0, accelerator_1, remainder_1"


def refuse_gap(folder: Path) -> str:
    change(folder, parts=parts_of(folder)[1:])
    return "no part computes 'a'"


def refuse_output(folder: Path) -> str:
    change(folder, parts=parts_of(folder)[:-1])
    return "no part computes the output 'y'"


def refuse_twice(folder: Path) -> str:
    parts = parts_of(folder)
    change(folder, parts=[*parts, parts[0]])
    return "two parts compute 'a': accelerator_0, accelerator_0"


def refuse_name_twice(folder: Path) -> str:
    parts = parts_of(folder)
    change(folder, parts=[{**part, "name": "accelerator_0"} for part in parts])
    return "two parts are called 'accelerator_0'"


def refuse_computed_input(folder: Path) -> str:
    parts = parts_of(folder)
    change(folder, inputs=[*parts[0]["inputs"], *parts[0]["outputs"]])
    return "accelerator_0: 'a' is an input, and computed"


def refuse_kind(folder: Path) -> str:
    change(folder, kind="other")
    return "kind: its kind is not 'serde-partition'"


def refuse_version(folder: Path) -> str:
    change(folder, version=2)
    return "version: it is of version 2; this serde reads 1"


def refuse_part(folder: Path) -> str:
    change(folder, parts=[3])
    return "parts[0]: it is no table"


def refuse_json(folder: Path) -> str:
    (folder / "manifest.json").write_text("{")
    return "it is no JSON"


REFUSALS = [f for name, f in sorted(globals().items()) if name.startswith("refuse_")]


@pytest.mark.parametrize("spoil", REFUSALS, ids=lambda f: f.__name__)
def test_a_folder_that_is_not_as_it_was_written(parts, tmp_path, spoil):
    message = spoil(parts)
    with pytest.raises(MalformedFile, match=re.escape(message)):
        serde.run(parts, FEEDS)
    np.savez(tmp_path / "x.npz", **FEEDS)
    line = ["run", str(parts), "--data", str(tmp_path / "x.npz"), "-o", str(tmp_path / "y.npz")]
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 3 and message in result.output


@pytest.mark.parametrize("is_of_model", [True, False])
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *(("dtype", text, "is no element type") for text in ("float99", "V4", "(1,)f4", "x\x1b")),
        *(
            ("shape", [size], "is no shape")
            for size in (-1, 1.0, True, float("nan"), [2], {}, 1 << 63)
        ),
        ("shape", [1] * 65, "is no shape"),
    ],
)
def test_a_tensor_that_is_none(parts, is_of_model, field, value, message):
    model, part = read_manifest(parts), parts_of(parts)[0]
    tensor = {"name": "x", "dtype": "float32", "shape": [2], field: value}
    if is_of_model:
        change(parts, inputs=[tensor])
    else:
        change(parts, parts=[{**part, "inputs": [tensor]}, *parts_of(parts)[1:]])
    with pytest.raises(MalformedFile, match=message) as caught:
        serde.run(parts, FEEDS)
    assert "\x1b" not in str(caught.value) and model.inputs[0].shape == [2]


BOOL = {"name": "c", "dtype": "bool", "shape": []}
CONTROL = (
    "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] p)"
    " { q = Relu(x)\n p = Erf(q) }, else_branch = e () => (float[2] r) { r = Relu(x) }> }"
)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("operator", "Scan", "its operator 'Scan' is not one of If, Loop"),
        ("operator", "Loop", "the subgraphs of its Loop are to be body"),
        ("operands", [], "operands of its If are missing"),
        ("operands", [3], "operands of its If are missing"),
        ("operands", ["d"], "nothing computes 'd', which its If reads"),
        ("inputs", [BOOL], "nothing computes 'x', which its If reads"),
        ("outputs", [], "its If does not fit the inputs and outputs of then_branch"),
    ],
)
def test_an_if_that_is_not_as_it_was_written(tmp_path, field, value, message):
    target = Target("t", 21, {"Relu": {}})
    partition(ir_of(CONTROL), target, control_flow="inside").save(tmp_path)
    (part,) = parts_of(tmp_path)
    outputs = [] if field == "outputs" else part["outputs"]
    change(tmp_path, parts=[{**part, field: value}], outputs=outputs)
    with pytest.raises(MalformedFile, match=re.escape(message)):
        serde.run(tmp_path, {"c": np.array(True), **FEEDS})


LOOP = (
    "g (int64 n, float[2] x) => (float[2] y) { c = Constant<value = bool {1}>() y = Loop (n, c, x)"
    " <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t)"
    " { l = Identity(k)\n a = Relu(s)\n t = Erf(a) }> }"
)


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        (["x", "", "x"], "the limit of its turns, 'x', is not one number"),
        (["n", ""], "nothing computes 's', which its Loop reads"),
    ],
)
def test_a_loop_that_is_not_as_it_was_written(tmp_path, operands, message):
    target = Target("t", 21, {"Relu": {}})
    partition(ir_of(LOOP), target, control_flow="inside").save(tmp_path)
    (part,) = parts_of(tmp_path)
    inputs = [v for v in part["inputs"] if v["name"] in operands]
    change(tmp_path, parts=[{**part, "operands": operands, "inputs": inputs}])
    feeds = {"n": np.array(2), **FEEDS}
    with pytest.raises(MalformedFile, match=re.escape(message)):
        serde.run(tmp_path, feeds)


def test_an_input_that_a_part_names_twice(parts):
    first, *others = parts_of(parts)
    change(parts, parts=[{**first, "inputs": first["inputs"] * 2}, *others])
    with pytest.raises(MalformedFile, match="accelerator_0: 'x' is two of its inputs"):
        serde.run(parts, FEEDS)


def test_an_input_of_a_type_that_is_not_known(parts):
    change(parts, inputs=[{"name": "x", "dtype": "", "shape": None}])
    assert [*serde.run(parts, FEEDS)] == ["y"]


def test_no_manifest(tmp_path):
    with pytest.raises(MalformedFile, match=r"there is no manifest\.json"):
        serde.run(tmp_path, FEEDS)


RUNTIMES = [
    ({"acelerator": "onnxruntime"}, "no part is called 'acelerator'; did you mean accelerator?"),
    ({"remainder": "onxruntime"}, "no runtime is called 'onxruntime'; did you mean onnxruntime?"),
    ({"remainder": "mxnet"}, "part 'remainder_0' is a file of onnx, which mxnet does not run"),
    ({"remainder": lambda path: lambda feeds: []}, "part 'remainder_0': it has 1 outputs, and its runtime gives 0"),
    ({"remainder": lambda path: lambda feeds: {}}, "part 'remainder_0': its runtime gives no 'b'"),
]  # fmt: skip


@pytest.mark.parametrize(("runtimes", "message"), RUNTIMES)
def test_runtimes_that_do_not_fit(parts, runtimes, message):
    with pytest.raises(SerdeError, match=re.escape(message)):
        serde.run(parts, FEEDS, runtimes)


def test_a_runtime_that_is_not_installed(parts, tmp_path):
    hidden = "raise ModuleNotFoundError(\"No module named 'onnxruntime'\")"
    (tmp_path / "onnxruntime.py").write_text(hidden)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import serde, numpy as np\n"
        f"try: serde.run({str(parts)!r}, {{'x': np.zeros(2, np.float32)}})\n"
        "except serde.MissingDependency as error: print(error)"
    )
    proc = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert proc.stdout.startswith("part 'accelerator_0' needs onnxruntime: ONNX Runtime is needed")


def test_a_missing_input_and_inputs_that_do_not_fit(parts):
    with pytest.raises(UsageError, match="the input 'x' is missing"):
        serde.run(parts, {})
    for x, reason in (
        (np.zeros(3, np.float32), "has the shape"),
        (np.zeros((2, 3)), "is of float64"),
    ):
        with pytest.raises(UsageError, match=f"the input 'x' {reason}.* Make it"):
            serde.run(parts, {"x": x})
    as_list = {name: x.tolist() for name, x in FEEDS.items()}
    for a, b in zip(
        serde.run(parts, as_list).values(), serde.run(parts, FEEDS).values(), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_folders_that_are_not_written_to(tmp_path):
    result = partition(ir_of(BODY), "opset 21")
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(UsageError, match=r"has files, and no manifest\.json"):
        result.save(tmp_path)
    with pytest.raises(UsageError, match="is a file: name a folder"):
        result.save(tmp_path / "mine.txt")
    with pytest.raises(
        UsageError, match="remainder='pt2' is not one of mxnet, onnx, relay, tflite"
    ):
        result.save(tmp_path / "parts", "pt2")
    result.save(tmp_path / "parts")
    result.save(tmp_path / "parts")  # what was written before is replaced
