"""Files that PyTorch saved, read without it; and files that are damaged or lie."""

from __future__ import annotations

import io
import json
import re
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

import serde
from serde.errors import MalformedFile, SerdeError
from serde.formats.pt2.rules import WITH_GRAPHS
from testing.pt2.run import check, outcome

FOLDER = Path(__file__).resolve().parents[1] / "data/pt2"
RIGHT = ["network", "core", "training", "moved", "recurrent", "projected", "writes", "types", "strided",
         "norms", "joined"]  # fmt: skip
WEIGHTS = "data/weights/model_weights_config.json"


def change_member(tmp_path, name, member, change, compression=zipfile.ZIP_STORED):
    """A copy of a sample, one member of which is changed."""
    path = tmp_path / "model.pt2"
    with zipfile.ZipFile(FOLDER / f"{name}.pt2") as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.partition("/")[2].endswith(member):
                data = change(data)
            if data is not None:
                new.writestr(info.filename, data, compression)
    return path


def edit(change):
    """A change of a member's JSON."""

    def apply(data):
        tree = json.loads(data)
        change(tree)
        return json.dumps(tree).encode()

    return apply


@pytest.mark.parametrize("name", RIGHT)
def test_a_recorded_program_computes_what_pytorch_did(name, tmp_path):
    for suffix in (".pt2", ".npz"):
        (tmp_path / f"{name}{suffix}").write_bytes((FOLDER / f"{name}{suffix}").read_bytes())
    assert outcome(tmp_path, name) == "right"


def test_changed_buffers_are_further_outputs(tmp_path):
    report = serde.convert(FOLDER / "training.pt2", tmp_path / "model.onnx")
    assert not check(FOLDER / "training.npz", tmp_path / "model.onnx", 1e-5)
    assert any("'a.running_mean'" in note for note in report.notes)


def test_names_and_sizes_are_the_users():
    graph = serde.load(FOLDER / "network.pt2")
    assert [v.name for v in graph.outputs] == ["scores"]
    assert isinstance(graph.inputs[0].shape[0], str)
    assert graph.inputs[0].shape[1:] == (3, 8, 8)
    assert graph.outputs[0].shape == (graph.inputs[0].shape[0], 36)


def test_a_refusal_names_the_line():
    with pytest.raises(SerdeError, match=r"rand .*with random='input' .*net\.py:1"):
        serde.load(FOLDER / "refused.pt2")


def test_deflated_members_are_read(tmp_path):
    path = change_member(tmp_path, "recurrent", "none", None, zipfile.ZIP_DEFLATED)
    serde.convert(path, tmp_path / "model.onnx")
    assert not check(FOLDER / "recurrent.npz", tmp_path / "model.onnx", 1e-5)


def first(tree):
    return next(iter(tree["config"].values()))


LIES = {
    "is pickled": (WEIGHTS, edit(lambda t: first(t).update(use_pickle=True))),
    "takes more than the": (
        WEIGHTS, edit(lambda t: first(t)["tensor_meta"]["sizes"].__setitem__(0, {"as_int": 9999})),
    ),
    "claims the sizes": (
        WEIGHTS, edit(lambda t: first(t)["tensor_meta"].update(sizes=[{"as_int": 2}] * 99)),
    ),
    "not described": (WEIGHTS, edit(lambda t: first(t)["tensor_meta"].update(sizes=[{"as_int": -1}]))),
    "element type": (WEIGHTS, edit(lambda t: first(t)["tensor_meta"].update(dtype=99))),
    "no table": (WEIGHTS, lambda data: b"[]"),
    "is no JSON": (WEIGHTS, lambda data: b"[" * 100_000),
    "archive version": ("archive_version", lambda data: b"7"),
    "not of an exported program": ("archive_format", lambda data: b"pt9"),
    "not little-endian": ("byteorder", lambda data: b"big"),
    "schema version": (
        "models/model.json", edit(lambda t: t["schema_version"].update(major=9)),
    ),
    "holds 0 models": ("models/model.json", lambda data: None),
    "is missing": (WEIGHTS, lambda data: None),
    "no exported program": (
        "models/model.json", edit(lambda t: t["graph_module"]["graph"].pop("nodes")),
    ),
    "has no array": ("model_weights_config.json", edit(lambda t: t["config"].popitem())),
}  # fmt: skip


@pytest.mark.parametrize("says", LIES)
def test_a_file_that_lies_is_refused(says, tmp_path):
    member, change = LIES[says]
    path = change_member(tmp_path, "strided", member, change)
    with pytest.raises(MalformedFile, match=re.escape(says)):
        serde.load(path, format="pt2")


@pytest.mark.parametrize("op", WITH_GRAPHS)
@pytest.mark.parametrize("name", ["norms", "refused", "core"])
def test_arguments_that_are_no_graphs_are_refused(op, name, tmp_path):
    def change(tree):
        for node in tree["graph_module"]["graph"]["nodes"]:
            node["target"] = f"torch.ops.higher_order.{op}"

    path = change_member(tmp_path, name, "models/model.json", edit(change))
    with pytest.raises(SerdeError) as error:
        serde.load(path)
    assert "fails with" not in str(error.value)
    assert re.search("no graph|is missing|no exported program", str(error.value))


def test_programs_of_old_releases_are_refused_with_advice(tmp_path):
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("serialized_exported_program.json", "{}")
    with pytest.raises(MalformedFile, match=r"save it again with PyTorch 2\.8"):
        serde.load(path)


def test_a_truncated_file_is_refused(tmp_path):
    data = (FOLDER / "network.pt2").read_bytes()
    for size in (0, 4, 100, len(data) // 2, len(data) - 3):
        path = tmp_path / "model.pt2"
        path.write_bytes(data[:size])
        with pytest.raises(MalformedFile):
            serde.load(path, format="pt2")
    assert zipfile.is_zipfile(io.BytesIO(data))


def list_places(tree, place=()):
    """The places of all parts of a tree of JSON."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, part in items if isinstance(tree, (dict, list)) else ():
        yield (*place, key)
        yield from list_places(part, (*place, key))


@pytest.mark.parametrize("part", [{}, [], None, "", 0], ids=repr)
@pytest.mark.parametrize("name", ["strided", "writes"])
def test_any_part_of_a_signature_may_be_empty(name, part, tmp_path):
    with zipfile.ZipFile(FOLDER / f"{name}.pt2") as archive:
        (member,) = [n for n in archive.namelist() if "/models/" in n and n.endswith(".json")]
        signature = json.loads(archive.read(member))["graph_module"]["signature"]
    for *place, key in list_places(signature):

        def empty(tree, place=place, key=key):
            at = tree["graph_module"]["signature"]
            for step in place:
                at = at[step]
            at[key] = part

        path = change_member(tmp_path, name, "models/model.json", edit(empty))
        with suppress(SerdeError):
            serde.load(path)
