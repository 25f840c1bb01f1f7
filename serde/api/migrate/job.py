"""One model of many, converted in a process of its own: what becomes of it is a row."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from serde.api.migrate.sources import ModelSource, list_beginning, stem_of
from serde.api.migrate.transfers import fetch_model, store_files
from serde.errors import SerdeError, show_error
from serde.io.child_process import FORGET_FOLDER, child_environment, describe_crash, run_child
from serde.io.command_files import stamp_file
from serde.io.filesystems import is_url
from serde.io.temporary_folder import TemporaryFolder

START = FORGET_FOLDER + "from serde.api.migrate.child import main; main()"
GOOD = ("verified", "converted")
FINAL = frozenset({*GOOD, "differs", "refused", "unreadable"})  # would come out the same again
STATUSES = FINAL | {"failed", "timed out", "out of memory", "crashed"}
STATE = ("read", "absent", "beside", "written")  # fields of a row that are for the next run only
LONGEST_REASON = 600  # characters
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """A model, the file to make of it, and how; ``spared`` are files that it must not replace."""

    source: ModelSource
    target: str
    options: Mapping[str, Any]
    to_format: str
    verify: bool | str = False
    report: str = ""
    seconds: int = 600
    memory: int = 8192
    threads: int = 1
    key: str = ""
    spared: tuple[str, ...] = ()


@dataclass
class Row:
    """What became of one model.

    ``status`` is verified, converted, differs (from its source when run), refused, unreadable,
    failed, timed out, out of memory, or crashed. ``missing`` are the operators in the way:
    ``op``, ``count``, ``reason``. ``read`` and ``written`` have the stamps of files, ``absent`` are
    those that were looked for in vain, ``beside`` those whose names begin like the model's.
    """

    source: str
    target: str
    status: str
    reason: str = ""
    format: str = ""
    seconds: float = 0.0
    nodes: int = 0
    parameters: int = 0
    max_rel: float | None = None
    missing: list[dict[str, Any]] = field(default_factory=list)
    report: str = ""
    key: str = ""
    read: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is a result, and it was not found wrong."""
        return self.status in GOOD


def run_job(job: Job) -> Row:
    """Convert one model within its limits; whatever happens is in the row."""
    start = time.perf_counter()
    try:
        with TemporaryFolder() as folder:
            row = _run_in(job, folder)
    except (SerdeError, OSError) as error:
        row = _failed_row(job, "failed", str(error))
    except Exception as error:  # of a driver of fsspec
        row = _failed_row(job, "failed", show_error(error))
    row.seconds = round(time.perf_counter() - start, 3)
    row.key, row.beside = job.key, sorted(job.source.beside)
    return row


def _run_in(job: Job, folder: str) -> Row:
    source = fetch_model(job.source.path, job.source.siblings, os.path.join(folder, "source"))
    is_remote = is_url(job.target)
    base = os.path.basename(job.target)
    target = os.path.join(folder, "result", base) if is_remote else job.target
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    report = f"{target}.report.html" if job.report else ""
    answer = os.path.join(folder, "answer.json")
    order = {
        "source": source, "target": target, "to_format": job.to_format, "verify": job.verify,
        "options": dict(job.options), "report": report, "memory": job.memory, "answer": answer,
        "parent": os.getpid(), "spared": job.spared,
    }  # fmt: skip
    threads = {name: os.environ.get(name, str(job.threads)) for name in THREADS}
    try:
        code, errors = run_child(
            [sys.executable, "-c", START], job.seconds, text=json.dumps(order),
            env=child_environment(**threads), apart=True,
        )  # fmt: skip
    except TimeoutError as error:
        return _failed_row(job, "timed out", f"{error}: --max-seconds allows more")
    if code < 0:
        return _failed_row(job, "crashed", f"the process ended with {describe_crash(code)}")
    if not os.path.exists(answer):
        lines = errors.strip().splitlines()
        return _failed_row(job, "crashed", lines[-1] if lines else f"exit code {code}")
    with open(answer, encoding="utf-8") as file:
        row = Row(**{"source": job.source.path, "target": job.target, **json.load(file)})
    if is_remote:
        row.written = store_files(os.path.dirname(target), job.target.rpartition("/")[0])
    row.report = f"{job.target}.report.html" if report and os.path.exists(report) else ""
    for inside in (os.path.join(os.path.dirname(source), ""), folder + os.sep):
        row.reason = row.reason.replace(inside, "")  # the row names the model
    return row


def _failed_row(job: Job, status: str, reason: str) -> Row:
    """The row of a job without an answer; what has come beside its target is its own."""
    row = Row(job.source.path, job.target, status, reason[:LONGEST_REASON])
    if not is_url(job.target):
        folder, name = os.path.split(os.path.abspath(job.target))
        paths = [os.path.join(folder, n) for n in list_beginning(folder, stem_of(name))]
        row.written = {p: stamp_file(p) for p in paths if p not in job.spared}
    return row


def row_to_dict(row: Row) -> dict[str, Any]:
    """A row as JSON has it."""
    return asdict(row)
