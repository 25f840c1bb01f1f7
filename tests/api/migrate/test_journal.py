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

import serde
from serde.api.migrate import child, migrate
from serde.api.migrate.job import Row
from serde.api.migrate.journal import JOURNAL, parse_begun, parse_row
from serde.errors import OUT_OF_MEMORY, MalformedFile, Problem, Unconvertible, UsageError
from testing.onnx_live import DIGITS
from tests.api.migrate.zoo import write_digits, write_onnx

X = np.ones((1, 300), "f")
pytestmark = pytest.mark.usefixtures("in_this_process", "in_empty_folder")


def write_mxnet():
    write_digits(Path("in"))


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
    "mxnet": (write_mxnet, {}, ["in/digits-symbol.json", "in/digits-0010.params"]),
    "archive": (write_archive, {}, ["in/digits.tar.gz"]),
    "link": (write_link, {}, ["elsewhere/m.onnx", "elsewhere/weights.bin"]),
    "relay": (write_relay, {}, ["in/m.relay", "in/m.params"]),
    "arrays": (write_with_arrays, {"data": "data.npz", "expected": "expected.npz"},
               ["in/weights.bin", "data.npz", "expected.npz"]),
    "params": (write_mxnet, {"params": "in/digits-0010.params"}, ["in/digits-0010.params"]),
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
    write_mxnet()
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


def test_parameters_to_choose_from_are_seen_to_go():
    write_mxnet()
    os.rename("in/digits-0010.params", "in/a.params")
    shutil.copy("in/a.params", "in/b.params")
    assert migrate(["in"], "out", jobs=1).counts == {"refused": 1}
    assert migrate(["in"], "out", jobs=1).resumed == 1
    Path("in/b.params").unlink()
    assert migrate(["in"], "out", jobs=1).counts == {"converted": 1}


def test_other_plug_ins_may_give_other_results(monkeypatch):
    import serde.api.migrate

    write_onnx()
    assert migrate(["in"], "out", jobs=1).ok
    assert migrate(["in"], "out", jobs=1).resumed == 1
    packages = [*serde.api.migrate.list_packages(), "more-operators 2.0"]
    monkeypatch.setattr(serde.api.migrate, "list_packages", lambda: packages)
    assert migrate(["in"], "out", jobs=1).resumed == 0


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


MODELS = {  # of each format, whose graph may be named after the file
    "mxnet": ("caf\udce9", ["-symbol.json", "-0010.params"]),
    "relay": ("m\udce9", [".relay", ".params"]),
    "tflite": ("t\udcff", [".tflite"]),
}


@pytest.mark.parametrize("to", ["onnx", "mxnet", "relay", "tflite", "torch"])
def test_a_graph_is_named_after_a_file_whose_name_is_no_utf8(to):
    write_onnx("m.onnx")
    serde.convert("m.onnx", "m.relay", static={"N": 2})
    serde.convert("m.onnx", "t.tflite", static={"N": 2})
    for ending in MODELS["mxnet"][1]:
        shutil.copy(DIGITS / f"digits{ending}", f"caf{ending}")
    for name, endings in MODELS.values():
        plain = name.encode("ascii", "ignore").decode()
        for ending in endings:
            os.rename(plain + ending, f"in/{name}{ending}")
    inputs = {"caf*": {"inputs": {"data": (2, 1, 8, 8)}}}
    report = migrate(["in"], "out", jobs=1, reports=True, to=to, config=inputs)
    assert report.counts == {"converted": 3}, [r.reason for r in report.rows]


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
