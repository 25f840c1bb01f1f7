"""Many models at once: what is found, what becomes of each, and what one can do to the others."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import fsspec
import onnx
import pytest
from click.testing import CliRunner

from serde.api import convert
from serde.api.migrate import child, engines, job, journal, migrate
from serde.api.migrate.sources import find_models
from serde.cli.commands import main
from serde.errors import MalformedFile, MissingDependency, SerdeError, UsageError
from serde.io.filesystems import open_filesystem
from testing.onnx_live import model_of

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
GOOD = "g (float[N,3] x) => (float[N,3] y) { y = Softmax(x) }"
UNKNOWN = (
    "g (float[N,3] x) => (float[N,3] y) { a = Foo(x)\n b = Foo(x)\n c = Bar(x)\n y = Sum(a, b, c) }"
)
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


def write(path, body=GOOD, opset=13):
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model_of(body, opset, 7), path)
    return path


def digits(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(DIGITS / name, folder)


@pytest.fixture
def zoo(tmp_path):
    """Models of two formats in folders, broken ones, and files that are no models."""
    digits(tmp_path / "zoo" / "mx")
    write(tmp_path / "zoo" / "a.onnx")
    write(tmp_path / "zoo" / "sub" / "a.onnx")
    write(tmp_path / "zoo" / "foo.onnx", UNKNOWN)
    (tmp_path / "zoo" / "broken.onnx").write_bytes(b"\x08\x07no model")
    (tmp_path / "zoo" / "config.json").write_text('{"learning_rate": 1}')
    (tmp_path / "zoo" / "notes.txt").write_text("nothing")
    return tmp_path / "zoo"


@pytest.fixture
def in_this_process(monkeypatch):
    """Convert in the process of the test, which takes less time than one for each model."""

    def run(command, seconds, *, text, env, apart):
        order = json.loads(text)
        Path(order["answer"]).write_text(json.dumps(child.carry_out(order)))
        return 0, ""

    monkeypatch.setattr(job, "run_child", run)


def statuses(report):
    return {Path(r.source).name: r.status for r in report.rows}


def serde(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def test_a_folder_gives_a_row_for_each_model(zoo, tmp_path):
    out = tmp_path / "out"
    seen = []
    report = migrate([zoo], out, to="mxnet", jobs=2, progress=lambda *a: seen.append(a))
    assert [(n, total) for _, n, total in seen] == [(n + 1, 5) for n in range(5)]
    assert {os.path.relpath(r.source, zoo): r.status for r in report.rows} == {
        "a.onnx": "converted", "sub/a.onnx": "converted", "mx/digits-symbol.json": "converted",
        "foo.onnx": "refused", "broken.onnx": "unreadable",
    }  # fmt: skip
    assert not report.ok and report.counts == {"converted": 3, "refused": 1, "unreadable": 1}
    assert [m[:3] for m in report.missing_operators] == [("Bar", 1, 1), ("Foo", 1, 2)]
    results = {str(p.relative_to(out)) for p in out.rglob("*-symbol.json")}
    assert results == {"a-symbol.json", "sub/a-symbol.json", "mx/digits-symbol.json"}
    read = json.loads((out / "migration.json").read_text())
    assert read["counts"] == report.counts and len(read["models"]) == 5
    assert read["missing"][0]["op"] == "Bar"
    rows = list(csv.DictReader((out / "migration.csv").read_text().splitlines()))
    assert sorted(r["status"] for r in rows) == sorted(r.status for r in report.rows)
    assert "Operators in the way" in (out / "migration.html").read_text()


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


class TestOneOfMany:
    @pytest.mark.parametrize(
        ("name", "status", "reason"),
        [
            ("hang", "timed out", "stopped after 3 seconds: --max-seconds allows more"),
            ("crash", "crashed", "the process ended with SIGABRT"),
            ("exit", "crashed", "the runtime ended the process"),
            ("hungry", "out of memory", "--max-memory allows more"),
        ],
    )
    def test_costs_one_row(self, tmp_path, monkeypatch, name, status, reason):
        monkeypatch.setattr(job, "START", ODD)
        write(tmp_path / "in" / "good.onnx")
        write(tmp_path / "in" / f"{name}.onnx")
        seconds = 3 if name == "hang" else 60
        report = migrate([tmp_path / "in"], tmp_path / "out", max_seconds=seconds, jobs=2)
        assert statuses(report) == {"good.onnx": "converted", f"{name}.onnx": status}
        assert next(r for r in report.rows if r.status == status).reason == reason

    def test_of_200_models_20_are_broken(self, tmp_path, in_this_process):
        for n in range(200):
            path = write(
                tmp_path / "in" / f"{n % 7}" / f"m{n}.onnx", UNKNOWN if n % 20 == 0 else GOOD
            )
            if n % 20 == 1:
                path.write_bytes(path.read_bytes()[:50])
        report = migrate([tmp_path / "in"], tmp_path / "out", to="relay", jobs=1)
        assert report.counts == {"converted": 180, "refused": 10, "unreadable": 10}
        assert [m[:3] for m in report.missing_operators] == [("Bar", 10, 10), ("Foo", 10, 20)]


@pytest.mark.usefixtures("in_this_process")
class TestResuming:
    def test_what_is_done_is_not_done_again(self, zoo, tmp_path, monkeypatch):
        out = tmp_path / "out"
        arguments = {"to": "mxnet", "jobs": 1}
        first = migrate([zoo], out, **arguments)
        again = migrate([zoo], out, **arguments)
        assert again.resumed == 5 and again.rows == first.rows
        (out / "a-symbol.json").unlink()
        write(zoo / "sub" / "a.onnx", GOOD.replace("Softmax", "Relu"))
        seen = []
        report = migrate(
            [zoo], out, **arguments, progress=lambda row, n, total: seen.append(row.target)
        )
        assert report.resumed == 3
        assert {os.path.relpath(t, out) for t in seen} == {"a-symbol.json", "sub/a-symbol.json"}
        assert migrate([zoo], out, **arguments, write_epoch=2).resumed == 0
        assert migrate([zoo], out, **arguments, again=True).resumed == 0

    def test_an_interrupted_run_keeps_its_rows(self, zoo, tmp_path):
        def interrupt(row, done, total):
            if done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            migrate([zoo], tmp_path / "out", jobs=1, progress=interrupt)
        with (tmp_path / "out" / "migration.jsonl").open("a") as file:
            file.write('{"source": "cut off')
        assert migrate([zoo], tmp_path / "out", jobs=1).resumed == 2

    def test_a_crash_is_tried_again(self, tmp_path, monkeypatch):
        write(tmp_path / "in" / "crash.onnx")
        with monkeypatch.context() as patch:
            patch.setattr(job, "run_child", lambda *a, **k: (-6, ""))
            assert not migrate([tmp_path / "in"], tmp_path / "out", jobs=1).ok
        assert migrate([tmp_path / "in"], tmp_path / "out", jobs=1).ok


class TestSources:
    def test_globs_files_and_prefixes(self, zoo):
        digits(zoo)
        names = {m.relative for m in find_models([f"{zoo}/**/*.onnx"])}
        assert names == {"a.onnx", "sub/a.onnx", "foo.onnx", "broken.onnx"}
        assert [m.relative for m in find_models([zoo / "digits"])] == ["digits-symbol.json"]
        assert [m.relative for m in find_models([zoo / "a.onnx", f"{zoo}/a.*"])] == ["a.onnx"]

    @pytest.mark.parametrize("name", ["none", "none/*.onnx"])
    def test_what_is_not_there_is_said(self, tmp_path, name):
        with pytest.raises(MalformedFile):
            migrate([tmp_path / name], tmp_path / "out")

    def test_a_folder_without_models_is_said(self, tmp_path):
        with pytest.raises(UsageError, match=r"no models in .* they end with .*\.onnx"):
            migrate([tmp_path], tmp_path / "out")

    def test_two_models_that_would_be_one_file_are_refused_first(self, zoo, tmp_path):
        with pytest.raises(UsageError, match="would both be written to a.onnx"):
            migrate([zoo / "a.onnx", zoo / "sub" / "a.onnx"], tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_models_of_two_formats_beside_each_other_have_two_results(self, tmp_path):
        """As where a symbol lies beside what was exported of it."""
        source, out = tmp_path / "in", tmp_path / "out"
        source.mkdir()
        convert(DIGITS, source / "d-symbol.json", inputs={"data": (1, 1, 8, 8)})
        convert(source / "d-symbol.json", source / "d.onnx")
        convert(source / "d.onnx", source / "d.relay")
        done = migrate([source], out)
        assert done.ok and {p.name for p in out.glob("*.onnx")} == {
            "d.onnx", "d.onnx.onnx", "d.relay.onnx",
        }  # fmt: skip
        assert len(migrate([source], tmp_path / "symbols", to="mxnet").rows) == 3
        assert len([*(tmp_path / "symbols").glob("*.params")]) == 3

    def test_results_among_the_sources_are_no_sources(self, zoo):
        write(zoo / "out" / "old.onnx")
        assert "out/old.onnx" not in {m.relative for m in find_models([zoo], str(zoo / "out"))}


@pytest.mark.usefixtures("in_this_process")
class TestPassedOver:
    """What is no model is said, and results of before are none."""

    @pytest.fixture
    def heap(self, tmp_path):
        folder = tmp_path / "heap"
        digits(folder / "mx")
        write(folder / "UPPER.ONNX")
        (folder / "lone").mkdir()
        shutil.copy(DIGITS / "digits-0010.params", folder / "lone" / "net.params")
        for name in ("other.zip", "handler.model"):
            with zipfile.ZipFile(folder / name, "w") as archive:
                archive.writestr("notes.txt", "nothing")
        return folder

    def test_archives_and_parameters_are_named(self, heap, tmp_path):
        found = migrate([heap], tmp_path / "out")
        assert statuses(found) == {"UPPER.ONNX": "converted", "digits-symbol.json": "converted"}
        assert (tmp_path / "out" / "UPPER.onnx").exists()
        reasons = {Path(path).name: reason for path, reason in found.skipped.items()}
        assert reasons.keys() == {"net.params", "other.zip", "handler.model"}
        assert reasons["net.params"].startswith("parameters without a symbol")
        page, text = found.to_html(), json.loads(found.to_json())
        assert "other.zip" in page and len(text["skipped"]) == 3
        code, out = serde("migrate", heap, "-o", tmp_path / "out")
        assert code == 0 and out.count("passed over ") == 3

    def test_what_people_hold_for_models_is_named_with_what_to_do(self, heap, tmp_path):
        files = {
            "net.h5": b"\x89HDF\r\n\x1a\n", "net.pth": b"\x80\x02}q\0.", "net.tar.xz": b"\xfd7zXZ\0",
            "table.csv.xz": b"\xfd7zXZ\0", "cat.jpg": b"\xff\xd8\xff", "empty": b"",
        }  # fmt: skip
        for name, content in files.items():
            (heap / "lone" / name).write_bytes(content)
        os.mkfifo(heap / "lone" / "pipe")
        found = migrate([heap], tmp_path / "out")
        reasons = {Path(path).name: reason for path, reason in found.skipped.items()}
        names = {"net.h5", "net.pth", "net.tar.xz"}
        assert reasons.keys() == {"net.params", "other.zip", "handler.model", *names}
        assert all(": " in reasons[name] for name in names)  # what it is: what to do

    def test_a_url_names_its_archives(self, heap, tmp_path):
        system = fsspec.filesystem("memory")
        system.put(str(heap), "/heap", recursive=True)
        found = migrate(["memory://heap"], tmp_path / "out")
        system.rm("/heap", recursive=True)
        assert {p.rpartition("/")[2] for p in found.skipped} == {"other.zip", "handler.model"}

    @pytest.mark.parametrize("to", ["onnx", "mxnet"])
    def test_a_parent_folder_is_migrated_again(self, heap, tmp_path, to):
        first = migrate([heap], heap / "out", to=to)
        os.rename(heap / "out", heap / "moved")
        for folder in (heap / "other", tmp_path / "outside"):
            again = migrate([heap], folder, to=to)
            assert statuses(again) == statuses(first)
        assert not {r.source for r in again.rows if "moved" in r.source or "other" in r.source}

    def test_results_beside_their_sources_are_no_models(self, heap):
        first = migrate([heap / "mx"], heap / "mx")
        assert (heap / "mx" / "digits.onnx").exists()
        again = migrate([heap / "mx"], heap / "mx", again=True)
        assert statuses(first) == statuses(again) == {"digits-symbol.json": "converted"}
        digits_left = (heap / "mx" / "digits-symbol.json").read_bytes()
        assert digits_left == (DIGITS / "digits-symbol.json").read_bytes()

    def test_a_folder_of_results_may_be_migrated_further(self, heap, tmp_path):
        migrate([heap], tmp_path / "out")
        further = migrate([tmp_path / "out"], tmp_path / "relay", to="relay")
        assert statuses(further) == {"UPPER.onnx": "converted", "digits.onnx": "converted"}

    def test_sources_are_never_overwritten(self, heap):
        write(heap / "a.onnx")
        before = (heap / "a.onnx").read_bytes()
        with pytest.raises(UsageError, match=r"a\.onnx is read by this command"):
            migrate([heap], heap)
        assert (heap / "a.onnx").read_bytes() == before

    def test_a_killed_run_in_the_folder_of_its_sources_goes_on(self, heap, monkeypatch):
        write(heap / "mx" / "m.onnx")

        def stop(jobs, count, dask):
            job.run_job(jobs[0])
            raise KeyboardInterrupt
            yield

        monkeypatch.setattr("serde.api.migrate.run_jobs", stop)
        with pytest.raises(KeyboardInterrupt):
            migrate([heap / "mx"], heap / "mx", to="relay")
        assert len([*(heap / "mx").glob("*.relay")]) == 1
        monkeypatch.undo()
        again = migrate([heap / "mx"], heap / "mx", to="relay")
        assert statuses(again) == {"digits-symbol.json": "converted", "m.onnx": "converted"}


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
        code, out = serde("migrate", zoo, "-o", tmp_path / "out", "--jobs", "1")
        assert code == 5
        assert "5 models: 3 converted" in out and "No space left on device" in out
        assert "tables:" not in out

    def test_the_user_stops_it(self, zoo, tmp_path, monkeypatch):
        def stop(jobs, count, dask):
            yield job.run_job(jobs[0])
            raise KeyboardInterrupt

        monkeypatch.setattr("serde.api.migrate.run_jobs", stop)
        code, out = serde("migrate", zoo, "-o", tmp_path / "out", "--jobs", "1")
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
            write(tmp_path / "in" / f"m{number}.onnx")
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


@pytest.mark.usefixtures("in_this_process")
class TestUrls:
    @pytest.fixture
    def bucket(self, zoo):
        system = fsspec.filesystem("memory")
        system.store.clear()
        system.pseudo_dirs[:] = [""]
        for path in zoo.rglob("*"):
            if path.is_file():
                system.pipe_file(f"/bucket/{path.relative_to(zoo)}", path.read_bytes())
        yield system
        system.store.clear()

    def test_a_bucket_to_a_bucket(self, bucket):
        report = migrate(["memory://bucket"], "memory://results/x", jobs=2, reports=True)
        assert statuses(report) == {
            "a.onnx": "converted", "digits-symbol.json": "converted", "foo.onnx": "refused",
            "broken.onnx": "unreadable",
        }  # fmt: skip
        assert bucket.exists("/results/x/mx/digits.onnx")
        assert bucket.exists("/results/x/mx/digits.onnx.report.html")
        assert bucket.exists("/results/x/migration.html")
        assert migrate(["memory://bucket"], "memory://results/x", jobs=2, reports=True).resumed == 5

    def test_a_glob_and_a_file(self, bucket, tmp_path):
        report = migrate(["memory://bucket/*.onnx"], tmp_path / "out", jobs=1)
        assert statuses(report).keys() == {"a.onnx", "foo.onnx", "broken.onnx"}
        report = migrate(["memory://bucket/mx/digits-symbol.json"], tmp_path / "out2", jobs=1)
        assert report.ok and (tmp_path / "out2" / "digits.onnx").exists()

    def test_file_urls(self, zoo, tmp_path):
        report = migrate([f"file://{zoo}/mx"], f"file://{tmp_path}/out", jobs=1)
        assert report.ok and (tmp_path / "out" / "digits.onnx").exists()

    def test_a_missing_driver_is_named(self):
        with pytest.raises(MissingDependency, match="s3:// needs a driver .* pip install s3fs"):
            open_filesystem("s3://bucket/models")

    def test_fsspec_itself_may_be_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "fsspec", None)
        with pytest.raises(MissingDependency, match="pip install fsspec"):
            open_filesystem("s3://bucket/models")

    def test_unknown_protocols_and_absent_files(self, bucket, tmp_path):
        with pytest.raises(UsageError, match="nosuch"):
            migrate(["nosuch://x"], tmp_path / "out")
        with pytest.raises(MalformedFile, match="nothing at this URL"):
            migrate(["memory://bucket/none"], tmp_path / "out")


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
        code, out = serde("migrate", zoo, "-o", tmp_path / "out", "--dask", "tcp://127.0.0.1:9")
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


class TestCommand:
    def test_it_prints_the_table_and_the_operators(self, zoo, tmp_path, in_this_process):
        code, out = serde("migrate", zoo, "-o", tmp_path / "out", "--to", "mxnet", "--jobs", "1")
        assert code == 1
        assert "5 models: 3 converted, 1 unreadable, 1 refused" in out
        assert "  Foo: 1 model(s), 2 node(s):" in out and "[5/5]" in out
        code, out = serde("migrate", zoo / "mx", "-o", tmp_path / "o", "--json", "--static", "N=2")
        assert code == 0 and json.loads(out)["models"][0]["ok"] is True

    def test_verified_models_say_so(self, zoo, tmp_path):
        code, out = serde("migrate", zoo / "sub", "-o", tmp_path / "out", "--verify", "--jobs", "1")
        assert code == 0 and "1 model: 1 verified" in out

    def test_a_folder_that_cannot_be_written_is_said_first(self, zoo, tmp_path):
        (tmp_path / "out").write_text("a file")
        code, out = serde("migrate", zoo, "-o", tmp_path / "out")
        assert code == 2 and "out is a file: name the folder for all results" in out

    def test_a_failed_read_of_a_bucket_is_one_message(self, zoo, tmp_path, monkeypatch):
        system = fsspec.filesystem("memory")
        monkeypatch.setattr(type(system), "isdir", lambda self, path: 1 / 0)
        with pytest.raises(SerdeError, match="ZeroDivisionError"):
            find_models(["memory://bucket"])
