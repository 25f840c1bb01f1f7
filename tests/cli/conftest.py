"""What the tests of commands share."""

import shutil

import pytest

from testing.onnx_live import DIGITS
from tests.api.migrate.zoo import in_this_process as in_this_process
from tests.api.migrate.zoo import zoo as zoo


@pytest.fixture
def digits_here(tmp_path, monkeypatch):
    """A folder of its own for each test, with the example in it."""
    for name in ("digits-symbol.json", "digits-0010.params", "test.npz"):
        shutil.copy(DIGITS / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
