"""What runs many jobs: joblib on this machine, Dask on many."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec

from serde.api.migrate.job import Job, Row, run_job
from serde.errors import MissingDependency, show_error

LOCAL = "local"  # as an address: a cluster of this machine's own
WORKER = "serde.api.migrate.dask_worker"  # what the workers of a local cluster load first
SILENT = 50  # as logging has it: nothing less than critical
PATIENCE = 10  # seconds that a scheduler has to answer


def count_jobs(dask: str | None) -> int:
    """How many jobs run at a time unless the user tells: one where there is no engine for more."""
    has_engine = dask is not None or find_spec("joblib") is not None
    return (os.cpu_count() or 1) if has_engine else 1


def run_jobs(jobs: Sequence[Job], count: int, dask: str | None = None) -> Iterator[Row]:
    """Run jobs, ``count`` at a time, or on a Dask cluster; yield rows as they are done.

    Raises:
        MissingDependency: naming the package to install. ConnectionError: where no scheduler
            answers.
    """
    if dask:
        return _run_on_dask(jobs, count, dask)
    if count == 1 or len(jobs) <= 1:
        return map(run_job, jobs)
    try:
        from joblib import Parallel, delayed
    except ImportError as error:
        reason = "several jobs at a time need joblib: pip install joblib, or --jobs 1"
        raise MissingDependency(reason) from error
    # Threads: each job waits for a process of its own.
    parallel = Parallel(count, backend="threading", return_as="generator_unordered")
    return iter(parallel(delayed(run_job)(job) for job in jobs))


def _run_on_dask(jobs: Sequence[Job], count: int, address: str) -> Iterator[Row]:
    try:
        import distributed
    except ImportError as error:
        reason = "--dask needs Dask: pip install distributed"
        raise MissingDependency(reason) from error
    with ExitStack() as stack:
        if address == LOCAL:
            cluster = distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=None, processes=True,
                silence_logs=SILENT, preload=[WORKER],
            )  # fmt: skip
            address = stack.enter_context(cluster)
        try:
            client = stack.enter_context(distributed.Client(address, timeout=PATIENCE))
        except (OSError, TimeoutError, ValueError) as error:
            raise ConnectionError(
                f"no Dask scheduler answers at {address}: start one with `dask scheduler`, or give "
                f"--dask {LOCAL} ({type(error).__name__})"
            ) from error
        futures = {client.submit(run_job, job, pure=False): job for job in jobs}
        for future in distributed.as_completed(futures):
            lost = future.exception()
            yield _make_lost_row(futures[future], lost) if lost is not None else future.result()


def _make_lost_row(job: Job, error: BaseException) -> Row:
    """The row of a job whose worker ended."""
    reason = f"the worker failed: {show_error(error)}"
    return Row(job.source.path, job.target, "crashed", reason[:600], key=job.key)
