"""What all tests share: names of cases, and the Python that has PyTorch, in the environment that
``torch_live.py`` makes."""

import os
from pathlib import Path

from tests.torch.torch_live import FOLDER, VARIABLE

if os.environ.get(FOLDER) and not os.environ.get(VARIABLE):
    os.environ[VARIABLE] = str(Path(os.environ[FOLDER], "v/bin/python").absolute())


def pytest_make_parametrize_id(config, val, argname):
    """Name a case whose value is bytes after its argument: packed bytes may hold the time at which
    they were packed, and processes that share the tests must name them alike."""
    return argname if isinstance(val, bytes) else None
