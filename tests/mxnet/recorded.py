"""What releases of MXNet that this Python cannot import computed of cases, recorded.

    SERDE_MXNET=FOLDER python -m tests.mxnet.recorded

has every release run its cases, those of ``tests/mxnet/releases``, and writes
``tests/data/mxnet_releases.json``: for each case its outputs, as type, shape and bytes.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from serde.formats.mxnet.rules import SECOND
from testing.mxnet.cases import Array, Case, Refusal, _symbol_json, case
from testing.mxnet.releases_live import SECOND as SECOND_RELEASE
from testing.mxnet.releases_live import number_of, worker

FILE = Path(__file__).parents[1] / "data" / "mxnet_releases.json"


@cache
def records() -> dict[str, list[list[Any]]]:
    """The outputs of every case, by its key."""
    outputs: dict[str, list[list[Any]]] = json.loads(FILE.read_text())
    return outputs


def key_of(release: str, case: Case) -> str:
    """What a case is recorded under: it depends on the release and on all that it gives MXNet."""
    data = b"".join(np.ascontiguousarray(x).tobytes() for x in case.inputs)
    return f"{release} {case} {zlib.crc32(data):08x}"


def recall(release: str, case: Case) -> list[Array]:
    """What a release computed."""
    key = key_of(release, case)
    if key not in records():
        raise KeyError(f"{key} is not recorded: run python -m tests.mxnet.recorded")
    return [
        np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
        for dtype, shape, data in records()[key]
    ]


def in_release(release: str, op: str, /, *inputs: Array, **attrs: Any) -> Case:
    """A case of a file that a release saved, and of what the release computes."""
    base = case(op, *inputs, **attrs)
    number = number_of(release)
    return base.but(release=number, np_shape=number >= SECOND, oracle=lambda c: recall(release, c))


def second(op: str, /, *inputs: Array, **attrs: Any) -> Case:
    """A case of a file that MXNet 2.0 saved."""
    return in_release(SECOND_RELEASE, op, *inputs, **attrs)


def refused_by_second(op: str, /, *inputs: Array, says: str, **attrs: Any) -> Refusal:
    """A case of a file that MXNet 2.0 saved which is refused."""
    return Refusal(second(op, *inputs, **attrs), says)


def run_live(release: str, case: Case) -> list[Array]:
    """What a release computes now."""
    live = worker(release)
    count = live.ask("visible", _symbol_json(case, 1), case.np_shape)
    text = _symbol_json(case, case.outputs or count)
    return live.run([text, case.np_shape], {f"x{i}": x for i, x in enumerate(case.inputs)})


def every_recorded_case() -> list[Case]:
    """The cases of releases."""
    cases: list[Case] = []
    for path in sorted(Path(__file__).parent.glob("releases/test_*.py")):
        module = import_module(f"tests.mxnet.releases.{path.stem}")
        cases += [c for c in getattr(module, "CASES", ()) if not isinstance(c, Refusal)]
    return cases


def release_of(case: Case) -> str:
    """The release whose number a case names."""
    from testing.mxnet.releases_live import RELEASES

    return next(r for r in RELEASES if number_of(r) == case.release)


def main() -> int:
    """Run all cases and write the file; name those that do not run."""
    rows, failed = {}, 0
    for c in every_recorded_case():
        release = release_of(c)
        try:
            outputs = run_live(release, c)
        except Exception as error:
            print(f"{release} {c}: {error}", file=sys.stderr)
            failed += 1
            continue
        rows[key_of(release, c)] = [
            [y.dtype.name, list(y.shape), base64.b64encode(y.tobytes()).decode()] for y in outputs
        ]
    lines = (f"{json.dumps(key)}: {json.dumps(rows[key])}" for key in sorted(rows))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
