"""Install MXNet's model libraries for the zoo: ``python -m conformance.zoo FOLDER``."""

from __future__ import annotations

import os
import subprocess
import sys

PACKAGES = (  # what the libraries import as well, in versions that go with them
    "gluoncv==0.10.5 yacs autocfg tqdm portalocker pillow pyyaml opencv-python-headless "
    "gluonnlp==0.10.0 gluonts==0.9.9 pydantic<2 toolz pandas tzdata holidays ujson "
    "python-dateutil pytz six"
).split()


def setup(folder: str) -> int:
    """Install the libraries without what they say they need: they ask for an old NumPy.

    GluonTS 0.9 says so in a way that pip 24.1 and later do not read: an older one is put there.
    """
    into = ("-m", "pip", "install", "--target", folder)
    subprocess.run((sys.executable, *into, "pip<24.1"), check=True)
    command = (sys.executable, *into, "--no-deps", *PACKAGES)
    return subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": folder}).returncode


if __name__ == "__main__":
    sys.exit(setup(sys.argv[1]))
