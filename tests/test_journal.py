"""What is not done again: nothing that was read, looked for or written has changed."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from dataclasses import asdict, fields
from pathlib import Path

import fsspec
import numpy as np
import onnx
import pytest

from serde.api.migrate import child, job, migrate
from serde.api.migrate.job import Row
from serde.api.migrate.journal import JOURNAL, TABLES, parse_begun, parse_row
from serde.errors import (
    OUT_OF_MEMORY,
    MalformedFile,
    Problem,
    TargetRefused,
    Unconvertible,
    UsageError,
)
from testing.onnx_live import model_of

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
X = np.ones((1, 300), "f")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch, tmp_path):
    """Convert in the process of the test, in an empty folder."""

    def run(command, seconds, *, text, env, apart):
        order = json.loads(text)
        Path(order["answer"]).write_text(json.dumps(child.carry_out(order)))
        return 0, ""

    monkeypatch.setattr(job, "run_child", run)
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()


def write_onnx(path="in/m.onnx", value=1.0, location="weights.bin"):
    body = "g (float[N,300] x) => (float[N,2] y) { y = MatMul(x, w) }"
    model = model_of(body, 13, 7)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full((300, 2), value, "f"), "w"))
    onnx.save(model, path, save_as_external_data=True, location=location)


def write_digits(folder="in"):
    for name in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(DIGITS / name, folder)


def write_archive():
    with tarfile.open("in/digits.tar.gz", "w:gz") as archive:
        for name in ("digits-symbol.json", "digits-0010.params"):
            archive.add(DIGITS / name, name)


def write_link():
    Path("elsewhere").mkdir()
    write_onnx("elsewhere/m.onnx")
    for name in ("m.onnx", "weights.bin"):
        os.symlink(Path("elsewhere", name).resolve(), Path("in", name))


def write_relay():
    import serde

    write_onnx("m.onnx")
    serde.convert("m.onnx", "in/m.relay")


def write_with_arrays():
    write_onnx()
    np.savez("data.npz", x=X)
    np.savez("expected.npz", y=X @ np.full((300, 2), 1.0, "f"))


def rewrite_in_place(path):
    """Other bytes of the same length, with the time of before."""
    status = os.stat(path)
    data = bytearray(Path(path).read_bytes())
    data[-1] ^= 1
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def exchange(path):
    """Another file of the same bytes and the same time, renamed to this."""
    shutil.copy2(path, "copy")
    os.replace("copy", path)


def lengthen(path):
    with open(path, "ab") as file:
        file.write(b" ")


SOURCES = {
    "onnx": (write_onnx, {}, ["in/m.onnx", "in/weights.bin"]),
    "mxnet": (write_digits, {}, ["in/digits-symbol.json", "in/digits-0010.params"]),
    "archive": (write_archive, {}, ["in/digits.tar.gz"]),
    "link": (write_link, {}, ["elsewhere/m.onnx", "elsewhere/weights.bin"]),
    "relay": (write_relay, {}, ["in/m.relay", "in/m.params"]),
    "arrays": (write_with_arrays, {"data": "data.npz", "expected": "expected.npz"},
               ["in/weights.bin", "data.npz", "expected.npz"]),
    "params": (write_digits, {"params": "in/digits-0010.params"}, ["in/digits-0010.params"]),
}  # fmt: skip


@pytest.mark.parametrize("change", [rewrite_in_place, exchange, lengthen, os.unlink])
@pytest.mark.parametrize(
    ("kind", "file"), [(k, f) for k, (_, _, files) in SOURCES.items() for f in files]
)
def test_a_model_is_done_again_where_a_file_of_it_changed(kind, file, change):
    write, options, _ = SOURCES[kind]
    write()
    arguments = {"jobs": 1, **options}
    assert migrate(["in"], "out", **arguments).ok
    again = migrate(["in"], "out", **arguments)
    assert again.ok and again.resumed == 1
    change(file)
    try:
        assert migrate(["in"], "out", **arguments).resumed == 0
    except UsageError as error:
        assert change is os.unlink and "no models" in str(error)


@pytest.mark.parametrize("reports", [False, True])
def test_files_that_come_are_seen(reports):
    arguments = {"jobs": 1, "reports": reports}
    write_digits()
    shutil.move("in/digits-0010.params", "aside")
    assert not migrate(["in"], "out", **arguments).ok
    shutil.copy("aside", "in/digits-0010.params")
    assert migrate(["in"], "out", **arguments).ok
    shutil.copy("aside", "in/digits-0011.params")  # a later epoch
    assert migrate(["in"], "out", **arguments).resumed == 0
    assert migrate(["in"], "out", **arguments).resumed == 1
    write_onnx("in/other.onnx")  # which has nothing to do with it
    assert migrate(["in"], "out", **arguments).resumed == 1


def test_a_failure_for_a_missing_file_is_tried_again():
    write_onnx()
    shutil.move("in/weights.bin", "aside")
    assert migrate(["in"], "out", jobs=1).counts == {"unreadable": 1}
    assert migrate(["in"], "out", jobs=1).resumed == 0
    shutil.move("aside", "in/weights.bin")
    assert migrate(["in"], "out", jobs=1).counts == {"converted": 1}
    Path("in/m.onnx").write_bytes(b"\x08\x07no model")
    assert migrate(["in"], "out", jobs=1).counts == {"unreadable": 1}
    assert migrate(["in"], "out", jobs=1).resumed == 1  # nothing is missing


@pytest.mark.parametrize("to", ["onnx", "mxnet", "relay"])
@pytest.mark.parametrize("change", [rewrite_in_place, lengthen, os.unlink, exchange])
def test_a_result_that_changed_is_written_again(to, change):
    write_onnx()
    options = {"external_data": "always"} if to == "onnx" else {}
    arguments = {"jobs": 1, "to": to, "reports": True, **options}
    assert migrate(["in"], "out", **arguments).ok
    names = {p.name for p in Path("out").iterdir() if not p.name.startswith("migration")}
    assert len(names) == 3
    before = {n: Path("out", n).read_bytes() for n in names if not n.endswith(".html")}
    for name in names:
        change(Path("out", name))
        assert migrate(["in"], "out", **arguments).resumed == 0
        assert {n: Path("out", n).read_bytes() for n in before} == before
        assert migrate(["in"], "out", **arguments).resumed == 1


@pytest.mark.parametrize("verify", [False, True])
def test_files_at_urls(verify):
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    write_onnx(location="m.bin")
    arguments = {"jobs": 1, "verify": verify, "external_data": "always"}

    def count_resumed():
        report = migrate(["memory://bucket"], "memory://results", **arguments)
        assert report.ok
        return report.resumed

    for name in os.listdir("in"):
        system.pipe_file(f"/bucket/{name}", Path("in", name).read_bytes())
    assert [count_resumed(), count_resumed()] == [0, 1]
    for path in ("/bucket/m.onnx", "/bucket/m.bin", "/results/m.onnx", "/results/m.onnx.data"):
        system.pipe_file(path, system.cat_file(path))
        assert [count_resumed(), count_resumed()] == [0, 1]
    system.rm_file("/results/m.onnx.data")
    assert [count_resumed(), count_resumed()] == [0, 1]
    system.store.clear()


def test_a_result_of_other_options_is_written_again():
    write_onnx()
    for opset in (11, 13, 11):
        assert migrate(["in"], "out", jobs=1, opset=opset).resumed == 0
        assert onnx.load("out/m.onnx").opset_import[0].version == opset


def test_results_beside_their_sources():
    write_digits()
    assert migrate(["in"], "in", jobs=1, external_data="always").ok
    again = migrate(["in/digits-symbol.json"], "in", jobs=1, external_data="always")
    assert again.resumed == 1


@pytest.mark.parametrize(("to", "weights"), [("mxnet", "t-0000.params"), ("relay", "t.params"),
                                             ("onnx", "t.onnx.data")])  # fmt: skip
def test_no_weights_of_another_model_are_replaced(to, weights):
    """Those that ``a`` reads have the name of those that ``t`` would be written with."""
    write_onnx("in/a.onnx", 3.0, weights)
    write_digits()
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


def test_parameters_to_choose_from_are_seen_to_go():
    write_digits()
    os.rename("in/digits-0010.params", "in/a.params")
    shutil.copy("in/a.params", "in/b.params")
    assert migrate(["in"], "out", jobs=1).counts == {"refused": 1}
    assert migrate(["in"], "out", jobs=1).resumed == 1
    Path("in/b.params").unlink()
    assert migrate(["in"], "out", jobs=1).counts == {"converted": 1}


@pytest.mark.parametrize("to", ["onnx", "mxnet"])
def test_what_was_in_the_way_of_a_result_is_looked_for_again(to):
    write_onnx()
    obstacle = Path({"onnx": "out/m.onnx", "mxnet": "out/m-0003.params"}[to])
    obstacle.parent.mkdir()
    obstacle.mkdir() if to == "onnx" else shutil.copy(DIGITS / "digits-0010.params", obstacle)
    assert migrate(["in"], "out", jobs=1, to=to).counts == {"failed": 1}
    obstacle.rmdir() if to == "onnx" else obstacle.unlink()
    assert migrate(["in"], "out", jobs=1, to=to).counts == {"converted": 1}


def test_other_plug_ins_may_give_other_results(monkeypatch):
    import serde.api.migrate

    write_onnx()
    assert migrate(["in"], "out", jobs=1).ok
    assert migrate(["in"], "out", jobs=1).resumed == 1
    packages = [*serde.api.migrate.list_packages(), "more-operators 2.0"]
    monkeypatch.setattr(serde.api.migrate, "list_packages", lambda: packages)
    assert migrate(["in"], "out", jobs=1).resumed == 0


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
        write_digits()
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


@pytest.mark.parametrize("way", ["folder", "glob", "named"])
@pytest.mark.parametrize("goal", ["nowhere.onnx", "z.onnx", "../in/sub/../z.onnx"])
def test_a_link_that_leads_nowhere_is_a_row(goal, way):
    write_onnx()
    Path("in/sub").mkdir()
    os.symlink(goal, "in/z.onnx")
    sources = {"folder": ["in"], "glob": ["in/*.onnx"], "named": ["in/m.onnx", "in/z.onnx"]}[way]
    report = migrate(sources, "out", jobs=1)
    assert {Path(r.source).name: r.ok for r in report.rows} == {"m.onnx": True, "z.onnx": False}
    os.unlink("in/z.onnx")
    write_onnx("in/z.onnx", location="z.bin")
    report = migrate(sources, "out", jobs=1)
    assert report.ok and report.resumed == 1


def test_names_that_are_no_utf8_are_rows():
    write_onnx()
    for name in (b"in/caf\xe9.onnx", b"in/\xff\xfe.onnx"):
        shutil.copy(b"in/m.onnx", name)
    Path(os.fsdecode(b"in/broken\xe9.onnx")).write_bytes(b"\x08\x07no model")
    report = migrate(["in"], "out", jobs=1, reports=True)
    assert report.counts == {"converted": 3, "unreadable": 1}
    assert b"caf\xe9.onnx" in os.listdir(b"out")
    for name in ("migration.html", "migration.csv", "migration.json"):
        assert r"caf\udce9" in Path("out", name).read_text()
    assert migrate(["in"], "out", jobs=1, reports=True).resumed == 4


GOOD = Row("a", "b", "refused", missing=[{"op": "Foo", "count": 1, "reason": "none"}], key="k")
WRONG = {
    str: [None, 1, ["a"], {}], int: ["1", None, 1.5, True, []], float: ["x", [], True],
    list: [None, "x", {}, [1], [[]], [{}], [{"op": 1, "count": 1, "reason": ""}],
           [{"op": "Foo", "count": "1", "reason": ""}]],
    dict: [None, [], "x", {"a": 1}, {"a": None}],
}  # fmt: skip
KINDS = {f.name: type(getattr(GOOD, f.name)) for f in fields(Row)} | {"max_rel": float}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, kind in KINDS.items() for v in WRONG[kind]]
)
def test_a_row_of_other_types_is_no_row(name, value):
    line = asdict(GOOD)
    assert parse_row(json.dumps(line)) == GOOD
    assert parse_row(json.dumps(line | {name: value})) is None


@pytest.mark.parametrize(
    "line", ["", "[]", "1", "null", "{", '"x"', "{}", '{"source": "a"}', "[" * 10**5, "1" * 10**5,
             '{"source": "a", "target": "b", "status": "done"}', '{"more": 1}'],
)  # fmt: skip
def test_a_line_that_is_no_row(line):
    assert parse_row(line) is None


@pytest.mark.parametrize(
    "line", ["", "{", '{"begun": 1}', '{"begun": {"a": 1}}', '{"begun": {"a": [1]}}', "[" * 10**5]
)
def test_a_line_that_begins_nothing(line):
    assert parse_begun(line) == {}


@pytest.mark.parametrize("field", ["seconds", "missing", "read", "status", "target"])
def test_a_journal_that_was_changed_costs_one_conversion(field):
    write_onnx()
    assert migrate(["in"], "out", jobs=1).ok
    journal = Path("out", JOURNAL)
    begun, row = journal.read_text().splitlines()
    row = json.dumps(json.loads(row) | {field: "x"})
    journal.write_text(f"{begun}\n{row}\n")
    report = migrate(["in"], "out", jobs=1)
    assert report.ok and report.resumed == 0
    assert migrate(["in"], "out", jobs=1).resumed == 1


def test_a_row_behind_a_line_that_was_cut_off_is_kept():
    write_onnx()
    Path("out").mkdir()
    Path("out", JOURNAL).write_text('{"source": "cut o')
    assert migrate(["in"], "out", jobs=1).ok
    assert migrate(["in"], "out", jobs=1).resumed == 1


SHORTAGES = {
    "memory": (MemoryError(), "out of memory"),
    "memory of a reader": (MalformedFile("m", "cannot be read"), "out of memory"),
    "memory of a rule": (Unconvertible("s", [Problem("A", {}, OUT_OF_MEMORY, ("a",))]),
                         "out of memory"),
    "a disk": (MalformedFile("m", "cannot be read"), "failed"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORTAGES)
def test_what_the_machine_lacked_is_tried_again(name, monkeypatch):
    error, status = SHORTAGES[name]
    error.__cause__ = {"memory of a reader": MemoryError(), "a disk": OSError(5, "EIO")}.get(name)
    write_onnx()

    def fail(*args, **options):
        raise error

    convert = child.convert
    monkeypatch.setattr(child, "convert", fail)
    assert migrate(["in"], "out", jobs=1).counts == {status: 1}
    monkeypatch.setattr(child, "convert", convert)
    assert migrate(["in"], "out", jobs=1).counts == {"converted": 1}
