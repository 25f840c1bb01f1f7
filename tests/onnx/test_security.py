"""The rules for readers of untrusted files (USER-NEEDS, section 7.3), one test or more for each."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.cli import sandbox
from serde.errors import MalformedFile, SerdeError
from serde.formats.mxnet.io.params import read_params
from serde.formats.onnx import protobuf_wire
from serde.formats.onnx.reader import DEPTH, decode, read_model
from serde.formats.onnx.writer import PAGE
from serde.io.atomic_write import Replacing
from serde.ir import budget
from serde.verification.weights_hash import weights_hash
from testing.cpu_limit import limit_cpu
from testing.onnx_live import DIGITS, model_of

SECRET = b"secret" * 10


def external(location, offset=None, length=None, dims=(4,), **more):
    """A tensor of floats whose data are said to lie at ``location``."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length, **more}
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return tensor


def model_with(tensor, place="initializer"):
    """A model that holds ``tensor`` in one of the places a tensor can be in."""
    model = model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", 17, 8)
    if place == "initializer":
        model.graph.initializer.append(tensor)
        model.graph.node.append(helper.make_node("Add", ["x", "w"], ["z"]))
    elif place == "attribute":
        model.graph.node.append(helper.make_node("Constant", [], ["z"], value=tensor))
    elif place == "attribute of tensors":
        node = helper.make_node("Foo", [], ["z"], domain="custom")
        node.attribute.add(name="all", type=onnx.AttributeProto.TENSORS).tensors.append(tensor)
        model.graph.node.append(node)
    elif place == "subgraph":
        read, make_info = helper.make_node("Identity", ["w"], ["i"]), helper.make_tensor_value_info
        inner = helper.make_graph([read], "b", [], [make_info("i", 1, [4])], [tensor])
        node = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
        model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
        model.graph.node.append(node)
    elif place == "function":
        body = [helper.make_node("Constant", [], ["o"], value=tensor)]
        function = helper.make_function(
            "local", "F", [], ["o"], body, [helper.make_opsetid("", 17)]
        )
        model.functions.append(function)
        model.graph.node.append(helper.make_node("F", [], ["z"], domain="local"))
    else:
        at = numpy_helper.from_array(np.arange(4), "at")
        sparse = onnx.SparseTensorProto(values=tensor, indices=at, dims=[4])
        if place == "sparse indices":
            tensor.data_type = TensorProto.INT64
            values = numpy_helper.from_array(np.ones(4, np.float32), "w")
            sparse = onnx.SparseTensorProto(values=values, indices=tensor, dims=[4])
        model.graph.sparse_initializer.append(sparse)
    return model


PLACES = ["initializer", "attribute", "attribute of tensors", "subgraph", "function",
          "sparse values", "sparse indices"]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A model's folder, with weights in it and a secret outside."""
    inside = tmp_path / "models" / "mine"
    inside.mkdir(parents=True)
    (inside / "weights").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "models" / "secret").write_bytes(SECRET)
    return inside


def load(model, folder, **options):
    path = folder / "m.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return read_model(path, **options)


def refuses(why, model, folder, **options):
    """The model is refused, without long work, with its path in the message."""
    with limit_cpu(5), pytest.raises(MalformedFile, match=why) as caught:
        load(model, folder, **options)
    assert str(folder) in str(caught.value)


class TestRule1LengthsBeforeAllocation:
    """What a header claims is compared with the bytes there are before anything is made."""

    @pytest.mark.parametrize("dims", [(2**40,), (2**31, 2**31), (2**62, 2**62), (1,) * 65])
    @pytest.mark.parametrize("field", ["raw_data", "float_data", "int32_data", "string_data"])
    def test_claims_of_onnx_tensors(self, folder, dims, field):
        kind = {"int32_data": 10, "string_data": 8}.get(field, 1)
        held = {"raw_data": b"1234", "string_data": [b"a"]}.get(field, [1])
        refuses(
            "tensor 'w'",
            model_with(TensorProto(name="w", data_type=kind, dims=dims, **{field: held})),
            folder,
        )

    def test_claims_of_a_sparse_tensor(self, folder):
        model = model_with(numpy_helper.from_array(np.ones(4, np.float32), "w"), "sparse values")
        model.graph.sparse_initializer[0].dims[:] = [2**40]
        refuses("sparse tensor 'w'", model, folder)

    @pytest.mark.parametrize(
        "head", [b"\x3a\xff\xff\xff\xff\x0f", b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"]
    )
    def test_claims_of_a_protobuf_field(self, folder, head):
        refuses("byte 2: not an ONNX model", b"\x08\x08" + head, folder)

    def test_names_are_bounded(self, folder):
        model = model_of("g (float[1] x) => (y) { y = Relu(x) }", 17)
        model.graph.node[0].op_type = "R" * 70_000
        refuses("has 70000 letters", model, folder)


class TestRule2LengthsAreThoseOfTheShape:
    @pytest.mark.parametrize("nbytes", [0, 12, 20, 8192])
    def test_raw_data(self, folder, nbytes):
        tensor = TensorProto(name="w", data_type=1, dims=[4], raw_data=bytes(nbytes))
        refuses(f"holds {nbytes} bytes", model_with(tensor), folder)

    @pytest.mark.parametrize("length", [0, 4, 32])
    def test_external_length(self, folder, length):
        refuses(
            f"holds {length} bytes, not 16", model_with(external("weights", length=length)), folder
        )


BAD_PATHS = [
    "/etc/passwd", "../secret", "../../secret", "a/../../secret", "./../secret", "..", ".", "",
    "C:\\secret", "C:secret", "\\\\server\\share", "..\\secret", "weights\0", "\0", "file:weights",
    "link", "linked/secret", "folder", "pipe", "missing", "/dev/zero", "/dev/stdin",
]  # fmt: skip


class TestRule3PathsStayInTheModelsFolder:
    @pytest.fixture
    def traps(self, folder):
        (folder / "link").symlink_to("../../secret")
        (folder / "linked").symlink_to("../..")
        (folder / "folder").mkdir()
        os.mkfifo(folder / "pipe")
        return folder

    @pytest.mark.parametrize("location", BAD_PATHS)
    def test_others_are_refused(self, traps, location):
        refuses("external data", model_with(external(location)), traps)

    @pytest.mark.parametrize("location", ["weights", "./weights", "sub/weights", "alias"])
    def test_plain_ones_are_read(self, folder, location):
        (folder / "sub").mkdir()
        (folder / "sub" / "weights").write_bytes(bytes(16))
        (folder / "alias").symlink_to("weights")
        graph = load(model_with(external(location, dims=(2,), length=8)), folder)
        assert next(iter(graph.constants())).array().shape == (2,)

    def test_a_cache_of_links_is_read(self, tmp_path):
        """Hugging Face: the model is a link, and so are its weights, to one store of blobs."""
        blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1"
        blobs.mkdir()
        snapshot.mkdir(parents=True)
        (blobs / "aaa").write_bytes(model_with(external("weights")).SerializeToString())
        (blobs / "bbb").write_bytes(np.arange(4, dtype=np.float32).tobytes())
        (snapshot / "m.onnx").symlink_to("../../blobs/aaa")
        (snapshot / "weights").symlink_to("../../blobs/bbb")
        (w,) = read_model(snapshot / "m.onnx").constants()
        assert w.array().tolist() == [0, 1, 2, 3]

    def test_a_live_model_lies_in_no_folder(self):
        with pytest.raises(MalformedFile, match="was not read from a file"):
            serde.load(model_with(external("weights")))

    def test_a_file_that_becomes_a_pipe_is_not_waited_for(self, folder):
        graph = load(model_with(external("weights", length=16)), folder)
        (folder / "weights").unlink()
        os.mkfifo(folder / "weights")
        with pytest.raises(SerdeError, match="not a regular file"):
            next(iter(graph.constants())).array()

    USES = {
        "an array": lambda graph, path: next(iter(graph.constants())).array(),
        "a copy": lambda graph, path: serde.save(graph, path / "t.onnx", external_data="always"),
        "a hash": lambda graph, path: weights_hash(graph),
    }
    SWAPS = {
        "a link": lambda path, secret: path.symlink_to(secret),
        "a hard link": lambda path, secret: os.link(secret, path),
        "another file": lambda path, secret: path.write_bytes(bytes(4096)),
    }

    @pytest.mark.parametrize("use", USES.values(), ids=USES)
    @pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
    @pytest.mark.parametrize("inside", [False, True], ids=["beside the model", "in the model"])
    def test_what_takes_the_place_of_a_checked_file_is_not_read(self, folder, use, swap, inside):
        """Nor is the model's own file, whose weights would lie elsewhere in another one."""
        (folder / "weights").write_bytes(bytes(8192))
        (folder / "secret").write_bytes(SECRET * 100)
        w = numpy_helper.from_array(np.zeros(2048, np.float32), "w")
        model = model_with(w if inside else external("weights", dims=(2048,)))
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2048
        model.graph.output.append(helper.make_tensor_value_info("z", 1, [2048]))
        load(model, folder)
        graph = serde.load(folder / "m.onnx")
        place = folder / ("m.onnx" if inside else "weights")
        place.rename(folder / "gone")
        swap(place, folder / "secret")
        with pytest.raises(MalformedFile, match="another file took its place"):
            use(graph, folder)
        assert not (folder / "t.onnx").exists() and not (folder / "t.onnx.data").exists()

    @pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="needs openat")
    @pytest.mark.parametrize("name", ["sub", "sub/weights"])
    def test_a_link_put_in_the_way_while_a_path_is_checked(self, folder, monkeypatch, name):
        (folder / "sub").mkdir()
        (folder / "sub" / "weights").write_bytes(bytes(16))
        (folder.parent / "weights").write_bytes(SECRET)
        model = model_with(external("sub/weights"))
        real = os.path.realpath

        def resolve_then_swap(path, **options):
            full_path = real(path, **options)
            if str(path).endswith("sub/weights") and not (folder / name).is_symlink():
                (folder / name).rename(folder / "gone")
                (folder / name).symlink_to(folder.parent if name == "sub" else "../../weights")
            return full_path

        monkeypatch.setattr(os.path, "realpath", resolve_then_swap)
        refuses("external data in 'sub/weights'", model, folder)
        assert (folder / name).is_symlink()


class TestRule4PathsAreCheckedInEveryTensor:
    @pytest.mark.parametrize("place", PLACES)
    def test_paths_outside(self, folder, place):
        refuses("leaves the model's folder", model_with(external("../secret"), place), folder)

    @pytest.mark.parametrize("place", PLACES)
    def test_bytes_beyond_the_end(self, folder, place):
        refuses("weights', which has 32", model_with(external("weights", offset=30), place), folder)

    def test_what_training_needs_is_not_read_at_all(self, folder):
        model = model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", 17, 8)
        model.training_info.add().initialization.initializer.append(external("../secret"))
        graph = load(model, folder)
        assert list(graph.constants()) == []
        serde.convert(folder / "m.onnx", folder / "t.onnx")
        assert not onnx.load(folder / "t.onnx").training_info


class TestRule5HardLinks:
    def test_they_are_read_unless_paths_are_strict(self, folder):
        os.link(folder / "weights", folder / "hard")
        model = model_with(external("hard", length=16))
        assert next(iter(load(model, folder).constants())).array()[3] == 3
        refuses("a hard link, which strict paths refuse", model, folder, strict_paths=True)

    def test_the_api_and_the_command_line_can_ask_for_it(self, folder):
        os.link(folder / "weights", folder / "hard")
        load(model_with(external("hard", length=16)), folder)
        with pytest.raises(MalformedFile, match="hard link"):
            serde.load(folder / "m.onnx", strict_paths=True)


class TestRule6KeysOfExternalData:
    @pytest.mark.parametrize("key", ["offset", "length"])
    @pytest.mark.parametrize("value", ["-1", "1e3", "0x10", " 4", "٤", "9" * 30, "1_0", "", "+4"])
    def test_numbers_are_plain(self, folder, key, value):
        refuses(
            "have the offset or length", model_with(external("weights", **{key: value})), folder
        )

    @pytest.mark.parametrize(("offset", "length"), [(32, 16), (17, 16), (10**18, 16), (20, None)])
    def test_they_stay_within_the_file(self, folder, offset, length):
        refuses("which has 32", model_with(external("weights", offset, length)), folder)

    def test_a_location_is_needed(self, folder):
        refuses("name no file", model_with(external(None, 0, 16)), folder)

    def test_unknown_keys_do_nothing(self, folder):
        tensor = external("weights", length=16, checksum="x", __class__="y", name="../secret")
        (w,) = load(model_with(tensor), folder).constants()
        assert (w.name, w.array().tolist()) == ("w", [0, 1, 2, 3])

    def test_and_are_told(self, folder):
        load(model_with(external("weights", length=16, checksum="x", other="y")), folder)
        report = serde.convert(folder / "m.onnx", folder / "t.onnx")
        assert report.notes == ["keys of external data that are not read: 'checksum', 'other'"]


class TestRule7TheWriterChoosesItsPaths:
    def test_the_sidecar_is_called_after_the_output(self, folder, tmp_path):
        data = np.zeros(4096, np.float32)
        (folder / "weights").write_bytes(data.tobytes())
        load(model_with(external("weights", dims=(4096,))), folder)
        (tmp_path / "out").mkdir()
        model = onnx.load(folder / "m.onnx", load_external_data=False)
        model.graph.output.append(helper.make_tensor_value_info("z", 1, None))
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4096
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        before = (folder / "weights").read_bytes()
        serde.convert(folder / "m.onnx", tmp_path / "out" / "t.onnx", external_data="always")
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["t.onnx", "t.onnx.data"]
        assert (folder / "weights").read_bytes() == before

    def test_a_link_at_the_target_is_replaced_not_followed(self, tmp_path):
        victim = tmp_path / "victim"
        victim.write_bytes(b"\x08\x08mine")
        (tmp_path / "t.onnx").symlink_to(victim)
        (tmp_path / "t.onnx.data").symlink_to(victim)
        serde.convert(DIGITS, tmp_path / "t.onnx", external_data="always")
        assert victim.read_bytes() == b"\x08\x08mine" and not (tmp_path / "t.onnx").is_symlink()

    def test_a_link_in_place_of_the_temporary_name_changes_no_rights(self, tmp_path):
        victim = tmp_path / "victim"
        victim.write_bytes(b"mine")
        victim.chmod(0o600)
        with Replacing(str(tmp_path / "t")) as files, files.open(str(tmp_path / "t")) as out:
            (temporary,) = tmp_path.glob(".t.*")
            temporary.unlink()
            temporary.symlink_to(victim)
            out.write(b"theirs")
        assert victim.read_bytes() == b"mine" and victim.stat().st_mode & 0o777 == 0o600

    def test_gaps_between_weights_are_small(self):
        assert PAGE <= 64 << 10


class TestRule8NoCodeInData:
    """That nothing unpickles or evaluates is in tests/architecture/test_architecture.py."""

    def test_arrays_of_objects_are_refused(self, tmp_path):
        np.savez(tmp_path / "a.params", w=np.array([{}], object))
        os.rename(tmp_path / "a.params.npz", tmp_path / "a.params")
        with pytest.raises(MalformedFile, match="object"):
            read_params(tmp_path / "a.params")

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ('{"nodes": [], "nodes": []}', "one key twice"),
            ('{"nodes": ' + "[" * 100_000 + "]" * 100_000 + "}", "deep"),
            ('{"nodes": [' + "{}," * 3 + "]}", "not symbol JSON"),
            ('{"nodes": [NaN]}', "symbol"),
            ('{"nodes": [1e999999999]}', "symbol"),
        ],
        ids=["a key twice", "nesting", "a comma", "NaN", "a huge number"],
    )
    def test_json_is_checked(self, tmp_path, text, why):
        path = tmp_path / "m-symbol.json"
        path.write_text(text)
        with limit_cpu(5), pytest.raises(MalformedFile, match=why):
            serde.load(path)


def symbol():
    return (DIGITS / "digits-symbol.json").read_bytes()


def archive(path, *members):
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            if isinstance(data, bytes):
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            else:
                info.type, info.linkname = data
                tar.addfile(info)
    return path


class TestRule9Archives:
    def test_nothing_is_unpacked(self, tmp_path):
        params = (DIGITS / "digits-0010.params").read_bytes()
        path = archive(
            tmp_path / "m.tar.gz",
            ("../../evil-symbol.json", symbol()), ("/abs-0001.params", params),
        )  # fmt: skip
        serde.load(path)
        assert [p.name for p in tmp_path.iterdir()] == ["m.tar.gz"]
        assert not (tmp_path.parent.parent / "evil-symbol.json").exists()

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
    def test_links_and_devices_are_no_models(self, tmp_path, kind):
        path = archive(tmp_path / "m.tar.gz", ("m-symbol.json", (kind, "/etc/passwd")))
        with pytest.raises(SerdeError):
            serde.load(path)

    def test_a_compressed_member_grows_only_so_much(self, tmp_path, monkeypatch):
        monkeypatch.setattr(budget, "BYTES", budget.Limit(1 << 26, 64))
        path = tmp_path / "bomb.params"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr("w.npy", npy(np.zeros(70_000_000, np.uint8)))
        with pytest.raises(MalformedFile, match="--max-growth allows more"):
            read_params(path)

    def test_an_archive_of_very_many_members_is_no_model(self, tmp_path):
        path = archive(tmp_path / "m.tar", *((f"f{i}", b"") for i in range(10_001)))
        with pytest.raises(MalformedFile):
            serde.load(path)


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def nest_ifs(depth):
    """The bytes of a model of Ifs within Ifs; protobuf itself would not write so many."""
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    small = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "e", [], [info])
    body = small.SerializeToString()
    for _ in range(depth):
        node = helper.make_node("If", ["c"], ["y"], else_branch=small).SerializeToString()
        then = onnx.AttributeProto(name="then_branch", type=onnx.AttributeProto.GRAPH)
        held = (
            then.SerializeToString() + protobuf_wire.encode_header(6, len(body)) + body
        )  # AttributeProto.g
        node += protobuf_wire.encode_header(5, len(held)) + held  # NodeProto.attribute
        rest = helper.make_graph([], "b", [], [info]).SerializeToString()
        body = rest + protobuf_wire.encode_header(1, len(node)) + node  # GraphProto.node
    inputs = [helper.make_tensor_value_info("x", 1, [1]), helper.make_tensor_value_info("c", 9, [])]
    body += helper.make_graph([], "", inputs, []).SerializeToString()
    head = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)])
    return (
        head.SerializeToString() + protobuf_wire.encode_header(7, len(body)) + body
    )  # ModelProto.graph


class TestRule10Nesting:
    def test_bodies_within_bodies_are_read_up_to_a_depth(self, folder):
        graph = load(nest_ifs(20), folder)
        assert serde.load(folder / "m.onnx") and graph

    @pytest.mark.parametrize("depth", [DEPTH + 1, 200, 3000])
    def test_deeper_ones_are_refused(self, folder, depth):
        refuses("not an ONNX model|nest more than", nest_ifs(depth), folder)

    def test_types_within_types_are_read_up_to_a_depth(self, folder):
        kind = helper.make_tensor_type_proto(1, [1])
        for _ in range(40):
            kind = helper.make_sequence_type_proto(kind)
        model = model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", 17, 8)
        model.graph.input.append(onnx.ValueInfoProto(name="deep", type=kind))
        assert load(model, folder).inputs[1].dtype is None


class TestRule11Graphs:
    BAD = {
        "a cycle": ("a = Relu(b)\n b = Relu(a)\n y = Add(a, x)", "nodes 'a' → 'b' form a cycle"),
        "a value nobody computes": ("y = Relu(nothing)", "read 'nothing', which nothing before"),
        "a value computed twice": ("y = Relu(x)\n y = Neg(x)", "output 'y' is defined twice"),
        "an input computed": ("x = Neg(x)\n y = Relu(x)", "output 'x' is defined twice"),
        "an output nobody computes": ("z = Relu(x)", "the outputs read 'y'"),
    }

    @pytest.mark.parametrize(("nodes", "why"), BAD.values(), ids=BAD)
    def test_broken_ones_are_refused(self, folder, nodes, why):
        refuses(why, model_of(f"g (float[4] x) => (float[4] y) {{ {nodes} }}", 17, 8), folder)

    def test_two_inputs_of_one_name_are_refused(self, folder):
        model = model_of("g (float[4] x) => (float[4] y) { y = Relu(x) }", 17, 8)
        model.graph.input.append(model.graph.input[0])
        refuses("input 'x' is defined twice", model, folder)

    def test_an_inferred_rank_is_bounded(self, folder):
        """A tiny model can ask for a tensor of any number of axes (onnx PR 8321)."""
        model = model_of("g (int64[5000000] s) => (y) { y = ConstantOfShape(s) }", 17, 8)
        load(model, folder)
        graph = serde.load(folder / "m.onnx")
        assert graph.outputs[0].shape is None or len(graph.outputs[0].shape) <= 64

    @pytest.mark.parametrize(
        "nodes",
        [
            "s = Constant<value_ints=[100000, 100000, 1000]>()\n y = ConstantOfShape(s)",
            "a = Constant<value_int=0>()\n b = Constant<value_int=9223372036854775807>()\n"
            "c = Constant<value_int=1>()\n y = Range(a, b, c)",
            "s = Constant<value_ints=[1000000000000]>()\n y = Tile(x, s)",
            "s = Constant<value_ints=[1000000000000, 4]>()\n y = Expand(x, s)",
        ],
    )
    def test_a_small_model_computes_nothing_large_as_it_is_read(self, folder, nodes):
        load(model_of(f"g (float[4] x) => (y) {{ {nodes} }}", 17, 8), folder)
        with limit_cpu(5):
            serde.load(folder / "m.onnx")

    @pytest.mark.parametrize(
        ("links", "why"),
        [([[9, 0, 0]], "reads node 9"), ([[1, 0, 0]], "a cycle"), ([[0, 5, 0]], "one output"),
         ([[-1, 0, 0]], "is not a")],
    )  # fmt: skip
    def test_broken_symbols_are_refused(self, tmp_path, links, why):
        nodes = [{"op": "null", "name": "x", "inputs": []},
                 {"op": "relu", "name": "r", "inputs": links}]  # fmt: skip
        path = tmp_path / "m-symbol.json"
        path.write_text(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}))
        with pytest.raises(MalformedFile, match=why):
            serde.load(path)


class TestRule12AProcessOfItsOwn:
    """``--isolate`` as a command is in tests/cli/test_sandbox.py."""

    def test_a_crash_ends_that_process_alone(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sandbox, "START", "import os; os.abort()")
        with pytest.raises(MalformedFile, match=r"m.onnx: reading it crashed \(SIGABRT\)"):
            sandbox.run_limited(["inspect", "m.onnx"], "m.onnx")

    def test_so_does_one_that_does_not_end(self, monkeypatch):
        monkeypatch.setattr(sandbox, "START", "import time; time.sleep(60)")
        with pytest.raises(MalformedFile, match="stopped after 0.2 seconds"):
            sandbox.run_limited(["inspect", "m.onnx"], "m.onnx", seconds=0.2)


class TestRule13NoNetwork:
    """That nothing imports a network module is in tests/architecture/test_architecture.py."""

    def test_texts_that_look_like_numbers_take_no_time(self, tmp_path):
        """Fixed expressions on short texts: nothing that backtracks without end."""
        nodes = [{"op": "null", "name": "x", "inputs": []},
                 {"op": "Pooling", "name": "p", "inputs": [[0, 0, 0]],
                  "attrs": {"kernel": "(" + "1" * 50_000 + "(" * 50_000}}]  # fmt: skip
        path = tmp_path / "m-symbol.json"
        path.write_text(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}))
        with limit_cpu(5), pytest.raises(SerdeError):
            serde.load(path, inputs={"x": (1, 1, 4, 4)})


class TestRule14HashesOfTheWeights:
    """``--hash`` and ``verify-hash`` as commands are in tests/cli/test_inspection.py."""

    def hash_of(self, array, name="w"):
        return weights_hash(load_proto(model_with(numpy_helper.from_array(array, name))))

    def test_it_depends_on_names_types_shapes_and_bytes(self):
        base = np.arange(4, dtype=np.float32)
        others = [base + 1, base.astype(np.float64), base.reshape(2, 2), base.view(np.int32)]
        hashes = {self.hash_of(a) for a in [base, *others]} | {self.hash_of(base, "v")}
        assert len(hashes) == 6 and self.hash_of(base.copy()) == self.hash_of(base)

    def test_it_does_not_depend_on_where_the_weights_lie(self, folder):
        (folder / "weights").write_bytes(np.arange(4, dtype=np.float32).tobytes())
        graph = load(model_with(external("weights")), folder)
        assert weights_hash(graph) == self.hash_of(np.arange(4, dtype=np.float32))


def load_proto(model):
    """The graph of a model in memory, whose weight a node reads."""
    name = model.graph.initializer[0].name
    model.graph.node[-1].input[1] = name
    return decode(model)


class TestWhatIsNoModelAtAll:
    CONTENTS = {
        "nothing": (b"", "the file is empty"),
        "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        "an HTML page": (b"<!DOCTYPE html><html>404", "an HTML or XML page"),
        "text": (b"hello world, this is no model", "not an ONNX model"),
        "zeros": (bytes(100), "not an ONNX model"),
        "a zip": (b"PK\x03\x04" + bytes(100), "not an ONNX model"),
        "a model without a graph": (b"\x08\x08", "it has no graph"),
    }

    @pytest.mark.parametrize(("content", "why"), CONTENTS.values(), ids=CONTENTS)
    def test_it_is_told_for_what_it_is(self, folder, content, why):
        refuses(why, content, folder)

    def test_a_model_cut_short_anywhere_is_refused_or_whole(self, folder):
        data = model_with(numpy_helper.from_array(np.zeros(4, np.float32), "w")).SerializeToString()
        for length in range(1, len(data)):
            try:
                load(data[:length], folder)
            except MalformedFile:
                continue
        with pytest.raises(MalformedFile):
            load(data[: len(data) // 2], folder)

    def test_a_flipped_bit_raises_nothing_but_our_errors(self, folder):
        data = bytearray(
            model_with(numpy_helper.from_array(np.zeros(4, np.float32), "w")).SerializeToString()
        )
        for at in range(len(data)):
            for bit in (0, 3, 7):
                data[at] ^= 1 << bit
                (folder / "m.onnx").write_bytes(data)
                with contextlib.suppress(SerdeError):
                    serde.load(folder / "m.onnx")
                data[at] ^= 1 << bit
