"""The process that converts one model: its row says what became of it."""

from __future__ import annotations

import errno

import numpy as np
import onnx
import pytest

from serde.api.migrate import child, migrate
from serde.api.report import Report
from serde.errors import MalformedFile, MissingDependency, SerdeError
from serde.verification import Verification, compare


def test_options_of_reading_apply_where_they_exist(zoo, tmp_path, in_this_process):
    report = migrate(
        [zoo / "mx", zoo / "a.onnx"], tmp_path / "out", opset=11, kernels="plain", jobs=1
    )
    assert report.ok
    for name in ("digits", "a"):
        assert onnx.load(tmp_path / "out" / f"{name}.onnx").opset_import[0].version == 11
    report = migrate([zoo / "a.onnx"], tmp_path / "out2", opset=99, jobs=1)
    assert report.rows[0].status == "refused" and "opset" in report.rows[0].reason


def test_a_result_that_cannot_be_run_is_converted_and_not_verified(
    zoo, tmp_path, in_this_process, monkeypatch
):
    def refuse(*arguments, **options):
        raise SerdeError("the runtime refuses these inputs")

    monkeypatch.setattr("serde.verification.compare_result", refuse)
    report = migrate([zoo / "a.onnx"], tmp_path / "out", verify=True, jobs=1)
    (row,) = report.rows
    assert row.ok
    assert (row.status, row.reason) == (
        "converted", "not verified: the runtime refuses these inputs"
    )  # fmt: skip
    assert (tmp_path / "out" / "a.onnx").exists()


@pytest.mark.parametrize(("name", "options", "own"), [
    ("a.onnx", {"kernels": "plain", "opset": 11, "strict_paths": True}, {"opset", "strict_paths"}),
    ("mx/digits-symbol.json", {"kernels": "plain", "strict_paths": True}, {"kernels"}),
    ("a.onnx", {"static": {"N": 1}, "params": "p"}, {"static"}),
    ("notes.txt", {"from_format": "mxnet", "kernels": "plain"}, {"from_format", "kernels"}),
])  # fmt: skip
def test_options_of_reading_are_those_of_the_sources_format(zoo, name, options, own):
    assert child.keep_own_options(str(zoo / name), options).keys() == own


NUMBERS = np.float32([1, 2])
RIGHT, WRONG = (compare(f"y{n}", NUMBERS + n, NUMBERS) for n in (0, 1))


@pytest.mark.parametrize(("verification", "row"), [
    (None, {"status": "converted"}),
    (Verification(True, "onnx", "random", [RIGHT]), {"status": "verified", "max_rel": 0}),
    (Verification(True, "onnx", "random", [RIGHT, WRONG]),
     {"status": "differs", "reason": "y1: off by 1", "max_rel": 1}),
    (Verification(False, "", "", statement="not compared: no runtime"),
     {"status": "converted", "reason": "not compared: no runtime", "max_rel": None}),
])  # fmt: skip
def test_the_row_of_a_conversion(verification, row):
    report = Report("a", "b", "onnx", "onnx", operators={"Neg": 2, "Add": 1}, parameters=9)
    report.verification = verification
    assert child.describe(report) == {"format": "onnx", "nodes": 3, "parameters": 9, **row}


def chain(error, cause):
    error.__cause__ = cause
    return error


ERRORS = {
    "no space": (OSError(errno.ENOSPC, "No space left"), "failed", "No space left"),
    "no memory": (MemoryError(), "out of memory", "--max-memory allows more"),
    "of the disk, while it is read": (
        chain(MalformedFile("m.onnx", "it ends"), OSError(errno.EIO, "io")), "failed", "it ends"),
    "of the file": (MalformedFile("m.onnx", "it ends"), "unreadable", "it ends"),
    "a package": (MissingDependency("install x"), "failed", "install x"),
    "of ours": (ZeroDivisionError("by zero"), "failed", "ZeroDivisionError: by zero"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "status", "reason"), ERRORS.values(), ids=ERRORS)
def test_what_ends_a_conversion_is_its_status(zoo, tmp_path, monkeypatch, error, status, reason):
    def convert(*arguments, **options):
        raise error

    monkeypatch.setattr(child, "convert", convert)
    order = {"source": str(zoo / "a.onnx"), "target": str(tmp_path / "b.onnx"), "to_format": "onnx",
             "verify": False, "options": {}, "report": "", "answer": str(tmp_path / "x" / "a"),
             "spared": []}  # fmt: skip
    row = child.carry_out(order)
    assert row["status"] == status and reason in row["reason"] and row["written"] == {}
