"""Measure the support tables of the consumers of ONNX files.

    python -m conformance.consumer_operators CONSUMER [OPERATOR …]

Runtimes are in ``SERDE_CONSUMERS`` and ``SERDE_TORCH``. Operators named are measured anew;
``conformance/operator_support.py`` tells how.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from pathlib import Path

from serde.plugins.targets import get_consumer
from testing.consumers.runtimes import TITLES, run, worker_of

from .operator_support import Consumer, write_table

FOLDER = Path(__file__).parents[1] / "formats" / "onnx" / "consumers"


def consumer(name: str) -> Consumer:
    """The consumer of a name, as it is measured."""
    return Consumer(
        TITLES[name], name, get_consumer(name).default_opset(), partial(run, name),
        lambda: str(worker_of(name).ask("version", name)), FOLDER / name / "support_table.py",
        f"consumer_operators {name}",
    )  # fmt: skip


def main(name: str, *operators: str) -> None:
    """Measure a consumer and write its table."""
    place = f"serde.formats.onnx.consumers.{name}.support_table"
    before = import_module(place).MEASURED if operators else ""
    write_table(consumer(name), before, operators)


if __name__ == "__main__":
    main(*sys.argv[1:])
