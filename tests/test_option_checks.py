"""Options are checked before any work is done."""

from __future__ import annotations

import math

import numpy as np
import pytest

from serde.errors import UsageError
from serde.plugins import get_format, write_classes
from serde.plugins.command_options import ToleranceOptions
from serde.plugins.option_checks import check_options, read_classes, refuse_unknown
from serde.plugins.options import WriteOptions, list_options, merge_options


@pytest.mark.parametrize(
    "options, message",
    [
        ({"static": {"N": 0}}, "--static=N=0: the least is 1"),
        ({"static": "N"}, "{'N': 1}"),
        ({"inputs": ["data"]}, r"\{'data': \('N', 3, 224, 224\)\}"),
        ({"outputs": 3}, "outputs"),
        ({"weights": "int3"}, "weights='int3' is not one of"),
        ({"rebatch": -1}, "rebatch|batch"),
        ({"inputs": {"x": (("\udcff", 3), "float32")}}, "--input: '.udcff' has bytes that are no"),
        ({"random": "\udcff"}, "random"),
    ],
)
def test_values_that_mean_nothing(options, message):
    with pytest.raises(UsageError, match=message):
        check_options(options, read_classes())


ANYTHING = (
    True, -1, 1 << 70, 1.5, math.nan, math.inf, "", "x", "no", "\0", "\ud800", [], ["x"], [None],
    [["x"]], [{}], {}, {"x": 1}, {"x": None}, {"x": []}, {"x": [None]}, {"x": [[1], "y"]},
    {"x": {}}, {"x": "y"}, {3: "y"}, {"x": 1.5}, {"x": math.nan}, np.float32(1), np.zeros(2),
)  # fmt: skip
EVERY = merge_options([*read_classes(), *write_classes(), ToleranceOptions])


@pytest.mark.parametrize("name", [n for n, o in EVERY.items() if o.kind not in ("object", "file")])
def test_whatever_is_given_is_taken_or_refused(name):
    """Of a file, say: no other error, and no flag is set by a text that may mean no."""
    taken = []
    for value in ANYTHING:
        try:
            check_options({name: value}, [*read_classes(), *write_classes(), ToleranceOptions])
            taken.append(value)
        except UsageError as error:
            shown = {EVERY[name].all_flags[0].lstrip("-"), "input 'x'", "input 3"}
            assert any(word in str(error) for word in shown), error
    if EVERY[name].kind == "flag":
        assert taken == [True]
    if EVERY[name].kind == "text":
        assert all(isinstance(value, str) or value is True for value in taken)


def test_options_without_a_value_are_none():
    assert check_options({"outputs": ["y"]}, [*read_classes(), WriteOptions]) == {"outputs": ["y"]}


def test_an_option_that_no_format_takes():
    fmt = get_format("onnx")
    known = list_options(fmt.write_options)
    with pytest.raises(UsageError, match="onnx takes no option --entry here; it takes .*opset"):
        refuse_unknown(fmt, ["entry"], known)
    refuse_unknown(fmt, ["opset"], known)
