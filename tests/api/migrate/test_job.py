"""One model of many: whatever its process does is in its row."""

from __future__ import annotations

import json
import os

import pytest

from serde.api.migrate import job, migrate
from serde.api.migrate.job import Job, row_to_dict
from serde.api.migrate.sources import ModelSource
from serde.errors import SerdeError
from tests.api.migrate.zoo import statuses, write_model

# A process that does what the name of its model says, before serde is imported.
ODD = """
import io, json, os, sys, time
text = sys.stdin.read(); name = os.path.basename(json.loads(text)["source"]); sys.stdin = io.StringIO(text)
if "hang" in name: time.sleep(60)
if "crash" in name: os.abort()
if "exit" in name: sys.exit("the runtime ended the process")
if "hungry" in name:
    order = json.loads(text); order["memory"] = 4096; sys.stdin = io.StringIO(json.dumps(order))
    import serde.api.migrate.child as child
    child.convert = lambda *a, **k: bytearray(1 << 40)
from serde.api.migrate.child import main; main()
"""


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("hang", "timed out", "stopped after 2 seconds: --max-seconds allows more"),
        ("crash", "crashed", "the process ended with SIGABRT"),
        ("exit", "crashed", "the runtime ended the process"),
        ("hungry", "out of memory", "--max-memory allows more"),
    ],
)
def test_costs_one_row(tmp_path, monkeypatch, name, status, reason):
    monkeypatch.setattr(job, "START", ODD)
    seconds, others = 60, {"good.onnx": "converted"}
    if name == "hang":  # no other is that fast on a busy machine
        seconds, others = 2, {}
    for file in (f"{name}.onnx", *others):
        write_model(tmp_path / "in" / file)
    report = migrate([tmp_path / "in"], tmp_path / "out", max_seconds=seconds, jobs=2)
    assert statuses(report) == {**others, f"{name}.onnx": status}
    assert next(r for r in report.rows if r.status == status).reason == reason


def make_job(tmp_path, **fields):
    source = ModelSource(str(write_model(tmp_path / "a.onnx")), "a.onnx")
    return Job(source, str(tmp_path / "out" / "b.onnx"), {}, "onnx", **fields)


def test_an_order_has_the_limits_of_its_job(tmp_path, monkeypatch):
    orders = []

    def run(command, seconds, *, text, env, apart):
        orders.append((seconds, json.loads(text), env))
        return 0, "line 1\nthe last line\n"

    monkeypatch.setattr(job, "run_child", run)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    row = job.run_job(make_job(tmp_path, seconds=7, memory=99, threads=3, key="k"))
    ((seconds, order, env),) = orders
    assert (seconds, order["memory"], order["parent"]) == (7, 99, os.getpid())
    assert (env["OMP_NUM_THREADS"], env["MKL_NUM_THREADS"]) == ("5", "3")  # the user's go first
    assert (row.status, row.reason, row.key) == ("crashed", "the last line", "k")


@pytest.mark.parametrize(("error", "reason"), [
    (SerdeError("the bucket is gone"), "the bucket is gone"), (OSError(28, "full"), "full"),
    (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
])  # fmt: skip
def test_whatever_a_source_raises_is_a_row(tmp_path, monkeypatch, error, reason):
    def fetch(*arguments):
        raise error

    monkeypatch.setattr(job, "fetch_model", fetch)
    row = job.run_job(make_job(tmp_path))
    assert row.status == "failed" and reason in row.reason and not row.ok


def test_what_a_crash_left_beside_the_target_is_its_own(tmp_path, monkeypatch):
    spared = tmp_path / "out" / "b.txt"

    def run(*arguments, **options):
        for name in ("b.onnx.data", "b.txt", "c.onnx"):
            (tmp_path / "out" / name).write_text("x")
        return -11, ""

    monkeypatch.setattr(job, "run_child", run)
    row = job.run_job(make_job(tmp_path, spared=(str(spared),)))
    assert row.status == "crashed" and "SIGSEGV" in row.reason
    assert row.written.keys() == {str(tmp_path / "out" / "b.onnx.data")}
    assert row_to_dict(row)["written"] == row.written
