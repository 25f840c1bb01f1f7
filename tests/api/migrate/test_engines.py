"""What runs many jobs: this process, joblib, and Dask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from serde.api.migrate import engines, migrate
from serde.errors import MissingDependency
from tests.command import show_command


class TestEngines:
    def test_joblib_may_be_missing(self, zoo, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "joblib", None)
        with pytest.raises(MissingDependency, match="--jobs 1"):
            migrate([zoo], tmp_path / "out", jobs=2)
        assert migrate([zoo / "a.onnx"], tmp_path / "out", jobs=1).ok

    def test_without_joblib_one_model_is_converted_at_a_time(self, zoo, tmp_path, monkeypatch):
        monkeypatch.setattr("serde.api.migrate.engines.find_spec", lambda name: None)
        monkeypatch.setitem(sys.modules, "joblib", None)
        assert len(migrate([zoo], tmp_path / "out").rows) > 1

    def test_dask_may_be_missing(self, zoo, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(MissingDependency, match="pip install distributed"):
            migrate([zoo], tmp_path / "out", dask="local")

    @pytest.mark.filterwarnings("ignore")
    def test_an_unreachable_scheduler_is_said(self, zoo, tmp_path, monkeypatch):
        monkeypatch.setattr(engines, "PATIENCE", 1)
        code, out = show_command(
            "migrate", zoo, "-o", tmp_path / "out", "--dask", "tcp://127.0.0.1:9"
        )
        assert code == 5 and "no Dask scheduler answers at tcp://127.0.0.1:9" in out

    @pytest.mark.filterwarnings("ignore")
    def test_a_cluster_of_two_workers(self, zoo, tmp_path):
        """A scheduler and two workers, each a process, on the loopback interface."""
        env = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
        place = tmp_path / "scheduler.json"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
                   "--port", "0", "--no-dashboard", "--scheduler-file", place]  # fmt: skip
        started = [subprocess.Popen(command, **quiet)]
        try:
            started += [
                subprocess.Popen(
                    [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", place,
                     "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"],
                    **quiet,
                )
                for _ in range(2)
            ]  # fmt: skip
            for _ in range(300):
                if place.exists() and place.read_text().strip():
                    break
                time.sleep(0.1)
            address = json.loads(place.read_text())["address"]
            report = migrate([zoo], tmp_path / "out", to="mxnet", dask=address)
        finally:
            for process in started:
                process.kill()
                process.wait()
        assert report.counts == {"converted": 3, "refused": 1, "unreadable": 1}


@pytest.mark.parametrize(("dask", "has_joblib", "is_many"), [
    (None, True, True), (None, False, False), ("local", False, True), ("tcp://a:1", True, True),
])  # fmt: skip
def test_as_many_jobs_as_processors_where_something_runs_them(
    monkeypatch, dask, has_joblib, is_many
):
    monkeypatch.setattr(engines, "find_spec", lambda name: name if has_joblib else None)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert engines.count_jobs(dask) == (7 if is_many else 1)


def test_rows_of_several_jobs_come_as_they_are_done(monkeypatch):
    """Each in a thread of its own, at most as many at a time as are asked for."""
    at_work, most = [], []

    def run_job(job):
        at_work.append(job)
        most.append(len(at_work))
        time.sleep(0.1 if job == 0 else 0.01)
        at_work.remove(job)
        return job

    monkeypatch.setattr(engines, "run_job", run_job)
    assert [*engines.run_jobs(range(6), 1)] == [*range(6)] and max(most) == 1
    most.clear()
    rows = [*engines.run_jobs(range(6), 2)]
    assert sorted(rows) == [*range(6)] and rows[0] != 0 and max(most) == 2
