"""LiteRT's own reader of files, in the folder that ``litert_live.py`` fills."""

import os
import sys

from tests.tflite.litert_live import VARIABLE

if os.environ.get(VARIABLE):
    sys.path.append(os.path.abspath(os.environ[VARIABLE]))  # behind what is installed
