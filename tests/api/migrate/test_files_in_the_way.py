"""Files where a migration would write: models, and what no migration has written, stay."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fsspec
import pytest

from serde.api.migrate import job, migrate
from serde.api.migrate.journal import JOURNAL, TABLES
from serde.errors import TargetRefused, UsageError
from testing.onnx_live import DIGITS
from tests.api.migrate.zoo import write_digits, write_onnx

pytestmark = pytest.mark.usefixtures("in_this_process", "in_empty_folder")


def test_results_beside_their_sources():
    write_digits(Path("in"))
    assert migrate(["in"], "in", jobs=1, external_data="always").ok
    again = migrate(["in/digits-symbol.json"], "in", jobs=1, external_data="always")
    assert again.resumed == 1


@pytest.mark.parametrize(("to", "weights"), [("mxnet", "t-0000.params"), ("relay", "t.params"),
                                             ("onnx", "t.onnx.data")])  # fmt: skip
def test_no_weights_of_another_model_are_replaced(to, weights):
    """Those that ``a`` reads have the name of those that ``t`` would be written with."""
    write_onnx("in/a.onnx", 3.0, weights)
    write_digits(Path("in"))
    os.rename("in/digits-symbol.json", "in/t-symbol.json")
    os.rename("in/digits-0010.params", "in/t-0010.params")
    if to == "mxnet":
        Path("in/t-symbol.json").unlink()
        Path("in/t-0010.params").unlink()
        write_onnx("in/t.onnx", 5.0, "others")
    before = {p: p.read_bytes() for p in Path("in").iterdir()}
    options = {"external_data": "always"} if to == "onnx" else {}
    sources = {
        "onnx": ["in/t-symbol.json"],
        "mxnet": ["in/t.onnx"],
        "relay": ["in/*.onnx", "in/*-symbol.json"],
    }[to]
    result = migrate(sources, "in", jobs=1, to=to, **options)
    (row,) = (r for r in result.rows if Path(r.source).name.startswith("t"))
    assert row.status == "failed" and weights in row.reason
    assert {p: p.read_bytes() for p in before} == before
    os.rename(Path("in", weights), "aside")
    assert any(r.ok for r in migrate(sources, "in", jobs=1, to=to, **options).rows
               if Path(r.source).name.startswith("t"))  # fmt: skip
    migrate(sources, "in", jobs=1, to=to, **options)  # ``a`` reads what ``t`` wrote
    again = migrate(sources, "in", jobs=1, to=to, **options)
    assert again.resumed == sum(r.ok for r in again.rows)


@pytest.mark.parametrize("to", ["onnx", "mxnet"])
def test_what_was_in_the_way_of_a_result_is_looked_for_again(to):
    write_onnx()
    obstacle = Path({"onnx": "out/m.onnx", "mxnet": "out/m-0003.params"}[to])
    obstacle.parent.mkdir()
    obstacle.mkdir() if to == "onnx" else shutil.copy(DIGITS / "digits-0010.params", obstacle)
    assert migrate(["in"], "out", jobs=1, to=to).counts == {"failed": 1}
    obstacle.rmdir() if to == "onnx" else obstacle.unlink()
    assert migrate(["in"], "out", jobs=1, to=to).counts == {"converted": 1}


@pytest.mark.parametrize("alias", ["itself", "hard link", "link"])
def test_no_result_takes_the_place_of_a_model(alias):
    folder = {"itself": "in"}.get(alias, "out")
    Path("out").mkdir()
    write_onnx()
    if alias == "hard link":
        os.link("in/m.onnx", "out/m.onnx")
    elif alias == "link":
        os.symlink("../in/m.onnx", "out/m.onnx")
    before = {p: p.read_bytes() for p in Path("in").iterdir()}
    with pytest.raises(UsageError, match=r"m\.onnx is read by this command: write to another name"):
        migrate(["in"], folder, jobs=1)
    assert {p: p.read_bytes() for p in Path("in").iterdir()} == before


def test_no_table_takes_the_place_of_a_model():
    shutil.copy(DIGITS / "digits-symbol.json", "in/migration.json")
    before = Path("in/migration.json").read_bytes()
    with pytest.raises(UsageError, match="migration.json in in is there without the journal"):
        migrate(["in/migration.json"], "in", jobs=1)
    assert Path("in/migration.json").read_bytes() == before


@pytest.mark.parametrize("text", [None, "", '{"sou'])
def test_nothing_is_written_through_a_link_to_what_is_no_journal(text):
    write_onnx()
    Path("out").mkdir()
    os.symlink("../notes", Path("out", JOURNAL))
    if text is not None:
        Path("notes").write_text(text)
    with pytest.raises(UsageError, match="is no journal of a migration"):
        migrate(["in"], "out", jobs=1)
    assert (Path("notes").read_text() if Path("notes").exists() else None) == text


@pytest.mark.parametrize("meanwhile", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_a_file_in_the_place_of_a_table_stays(name, meanwhile):
    """Also beside a journal, and where it came while models were converted."""
    write_onnx()
    migrate(["in"], "out", jobs=1)
    migrate(["in"], "out", jobs=1)  # the tables are replaced
    if not meanwhile:
        Path("out", name).write_text("mine")
    with pytest.raises(TargetRefused, match=f"{name} is there, and is no table of a migration"):
        migrate(
            ["in"], "out", jobs=1, again=True,
            progress=lambda *_: Path("out", name).write_text("mine"),
        )  # fmt: skip
    assert Path("out", name).read_text() == "mine"


@pytest.mark.parametrize("way", ["itself", "link"])
@pytest.mark.parametrize("name", [JOURNAL, *TABLES])
def test_a_folder_of_other_files_of_these_names_is_refused(name, way):
    write_onnx()
    Path("out").mkdir()
    file = Path("out", name) if way == "itself" else Path("notes")
    file.write_text("mine")
    if way == "link":
        os.symlink("../notes", Path("out", name))
    with pytest.raises(UsageError, match=f"{name} in out is .* journal"):
        migrate(["in"], "out", jobs=1)
    assert file.read_text() == "mine" and len(list(Path("out").iterdir())) == 1


OTHERS = {"relay": ["m.relay", "m.params"], "mxnet": ["m-symbol.json", "m-0000.params"],
          "onnx": ["m.onnx", "m.onnx.data"]}  # fmt: skip


@pytest.mark.parametrize("folder", ["in", "out", "file"])
@pytest.mark.parametrize(("to", "name"), [(to, n) for to, names in OTHERS.items() for n in names])
def test_no_file_that_no_run_wrote_is_replaced(to, name, folder):
    write_onnx("in/m.onnx" if to != "onnx" else "other.onnx")
    if to == "onnx":
        write_digits(Path("in"))
        os.rename("in/digits-symbol.json", "in/m-symbol.json")
        os.rename("in/digits-0010.params", "in/m-0010.params")
    place = Path("in" if folder == "in" else "out")
    place.mkdir(exist_ok=True)
    (place / name).write_text("mine")
    goal = f"file://{place.resolve()}" if folder == "file" else str(place)
    sources = ["in/m-symbol.json" if to == "onnx" else "in/m.onnx"]
    options = {"external_data": "always"} if to == "onnx" else {}
    report = migrate(sources, goal, jobs=1, to=to, **options)
    assert report.counts == {"failed": 1} and "no migration" in report.rows[0].reason
    assert (place / name).read_text() == "mine"
    (place / name).unlink()
    for resumed in (0, 1):
        report = migrate(sources, goal, jobs=1, to=to, **options)
        assert report.ok and report.resumed == resumed
    assert migrate(sources, goal, jobs=1, to=to, again=True, **options).ok


def test_a_report_that_cannot_be_written_costs_no_result():
    write_onnx()
    Path("out").mkdir()
    Path("out/m.onnx.report.html").write_text("mine")
    report = migrate(["in"], "out", jobs=1, reports=True)
    assert report.ok and "no report" in report.rows[0].reason
    assert Path("out/m.onnx.report.html").read_text() == "mine"


@pytest.mark.parametrize("to", ["relay", "mxnet"])
def test_a_folder_is_migrated_into_itself_again(to):
    write_onnx()
    assert migrate(["in"], "in", jobs=1, to=to).ok
    report = migrate(["in"], "in", jobs=1, to=to)
    assert report.ok and report.resumed == len(report.rows) == 1


@pytest.mark.parametrize("moment", ["killed", "timed out", "crashed"])
@pytest.mark.parametrize("folder", ["in", "out"])
def test_leftovers_of_a_run_that_did_not_end_are_replaced(folder, moment, monkeypatch):
    """Those of the user are not: the ones that were there, and the ones that came afterwards."""
    write_onnx()
    Path(folder).mkdir(exist_ok=True)
    Path(folder, "m.notes").write_text("mine")
    run = job.run_child

    def stop(*args, **options):
        run(*args, **options)
        if moment == "killed":
            raise KeyboardInterrupt
        if moment == "timed out":
            raise TimeoutError("stopped")
        return -6, ""

    monkeypatch.setattr(job, "run_child", stop)
    if moment == "killed":
        with pytest.raises(KeyboardInterrupt):
            migrate(["in"], folder, jobs=1, to="relay")
    else:
        assert migrate(["in"], folder, jobs=1, to="relay").counts == {moment: 1}
    monkeypatch.setattr(job, "run_child", run)
    assert Path(folder, "m.relay").exists()
    report = migrate(["in/m.onnx"], folder, jobs=1, to="relay")
    assert report.ok and report.resumed == 0
    assert Path(folder, "m.notes").read_text() == "mine"


@pytest.mark.parametrize("ways", [("path", "url"), ("url", "path"), ("url", "url")])
@pytest.mark.parametrize("protocol", ["file", "local"])
def test_urls_of_files_are_paths(ways, protocol):
    """A result there would take the place of its source."""
    write_onnx()
    before = Path("in/m.onnx").read_bytes()
    paths = (Path("in/m.onnx").resolve(), Path("in").resolve())
    source, goal = (
        f"{protocol}://{p}" if way == "url" else str(p) for p, way in zip(paths, ways, strict=True)
    )
    with pytest.raises(UsageError, match=r"m\.onnx is read by this command"):
        migrate([source], goal, jobs=1)
    assert Path("in/m.onnx").read_bytes() == before


def test_no_url_that_is_read_is_written():
    write_onnx()
    system = fsspec.filesystem("memory")
    system.store.clear()
    for path in Path("in").iterdir():
        system.pipe_file(f"/bucket/{path.name}", path.read_bytes())
    for goal in ("memory://bucket", "memory:///bucket/"):
        with pytest.raises(UsageError):
            migrate(["memory://bucket/m.onnx"], goal, jobs=1)
    assert system.cat_file("/bucket/m.onnx") == Path("in/m.onnx").read_bytes()
    system.store.clear()
