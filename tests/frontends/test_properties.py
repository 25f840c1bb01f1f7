"""Every function that can be traced, with drawn arguments, against NumPy.

``python -m tests.frontends.test_properties [--examples N] [NAME ...]`` draws more of them.
"""

from __future__ import annotations

import argparse
import tempfile
import traceback
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from serde.frontends.numpy.core import FUNCTIONS, name_of
from serde.frontends.numpy.methods import METHODS
from tests.frontends.properties import CASES, NEED_SIZES, elementwise
from tests.frontends.properties.draw import check

EXAMPLES = 3
QUICK = (Phase.generate,)  # without a search for smaller calls


def check_case(name, path, examples, phases=QUICK):
    """Compare ``examples`` calls of one function."""

    @given(data=st.data())
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None,
              phases=phases, suppress_health_check=list(HealthCheck))  # fmt: skip
    def run(data):
        check(CASES[name], data, path, needs_sizes=name in NEED_SIZES)

    run()


@pytest.mark.parametrize("name", CASES)
def test_calls_give_what_numpy_gives(name, tmp_path):
    check_case(name, tmp_path / "m.onnx", EXAMPLES)


def test_every_function_has_calls():
    names = {name_of(f) for f in FUNCTIONS} | {f"ndarray.{m}" for m in METHODS}
    names |= {f"np.{n}" for n in elementwise.UFUNCS}
    assert names - CASES.keys() == set()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--examples", type=int, default=100)
    given_args = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given_args.names or CASES:
            try:
                check_case(name, Path(folder) / "m.onnx", given_args.examples, tuple(Phase))
            except Exception:
                failed.append(name)
                traceback.print_exc()
    print(f"{len(failed)} functions differ: {', '.join(failed)}")


if __name__ == "__main__":
    main()
