"""Whether the files of each release of MXNet are read as that release computes them.

Each case of the reading rules is run by every release that ``testing/mxnet/releases_live.py`` made
an environment for, as a symbol that the release saved. Where the rule is the newest release's, and
so is the result, there is nothing else to compare: the tests do. Otherwise the case is read as a
file of the release, and ONNX Runtime runs what it becomes.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from functools import cache, cached_property
from typing import Any

from serde.errors import SerdeError
from serde.formats.mxnet.rules import SECOND, changed_rules
from testing.live_worker import LiveError, LiveWorker
from testing.mxnet.cases import Case, _error, _symbol_json, _tolerance, convert_and_run, live
from testing.mxnet.make_releases import by_name
from testing.mxnet.releases_live import READ, VARIABLE, number_of, worker

from . import record
from .matrix import Cell
from .operators import MXNetOperators
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome

OPSET = 21
SAME = "the same in 1.9.1"
LACKS, ENDS = "the release does not run it", "the release ends"
PLAIN, PLAIN_BEFORE = "by its kernels without oneDNN", 10700  # whose wheel on PyPI has oneDNN first
NO_KERNEL = "NOT_IMPLEMENTED"  # in ONNX Runtime
# Why the reader does not do what a release does otherwise.
DIFFERENT = dict.fromkeys(
    ("_contrib_quantize", "_contrib_quantize_v2", "_contrib_dequantize",
     "_contrib_AdaptiveAvgPooling2D", "_contrib_BilinearResize2D"),
    "bytes are rounded otherwise before 1.7 in wheels without oneDNN, which have no quantized "
    "layers",
) | {
    "SoftmaxOutput": "of halves: within 0.003, sums of halves",
    "_contrib_Proposal": "before 1.3 others follow the boxes that are kept, where those are few",
    "Deconvolution": "bytes are rounded otherwise before 1.9; 0.9.5 takes target_shape=(0, 0)",
    "argmax": "a maximum of halves before 1.2 is at least 0.00006",
    "argmax_channel": "a maximum of halves before 1.2 is at least 0.00006",
    "max": "a maximum of halves before 1.2 is at least 0.00006",
    "min": "a minimum of integers in 0.9.5 is at most 0",
    "relu": "that of NaN is 0 before 1.5",
}  # fmt: skip
# Operators of which some cases have no result that could be compared.
UNDEFINED = {
    "ROIPooling": "before 1.6 regions of images that are not there are read from memory",
    "SpatialTransformer": "0.9.5 reads beyond the end of the last image",
    "_contrib_DeformablePSROIPooling": "before 1.5 there is no kernel for CPUs",
    "_contrib_PSROIPooling": "before 1.4 there is no kernel for CPUs",
    "_contrib_ROIAlign": "regions of images that are not there are read from memory",
    "_npi_unique": "1.6 tells the shape of the result to arrays of NumPy's interface only",
    "_while_loop": "behind the last step stands what was in memory",
    "gather_nd": "before 1.7 negative indices are read from the memory in front of the tensor",
}


class ReadingReleases(Cell):
    """The outcomes of every case by release."""

    variants = READ

    def cases(self) -> list[str]:
        return [*self.by_name] if VARIABLE in os.environ else []

    @cached_property
    def by_name(self) -> Mapping[str, Case]:
        """The cases of the reading rules."""
        return MXNetOperators().by_name

    def run(self, case: str) -> record.Packed:
        test = self.by_name[case]
        try:
            newest = live(test)
        except Exception as error:  # whatever MXNet raises
            return str(Outcome.of(NOT_RUN, f"MXNet 1.9.1: {error}"))
        outcomes = {r: examine(worker(r), number_of(r), test, newest) for r in self.variants}
        return record.pack(outcomes, self.variants)

    def outcomes(self, case: str, row: record.Packed) -> dict[str, Outcome]:
        return record.unpack(row, self.variants)

    def make_failed_row(self, why: str) -> record.Packed:
        return str(Outcome.of(WRONG, why))

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return rows or before  # the releases need not be here


def name_in(op: str, number: int) -> str:
    """What a release calls an operator: MXNet 2.0 renamed NumPy's."""
    return op.replace("_np_", "_npi_", 1) if number >= SECOND and op.startswith("_np_") else op


def examine(runner: LiveWorker, number: int, case: Case, newest: list[Any]) -> Outcome:
    """What becomes of one case."""
    op = name_in(case.op, number)
    known = case.attrs if number >= PLAIN_BEFORE else known_attributes(runner, op, case)
    attrs = {n: v for n, v in case.attrs.items() if n in known}
    of_release = case.but(release=number, op=op, attrs=attrs)
    text = _symbol_json(of_release, len(newest))
    feeds = {f"x{i}": x for i, x in enumerate(case.inputs)}
    try:
        expected = runner.run([text, case.np_shape], feeds)
    except LiveError as error:
        return Outcome(NOT_RUN, ENDS if "ended" in str(error) else LACKS)
    apart = differ(case, newest, expected)
    if case.op not in changed_rules(number) and not apart:
        return Outcome(RIGHT, SAME)
    outcome = judge(of_release, expected, apart)
    if outcome.kind == WRONG and number < PLAIN_BEFORE and case.kernels != "plain":
        plain = judge(of_release.but(kernels="plain"), expected, apart)
        if plain.kind == RIGHT:
            return Outcome(RIGHT, PLAIN)
    if outcome.kind == WRONG and case.op in UNDEFINED:
        return Outcome.of(NOT_RUN, UNDEFINED[case.op])
    return outcome


def judge(case: Case, expected: list[Any], apart: str) -> Outcome:
    """What becomes of a case that is read as a file of its release."""
    try:
        runs = convert_and_run(case, len(expected), OPSET)
    except SerdeError as error:
        return Outcome.of(REFUSED, f"{str(error).splitlines()[-1]} ({apart})")
    except Exception as error:  # ONNX Runtime's have no common base but this
        kind = NOT_RUN if NO_KERNEL in str(error) else WRONG
        return Outcome.of(kind, f"{type(error).__name__}: {error}")
    how = next((d for got in runs.values() if (d := differ(case, got, expected))), "")
    return Outcome.of(WRONG, how) if how else Outcome(RIGHT)


def known_attributes(runner: LiveWorker, op: str, case: Case) -> Container[str]:
    """The attributes of a case that files of the release can have."""
    entry = ask_registry(runner).get(op)
    if entry is None or case.network is not None:
        return case.attrs
    return entry.get("attributes", {})  # type: ignore[no-any-return]


@cache
def ask_registry(runner: LiveWorker) -> Mapping[str, Any]:
    """The operators of a release, by all names."""
    return by_name(runner.ask("registry"))


def differ(case: Case, got: list[Any], expected: list[Any]) -> str:
    """How results differ, or nothing."""
    for a, b in zip(got, expected, strict=False):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{a.dtype} {a.shape}, not {b.dtype} {b.shape}"
        if not (off := _error(a, b)) <= (case.tolerance or _tolerance(b)):
            return f"off by {off:.2g}"
    return "" if len(got) == len(expected) else f"{len(got)} outputs, not {len(expected)}"
