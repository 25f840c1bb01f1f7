"""The tutorial about fine-tuning runs: its commands here, its code in a Python with PyTorch."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from testing.mxnet_live import live_mxnet
from tests.cli.pages import blocks_of, compare_output
from tests.torch.torch_live import VARIABLE, why_not

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tutorial/fine-tune-in-pytorch.md"
CHECKS = """
assert before[0] > 0.95 and before[1] < 0.3 and after > 0.8, (before, after)
np.save("outputs.npy", model(images).detach().numpy())
"""


def find_lack() -> str:
    """Why the page cannot be run here, or nothing."""
    if why := why_not():
        return why
    command = [os.environ.get(VARIABLE) or sys.executable, "-c", "import onnxscript"]
    done = subprocess.run(command, capture_output=True, cwd="/")
    return "PyTorch's exporter has no onnxscript" if done.returncode else ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples, which the page is run beside."""
    shutil.copytree(ROOT / "examples/digits", tmp_path / "examples/digits")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tutorial_runs(folder: Path) -> None:
    if why := find_lack():
        pytest.skip(why)
    blocks = blocks_of(PAGE)
    first, last = (block.text for block in blocks if block.language == "sh")
    run_command(first)
    code = "\n".join(block.text for block in blocks if block.language == "python")
    Path("page.py").write_text(code + CHECKS)
    python = os.environ.get(VARIABLE) or sys.executable
    done = subprocess.run([python, "page.py"], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    shown = "".join(block.text for block in blocks if block.language == "text")
    compare_output(shown.splitlines(), done.stdout, "the page")
    assert Path("tuned.pt").exists()
    run_command(last)
    assert_mxnet_computes(np.load("outputs.npy"))


def run_command(line: str) -> None:
    result = CliRunner().invoke(main, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output


def assert_mxnet_computes(expected: np.ndarray) -> None:
    """The symbol that the tuned model becomes computes what it does in PyTorch."""
    mx = live_mxnet()
    block = mx.gluon.SymbolBlock.imports("tuned-symbol.json", ["data"], "tuned-0000.params")
    images = np.load("examples/digits/test.npz")["data"]
    np.testing.assert_allclose(block(mx.nd.array(images)).asnumpy(), expected, atol=1e-5)


def test_the_names_of_the_page_are_written(folder: Path) -> None:
    serde.convert("examples/digits", "digits.py")
    assert '"fc1_weight"' in Path("digits.names.json").read_text()
