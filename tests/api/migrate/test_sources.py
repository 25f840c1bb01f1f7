"""Which models are found, and what is passed over."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from glob import glob
from pathlib import Path
from random import Random
from unicodedata import normalize

import fsspec
import pytest

from serde.api import convert
from serde.api.migrate import job, journal, migrate
from serde.api.migrate.sources import ModelSource, find_models, plan_targets, stem_of
from serde.errors import MalformedFile, MissingDependency, UsageError
from serde.io.filesystems import open_filesystem
from serde.plugins import get_format
from testing.archives import KINDS, pack
from testing.onnx_live import DIGITS
from tests.api.migrate.zoo import statuses, write_digits, write_model
from tests.command import show_command


class TestSources:
    def test_globs_files_and_prefixes(self, zoo):
        write_digits(zoo)
        names = {m.relative for m in find_models([f"{zoo}/**/*.onnx"])}
        assert names == {"a.onnx", "sub/a.onnx", "foo.onnx", "broken.onnx"}
        assert [m.relative for m in find_models([zoo / "digits"])] == ["digits-symbol.json"]
        assert [m.relative for m in find_models([zoo / "a.onnx", f"{zoo}/a.*"])] == ["a.onnx"]

    def test_a_glob_does_not_follow_links_that_lead_back(self, zoo):
        """Three links to a folder in it are 3^40 paths, as far as the system follows them."""
        expected = {m.path for m in find_models([f"{zoo}/**/*.onnx"])}
        for number in range(3):
            os.symlink(".", zoo / f"self{number}")
            os.symlink("..", zoo / "sub" / f"above{number}")
        for pattern in ("**/*.onnx", "**/**/*.onnx"):
            assert {m.path for m in find_models([f"{zoo}/{pattern}"])} == expected
        assert expected < {m.path for m in find_models([f"{zoo}/**"])}
        linked = find_models([f"{zoo}/self0/*.onnx"])  # a link that is named is followed
        assert {m.path for m in linked} == {str(zoo / "self0" / p.name) for p in zoo.glob("*.onnx")}

    def test_a_glob_finds_what_glob_finds(self, tmp_path, monkeypatch):
        random = Random(0)
        monkeypatch.chdir(tmp_path)
        for depth in range(40):
            names = random.choices(["a", "b", "c.d", "[x]", ".h"], k=1 + depth % 4)
            write_model(tmp_path.joinpath(*names, random.choice(["m.onnx", "n.onnx", ".z.onnx"])))
        for pattern in ("**/*.onnx", "a/**/*.onnx", "**/a/**/m.onnx", "*/**/n.onnx", "**/[ab]/m*"):
            expected = {os.path.abspath(p) for p in glob(pattern, recursive=True)}
            assert {m.path for m in find_models([pattern])} == expected

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

    @pytest.mark.parametrize(
        "names",
        [("Net", "net", "NET"), ("\xe9", "e\u0301"), ("x/Net", "X/net"), ("a/\xdf", "a/SS")],
    )
    def test_names_that_some_file_systems_take_for_one_have_results_apart(self, tmp_path, names):
        """The folder may lie on such a system, or be copied to one."""
        for name in names:
            write_model(tmp_path / "in" / f"{name}.onnx")
        done = migrate([tmp_path / "in"], tmp_path / "out", jobs=1)
        results = [str(p) for p in (tmp_path / "out").rglob("*.onnx")]
        apart = {normalize("NFC", normalize("NFD", n).casefold()) for n in results}
        assert done.ok and len(results) == len(apart) == len(names)

    def test_results_among_the_sources_are_no_sources(self, zoo):
        write_model(zoo / "out" / "old.onnx")
        assert "out/old.onnx" not in {m.relative for m in find_models([zoo], str(zoo / "out"))}


@pytest.mark.usefixtures("in_this_process")
class TestPassedOver:
    """What is no model is said, and results of before are none."""

    @pytest.fixture
    def heap(self, tmp_path):
        folder = tmp_path / "heap"
        write_digits(folder / "mx")
        write_model(folder / "UPPER.ONNX")
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
        code, out = show_command("migrate", heap, "-o", tmp_path / "out")
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
        write_model(heap / "a.onnx")
        before = (heap / "a.onnx").read_bytes()
        with pytest.raises(UsageError, match=r"a\.onnx is read by this command"):
            migrate([heap], heap)
        assert (heap / "a.onnx").read_bytes() == before

    def test_a_killed_run_in_the_folder_of_its_sources_goes_on(self, heap, monkeypatch):
        write_model(heap / "mx" / "m.onnx")

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
class TestUrls:
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


@pytest.mark.parametrize(("name", "stem"), [
    ("a.onnx", "a"), ("a-symbol.json", "a"), ("A.ONNX", "A"), ("a.tar.gz", "a"), ("a.b", "a.b"),
    (".onnx", ".onnx"), ("a.onnx.zip", "a.onnx"),
])  # fmt: skip
def test_the_stem_of_a_file_is_without_what_tells_its_format(name, stem):
    assert stem_of(name) == stem


@pytest.mark.parametrize(("relatives", "targets"), [
    (["a.onnx", "x/a.onnx"], ["a-symbol.json", "x/a-symbol.json"]),
    (["x/a.onnx", "x/a.relay"], ["x/a-symbol.json", "x/a.relay-symbol.json"]),
    (["../../a.onnx"], ["a-symbol.json"]), (["x\\a.onnx"], ["x/a-symbol.json"]),
])  # fmt: skip
def test_results_have_the_folders_and_stems_of_their_sources(relatives, targets):
    models = [ModelSource(f"/in/{relative}", relative) for relative in relatives]
    assert [*plan_targets(models, get_format("mxnet")).values()] == targets


@pytest.mark.usefixtures("in_this_process")
class TestSeveralModelsInAnArchive:
    """Each is a model of its own: in archives of any kind, and archives in those."""

    def pack(self, path, kind, **more):
        files = {
            "a/net-symbol.json": (DIGITS / "digits-symbol.json").read_bytes(),
            "a/net-0010.params": (DIGITS / "digits-0010.params").read_bytes(),
            "b/net.onnx": write_model(path.with_suffix(".onnx.tmp")).read_bytes(),
            "b/settings.json": b"{}",
        }
        path.with_suffix(".onnx.tmp").unlink()
        path.write_bytes(pack(files | more, kind))
        return path

    @pytest.mark.parametrize("kind", KINDS)
    def test_each_is_converted_below_a_folder_of_the_name(self, kind, tmp_path):
        (tmp_path / "in").mkdir()
        name = f"two.{kind.replace('stored', 'zip')}"
        archive = self.pack(tmp_path / "in" / name, kind)
        done = migrate([tmp_path / "in"], tmp_path / "out")
        assert [(row.source, row.status) for row in done.rows] == [
            (f"{archive}:a/net-symbol.json", "converted"), (f"{archive}:b/net.onnx", "converted"),
        ]  # fmt: skip
        results = [p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*.onnx")]
        assert sorted(map(str, results)) == [f"{name}/a/net.onnx", f"{name}/b/net.onnx"]
        assert migrate([archive], tmp_path / "out").resumed == 2
        assert migrate([tmp_path / "in"], tmp_path / "out").resumed == 2

    def test_archives_in_an_archive_are_looked_into(self, tmp_path):
        inner = self.pack(tmp_path / "inner.zip", "zip").read_bytes()
        (tmp_path / "inner.zip").unlink()
        nothing = pack({"notes.txt": b""}, "zip")
        archive = tmp_path / "all.tar"
        archive.write_bytes(pack({"inner.zip": inner, "no.zip": nothing, "x.onnx": b"no"}, "tar"))
        done = migrate([archive], tmp_path / "out")
        assert {row.source.removeprefix(f"{archive}:"): row.status for row in done.rows} == {
            "inner.zip:a/net-symbol.json": "converted", "inner.zip:b/net.onnx": "converted",
            "x.onnx": "unreadable", "no.zip": "unreadable",
        }  # fmt: skip

    def test_one_is_named_as_messages_name_it(self, tmp_path):
        archive = self.pack(tmp_path / "two.zip", "zip")
        for member in ("a/net-symbol.json", "b/net.onnx"):
            done = migrate([f"{archive}:{member}"], tmp_path / member[0])
            assert done.ok and len(done.rows) == 1

    def test_one_at_a_url_is_named(self, tmp_path):
        system = fsspec.filesystem("memory")
        system.pipe_file("/zoo/two.zip", self.pack(tmp_path / "two.zip", "zip").read_bytes())
        done = migrate(["memory://zoo/two.zip:b/net.onnx"], tmp_path / "out")
        with pytest.raises(MalformedFile, match="there is nothing at this URL"):
            find_models(["memory://zoo/one.zip:b/net.onnx"])
        system.rm("/zoo", recursive=True)
        assert done.ok and (tmp_path / "out" / "two.zip" / "b" / "net.onnx").exists()

    def test_a_changed_archive_is_converted_again(self, tmp_path):
        archive = self.pack(tmp_path / "two.zip", "zip")
        migrate([archive], tmp_path / "out")
        self.pack(archive, "zip", **{"b/other.txt": b""})
        assert migrate([archive], tmp_path / "out").resumed == 0

    @pytest.mark.parametrize("copies, levels", [(1, 300), (16, 5)])
    def test_archives_in_archives_without_end_are_not_looked_into(self, copies, levels, tmp_path):
        """Of those in an archive only the first level is listed."""
        data = pack({"a.onnx": b"", "b.onnx": b""}, "zip")
        for _ in range(levels):
            data = pack({f"{n}.zip": data for n in range(copies)} | {"c.onnx": b""}, "zip")
        (tmp_path / "all.zip").write_bytes(data)
        assert len(find_models([tmp_path / "all.zip"])) <= (copies + 1) ** 2

    def test_an_archive_is_listed_once(self, tmp_path, monkeypatch):
        (tmp_path / "in").mkdir()
        archive = self.pack(tmp_path / "in" / "two.tar.gz", "tar.gz")
        done = migrate([archive], tmp_path / "out")
        monkeypatch.setattr(journal, "list_contained", None)
        again = migrate([tmp_path / "in"], tmp_path / "out")
        assert again.resumed == 2 and statuses(again) == statuses(done)
        archive.write_bytes(archive.read_bytes() + b"\0")
        with pytest.raises(TypeError):  # it has changed
            migrate([archive], tmp_path / "out")


@pytest.mark.usefixtures("in_this_process")
def test_reasons_and_the_page_show_no_folder_that_the_row_names(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "net-symbol.json").write_bytes((DIGITS / "digits-symbol.json").read_bytes())
    (folder / "net-0001.params").write_bytes(b"no parameters")
    (folder / "lone").mkdir()
    (folder / "lone" / "b.params").write_bytes((DIGITS / "digits-0010.params").read_bytes())
    done = migrate([folder], tmp_path / "out")
    assert "net-0001.params" in done.rows[0].reason and str(folder) not in done.rows[0].reason
    assert f"<code>{os.path.join('..', 'in', 'lone', 'b.params')}</code>" in done.to_html()
