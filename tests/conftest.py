"""The Python that has PyTorch, in the environment that ``torch_live.py`` makes."""

import os
from pathlib import Path

from tests.torch.torch_live import FOLDER, VARIABLE

if os.environ.get(FOLDER) and not os.environ.get(VARIABLE):
    os.environ[VARIABLE] = str(Path(os.environ[FOLDER], "v/bin/python").absolute())
