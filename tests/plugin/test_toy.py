"""A format of somebody else's: installed as a package, found by entry point, used like our own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

TOY = Path(__file__).parent / "toy"
MODEL = """toy 1
input x N 3
weight w 3 2 = 1 2 3 4 5 6
weight b 2 = 0.5 -0.5
h = dense x w b
r = relu h
s = scale r by=0.25
y = join s r axis=1
output y
"""
X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def compute(x):
    h = np.maximum(x @ np.float32([[1, 2], [3, 4], [5, 6]]) + np.float32([0.5, -0.5]), 0)
    return np.concatenate([h * np.float32(0.25), h], axis=1)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the package installed in it, by pip where its build tools are at hand."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")  # a build leaves files beside what it builds
    subprocess.run(["cp", "-r", str(TOY), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
           "--no-index", "--disable-pip-version-check", "--target", str(folder)]  # fmt: skip
    done = subprocess.run([*pip, str(source / "toy")], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip cannot build here: {done.stderr.strip().splitlines()[-1]}")
    return folder


@pytest.fixture
def python(site, tmp_path):
    """Run Python code, or the command where a list is given, with the package installed."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path}

    def run(code):
        command = code if isinstance(code, list) else ["-c", code]
        if isinstance(code, list):
            command = ["-c", "from serde.cli.commands import main; main()", *code]
        return subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, env=env, cwd=tmp_path
        )

    return run


def test_it_is_listed_with_the_others(python):
    out = python(["formats"])
    assert "toy: .toy; read and written" in out.stdout.splitlines(), out.stderr
    out = python(["ops", "--format", "toy"])
    assert out.stdout.splitlines()[0] == "toy → ir: 6 operators"


def test_there_and_back_by_the_command_line(python, tmp_path):
    (tmp_path / "m.toy").write_text(MODEL)
    out = python(["convert", "m.toy", "-o", "m.onnx"])
    assert out.returncode == 0 and "m.toy (toy) → m.onnx" in out.stdout, out.stderr
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    (y,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": X})
    np.testing.assert_allclose(y, compute(X), rtol=1e-5)
    sources = {n.name: n.metadata_props[0].value for n in onnx.load(tmp_path / "m.onnx").graph.node}
    assert sources["s"] == "toy scale s"

    out = python(["convert", "m.onnx", "-o", "back.toy"])
    assert out.returncode == 0, out.stderr
    assert (tmp_path / "back.toy").read_text() == (
        "toy 1\n"
        "input x N 3\n"
        "weight w 3 2 = 1.0 2.0 3.0 4.0 5.0 6.0\n"
        "weight b 2 = 0.5 -0.5\n"
        "h = dense x w b\n"
        "r = relu h\n"
        "s = scale r by=0.25\n"
        "y = join s r axis=1\n"
        "output y\n"
    )


def test_there_and_back_by_the_api(python, tmp_path):
    (tmp_path / "m.toy").write_text(MODEL)
    out = python(
        "import serde\n"
        "graph = serde.load('m.toy')\n"
        "print(graph)\n"
        "serde.save(graph, 'm.onnx', opset=13)\n"
        "print(serde.export('m.onnx', None, 'toy'))\n"
        "print(serde.import_('m.toy', 'toy', to='graph').inputs[0].shape)\n"
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines() == [
        "graph m(%x: float32[N,3]):",
        "  %h/MatMul: float32[N,2] = MatMul(%x, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])",
        "  %h: float32[N,2] = Add(%h/MatMul, [0.5, -0.5])",
        "  %r: float32[N,2] = Relu(%h)",
        "  %s: float32[N,2] = Mul(%r, 0.25)",
        "  %y: float32[N,4] = Concat(%s, %r, axis=1)",
        "  return %y",
        "m.toy",
        "('N', 3)",
    ]


def test_what_it_cannot_say_is_refused_all_at_once(python, tmp_path):
    from testing.onnx_live import model_of

    body = (
        "g (float[N,3] x) => (float[N,3] y) { a = Sin(x)\n b = Mul(a, x)\n y = Concat<axis=1>(b) }"
    )
    onnx.save(model_of(body), tmp_path / "m.onnx")
    out = python(["convert", "m.onnx", "-o", "m.toy"])
    assert out.returncode == 1 and not (tmp_path / "m.toy").exists()
    assert "ir → toy: 1 node(s) cannot be converted" in out.stderr and "Sin ×1 ('a')" in out.stderr
    onnx.save(model_of(body.replace("Sin", "Relu")), tmp_path / "m.onnx")
    assert "a product of two tensors" in python(["convert", "m.onnx", "-o", "m.toy"]).stderr


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        ("y = spin x", 1, "spin ×1 ('y'): toy → ir has no rule for spin"),
        ("y = scale x by=2 twice=1", 1, "unknown attribute twice; the operator takes by"),
        ("y = scale x", 1, "attribute 'by' is required"),
        ("y = relu nothing", 3, "m.toy, line 3: nothing before defines 'nothing'"),
        ("weight w 3 = 1 2", 3, "m.toy, line 3: cannot reshape"),
        ("?", 3, "m.toy, line 3: cannot be understood"),
    ],
)
def test_its_errors_are_told_like_ours(python, tmp_path, line, code, why):
    (tmp_path / "m.toy").write_text(f"toy 1\ninput x 2\n{line}\noutput y\n")
    out = python(["convert", "m.toy", "-o", "m.onnx"])
    assert out.returncode == code and why in out.stderr and "Traceback" not in out.stderr


def test_its_option_is_one_of_the_command_and_of_python(python, tmp_path):
    lines = ("toy 1", "input x N 1", "weight w 1 2 = 1.26 2", "y = dense x w", "output y", "")
    (tmp_path / "m.toy").write_text("\n".join(lines))
    assert "--decimals N" in python(["convert", "--help"]).stdout
    out = python(["convert", "m.toy", "-o", "n.toy", "--decimals", "1"])
    assert out.returncode == 0, out.stderr
    assert "weight w 1 2 = 1.3 2.0" in (tmp_path / "n.toy").read_text()
    out = python("import serde; serde.save(serde.load('m.toy'), 'p.toy', decimals=-1)")
    assert "decimals=-1: the least is 0" in out.stderr
    out = python("import serde; serde.save(serde.load('m.toy'), 'p.onnx', decimals=1)")
    assert "onnx takes no option decimals= here" in out.stderr


def test_it_has_no_opsets(python, tmp_path):
    (tmp_path / "m.toy").write_text(MODEL)
    out = python(["convert", "m.toy", "-o", "n.toy", "--opset", "13"])
    assert (
        out.returncode == 2
        and "toy takes no option --opset here; it takes --decimals" in out.stderr
    )


def test_it_is_compared_as_it_converts_where_nothing_runs_it(python, tmp_path):
    (tmp_path / "m.toy").write_text(MODEL)
    assert python(["convert", "m.toy", "-o", "m.onnx"]).returncode == 0
    for pair in (["m.toy", "m.onnx"], ["m.onnx", "m.toy"], ["m.toy", "m.toy"]):
        done = python(["compare", *pair])
        assert done.returncode == 0 and ": pass" in done.stdout, done.stderr
        assert "m.toy: what runs toy models is not installed" in done.stderr
    done = python(["convert", "m.toy", "-o", "m.onnx", "--verify-strict"])
    assert done.returncode == 4 and "--expected out.npz with --data in.npz" in done.stderr
