"""``serde migrate``: what it prints, and how it is stopped."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys

import fsspec
import pytest

from serde.api.migrate import job, journal, migrate
from serde.api.migrate.sources import find_models
from serde.errors import SerdeError
from tests.api.migrate.zoo import write_model
from tests.command import show_command


def test_models_below_the_working_folder_are_called_as_from_there(zoo, tmp_path, monkeypatch):
    monkeypatch.chdir(zoo.parent)
    out = show_command("migrate", zoo, "-o", tmp_path / "out", "--jobs", "1")[1]
    assert f" {zoo.name}/broken.onnx: " in out and f" {zoo}/" not in out


@pytest.mark.usefixtures("in_this_process")
class TestStopped:
    def full_disk(self, monkeypatch, name):
        def fail(self, *arguments):
            raise OSError(errno.ENOSPC, "No space left on device", "out/" + name)

        monkeypatch.setattr(journal.Journal, name, fail)

    @pytest.mark.parametrize("name", ["enter", "write"])
    def test_a_full_disk_costs_no_row(self, zoo, tmp_path, monkeypatch, name):
        self.full_disk(monkeypatch, name)
        with pytest.raises(OSError, match="No space left") as caught:
            migrate([zoo], tmp_path / "out", jobs=1)
        assert len(caught.value.migration.rows) == 5
        code, out = show_command("migrate", zoo, "-o", tmp_path / "out", "--jobs", "1")
        assert code == 5
        assert "5 models: 3 converted" in out and "No space left on device" in out
        assert "tables:" not in out

    def test_the_user_stops_it(self, zoo, tmp_path, monkeypatch):
        def stop(jobs, count, dask):
            yield job.run_job(jobs[0])
            raise KeyboardInterrupt

        monkeypatch.setattr("serde.api.migrate.run_jobs", stop)
        code, out = show_command("migrate", zoo, "-o", tmp_path / "out", "--jobs", "1")
        assert code == 130 and "1 model: 1 converted" in out
        assert "stopped before 4 models: run the same command again to go on" in out
        assert json.loads((tmp_path / "out" / "migration.json").read_text())["models"]
        monkeypatch.undo()
        assert migrate([zoo], tmp_path / "out").resumed == 1

    @pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
    @pytest.mark.parametrize("more", [("--jobs", "1"), ("--jobs", "2"), ("--dask", "local")])
    def test_ctrl_c_shows_no_traceback(self, tmp_path, more):
        if "--dask" in more:
            pytest.importorskip("distributed")
        for number in range(9):
            write_model(tmp_path / "in" / f"m{number}.onnx")
        with subprocess.Popen(
            [sys.executable, "-m", "serde", "migrate", tmp_path / "in", "-o", tmp_path / "out",
             *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
            # a command in the background ignores what a terminal sends
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:  # fmt: skip
            lines = iter(process.stdout.readline, "")
            assert any(line.startswith("[1/9]") for line in lines)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            out, _ = process.communicate(timeout=60)
        assert process.returncode == 130 and "Traceback" not in out
        assert "run the same command again to go on" in out


class TestCommand:
    def test_it_prints_the_table_and_the_operators(self, zoo, tmp_path, in_this_process):
        code, out = show_command(
            "migrate", zoo, "-o", tmp_path / "out", "--to", "mxnet", "--jobs", "1"
        )
        assert code == 1
        assert "5 models: 3 converted, 1 unreadable, 1 refused" in out
        assert "  Foo: 1 model(s), 2 node(s):" in out and "[5/5]" in out
        code, out = show_command(
            "migrate", zoo / "mx", "-o", tmp_path / "o", "--json", "--static", "N=2"
        )
        assert code == 0 and json.loads(out)["models"][0]["ok"] is True

    def test_verified_models_say_so(self, zoo, tmp_path):
        code, out = show_command(
            "migrate", zoo / "sub", "-o", tmp_path / "out", "--verify", "--jobs", "1"
        )
        assert code == 0 and "1 model: 1 verified" in out

    def test_a_folder_that_cannot_be_written_is_said_first(self, zoo, tmp_path):
        (tmp_path / "out").write_text("a file")
        code, out = show_command("migrate", zoo, "-o", tmp_path / "out")
        assert code == 2 and "out is a file: name the folder for all results" in out

    def test_a_failed_read_of_a_bucket_is_one_message(self, zoo, tmp_path, monkeypatch):
        system = fsspec.filesystem("memory")
        monkeypatch.setattr(type(system), "isdir", lambda self, path: 1 / 0)
        with pytest.raises(SerdeError, match="ZeroDivisionError"):
            find_models(["memory://bucket"])
