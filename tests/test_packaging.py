"""What is published: complete, described, reproducible, and enough by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import serde

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKED = """serde backends formats frontends bridges docs tests testing conformance benchmarks examples
.ci pyproject.toml setup.py MANIFEST.in README.md LICENSE""".split()
AWAY = {**os.environ, "PYTHONPATH": ""}  # where no checkout is found
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


def run(*command, cwd, **env):
    """Run a command; return what it printed."""
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env={**AWAY, **env}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def copy_sources(place):
    """The checkout without what was built in it, as a build leaves files beside its sources."""
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "_build", "*.partial")
    for name in PACKED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, place)
    return place


def build(source, out, *what):
    command = (sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", out, source)
    return run(*command, cwd=source, **EPOCH)


def test_the_distributions_are_fit_to_publish(tmp_path):
    source = copy_sources(tmp_path)
    assert "Warning" not in build(source, tmp_path / "dist")  # the wheel is made of the sdist
    (wheel,), (sdist,) = (list((tmp_path / "dist").glob(p)) for p in ("*.whl", "*.tar.gz"))
    build(source, tmp_path / "again", "--wheel")
    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()
    scripts = Path(sys.executable).parent
    run(scripts / "twine", "check", "--strict", wheel, sdist, cwd=tmp_path)
    run(scripts / "check-wheel-contents", wheel, cwd=source)
    run(scripts / "pyroma", "-n", "8", sdist, cwd=tmp_path)  # of 10: there is no author's address
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    folders = {"serde": "serde"} | {f: f"serde/{f}" for f in PACKED[1:5]}
    sources = {str(to / p.relative_to(ROOT / f)) for f, to in ((f, Path(t)) for f, t in folders.items())
               for p in (ROOT / f).rglob("*") if p.is_file() and p.suffix != ".pyc"}  # fmt: skip
    assert names == sources
    assert "serde/py.typed" in names
    with tarfile.open(sdist) as tar:
        held = {n.partition("/")[2] for n in tar.getnames()}
    for name in ("docs/index.md", "tests/run.py", "examples/digits/convert.py", ".ci/run"):
        assert name in held
    metadata = zipfile.ZipFile(wheel).read(f"{wheel.name.removesuffix('-py3-none-any.whl')}"
                                           ".dist-info/METADATA").decode()  # fmt: skip
    assert f"\nVersion: {serde.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert not re.search(r"\]\((?!https?://)", metadata)  # an index has no files to link to


def install(folder, *what):
    """Make an environment of the packages; return where its commands are."""
    venv.create(folder)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python", "install", "-q")
    command = [*map(str, pip), *map(str, what)]
    done = subprocess.run(command, capture_output=True, text=True, env=AWAY)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return scripts


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the least NumPy has no wheels for it")
def test_the_least_versions_suffice(tmp_path):
    """Each package of the oldest version that is allowed; those of tests are the newest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    specs = [*project["dependencies"], *project["optional-dependencies"]["verify"]]
    least = [r.partition(";")[0].strip().replace(">=", "==") for r in specs if "python_" not in r]
    source = tmp_path / "source"
    source.mkdir()
    build(copy_sources(source), tmp_path, "--wheel")
    (wheel,) = tmp_path.glob("*.whl")
    scripts = install(tmp_path / "venv", wheel, *least)
    digits = ROOT / "examples" / "digits"
    for target in ("a.onnx", "a.relay", "a-symbol.json"):
        run(scripts / "serde", "convert", digits, "-o", tmp_path / target, cwd=tmp_path)
    run(scripts / "serde", "convert", "a.onnx", "-o", "b.onnx", "--opset", "11", "--verify",
        "--report", "report.html", cwd=tmp_path)  # fmt: skip


CHECKOUT = """
import serde
assert serde.__file__.startswith(FOLDER), serde.__file__
import serde.formats.onnx, serde.bridges.tvm, serde.backends, serde.frontends
assert serde.check("examples/digits").ok
"""


def test_a_checkout_is_imported_as_it_is(tmp_path):
    """With no package but those serde needs: neither installed nor in editable mode."""
    folder = tmp_path / "checkout"
    shutil.copytree(
        ROOT / "serde",
        folder / "serde",
        symlinks=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in (*PACKED[1:5], "examples"):
        shutil.copytree(ROOT / name, folder / name)
    links = {p.name: os.readlink(p) for p in (folder / "serde").iterdir() if p.is_symlink()}
    assert links == {name: f"../{name}" for name in PACKED[1:5]}
    own = f"import sys; sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f)]; FOLDER = {str(folder)!r}"
    run(sys.executable, "-c", own + CHECKOUT, cwd=folder)
    assert "everything converts" in run(
        sys.executable, "-m", "serde", "check", "examples/digits", cwd=folder
    )


def test_the_stub_has_the_public_names():
    """Type checkers do not follow ``__getattr__``: ``serde/__init__.pyi`` tells what is where."""
    stub = (ROOT / "serde" / "__init__.pyi").read_text()
    imports = re.findall(r"^from \S+ import (\w+) as \w+$", stub, re.MULTILINE)
    functions = re.findall(r"^def (\w+)\(", stub, re.MULTILINE)
    assert sorted([*imports, *functions]) == sorted(serde._PUBLIC)
    assert set(re.findall(r"^(\w+): ", stub, re.MULTILINE)) == {"__version__"}


USER = """
import serde

reveal_type(serde.convert("model-symbol.json", "model.onnx"))
reveal_type(serde.load("model.onnx").nodes)
"""
ALONE = """

import numpy as np
import serde
from importlib.metadata import requires
assert "site-packages" in serde.__file__, serde.__file__
graph = serde.trace(lambda x: {"y": np.maximum(x @ np.ones((3, 2), np.float32), 0)}, ("N", 3))
serde.save(graph, "traced.onnx")
parts = serde.partition("traced.onnx", "tensorrt")
assert parts.parts
import serde.bridges.mxnet, serde.bridges.tvm
try:
    serde.import_("traced.onnx", to="mxnet")
except serde.MissingDependency as error:
    assert "pip install" in str(error)
else:
    raise AssertionError("MXNet is not here")
"""


def test_the_wheel_alone_converts_traces_and_reports(tmp_path):
    """In an environment without the checkout, and with nothing but what the wheel asks for."""
    source = tmp_path / "source"
    source.mkdir()
    build(copy_sources(source), tmp_path, "--wheel")
    (wheel,) = tmp_path.glob("*.whl")
    scripts = install(tmp_path / "venv", wheel)
    work = tmp_path / "work"
    work.mkdir()
    ignore = shutil.ignore_patterns("*.onnx")  # where the example was run
    model = shutil.copytree(ROOT / "examples" / "digits", work / "digits", ignore=ignore)
    serde_ = scripts / "serde"
    assert run(serde_, "--version", cwd=work).split()[-1] == serde.__version__
    for target in ("a.onnx", "a.relay", "a-symbol.json", "relax.onnx --profile relax"):
        sizes = ("--input", "data=1,1,8,8", "--report", "report.html")
        run(serde_, "convert", model, "-o", *target.split(), *sizes, cwd=work)
    assert "digits" in (work / "report.html").read_text()
    run(serde_, "migrate", "digits", "-o", "migrated", "--jobs", "1", cwd=work)
    assert "pip install onnxruntime" in run(
        serde_, "convert", "a.onnx", "-o", "b.onnx", "--verify", cwd=work
    )
    run(scripts / "python", "-c", ALONE, cwd=work)
    (work / "user.py").write_text(USER)
    checked = run(
        sys.executable, "-m", "mypy", "--strict", "--python-executable", scripts / "python",
        "--cache-dir", tmp_path / "cache", "user.py", cwd=work,
    )  # fmt: skip
    assert re.findall(r'Revealed type is "(.*)"', checked) == [
        "serde.api.report.Report", "tuple[serde.ir.graph.Node, ...]"
    ]  # fmt: skip
    (package,) = (tmp_path / "venv").glob("lib/python*/site-packages/serde")
    (package / "__init__.py").write_text("")  # as another package of this name does
    done = subprocess.run([serde_, "--version"], capture_output=True, text=True, env=AWAY)
    assert done.returncode == 1 and done.stderr.startswith("another package has replaced files")
