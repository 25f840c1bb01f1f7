"""Files appear whole or not at all."""

from __future__ import annotations

import inspect
import itertools
import os
import sys

import pytest

from serde.errors import MalformedFile, TargetRefused, UsageError
from serde.io import atomic_write, open_folder
from serde.io.atomic_write import (
    Replacing,
    Sources,
    begins_with,
    is_leftover,
    lock_folder,
    refuse_other_file,
)
from serde.io.command_files import within_command
from serde.ir.graph import FileSlice


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def test_files_appear_together_when_the_block_ends_well(tmp_path):
    target = str(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"before")
    with Replacing(target) as out:
        for name in ("a", "b"):
            out.open(str(tmp_path / name)).write(name.encode())
        names = sorted(files(tmp_path))
        assert names[-1] == "a" and len(names) == 3 and (tmp_path / "a").read_bytes() == b"before"
        assert all(n.endswith(".part") and n.startswith(".") for n in names[:2])
    assert files(tmp_path) == {"a": b"a", "b": b"b"}
    assert out.written == [target, str(tmp_path / "b")]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_a_failure_leaves_what_was_there(tmp_path, kind):
    (tmp_path / "a").write_bytes(b"before")
    with pytest.raises(kind), Replacing(str(tmp_path / "a")) as out:
        out.open(str(tmp_path / "a")).write(b"half")
        out.open(str(tmp_path / "b")).write(b"half")
        raise kind
    assert files(tmp_path) == {"a": b"before"} and out.written == []


def test_files_get_the_permissions_the_user_asks_new_files_to_have(tmp_path):
    before = os.umask(0o027)
    try:
        with Replacing(str(tmp_path / "a")) as out:
            out.open(str(tmp_path / "a"))
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_the_umask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    """Another thread that makes a file meanwhile gets the rights that the user asks for."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is of all threads"))
    with Replacing(str(tmp_path / "a")) as out:
        out.open(str(tmp_path / "a")).write(b"a")
    assert files(tmp_path) == {"a": b"a"}


@pytest.mark.parametrize(
    ("name", "why"),
    [("folder", "is a folder: name the file to write"), ("none/a", "does not exist"),
     ("pipe", "is not a regular file"), ("", "is empty"), ("a.onnx/", "names a folder"),
     ("a.onnx/.", "names a folder")],
)  # fmt: skip
def test_targets_that_cannot_be_written_are_refused_before_anything_is(tmp_path, name, why):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    path = f"{tmp_path}/{name}" if name else ""
    with pytest.raises(UsageError, match=why):
        Replacing(path)
    with pytest.raises(UsageError, match=why), Replacing(str(tmp_path / "a")) as out:
        out.open(path)
    assert files(tmp_path) == {}


@pytest.mark.parametrize("names", [["a"], ["b", "a"]])
@pytest.mark.parametrize("becomes", ["nothing", "folder", "link"])
def test_a_folder_that_is_moved_meanwhile_redirects_no_file(tmp_path, names, becomes):
    place, moved, other = tmp_path / "out", tmp_path / "moved", tmp_path / "other"
    for folder in (place, other):
        folder.mkdir()
        (folder / "a").write_bytes(b"before")
    with (
        pytest.raises((TargetRefused, FileNotFoundError), match="out"),
        Replacing(str(place / "a")) as out,
    ):
        for name in names:
            out.open(str(place / name)).write(b"new")
        place.rename(moved)
        if becomes == "folder":
            place.mkdir()
        elif becomes == "link":
            place.symlink_to(other)
    assert files(moved) == files(other) == {"a": b"before"}
    assert becomes != "folder" or files(place) == {}


@pytest.mark.parametrize("names", [["a"], ["b", "a"]])
def test_what_comes_to_the_place_meanwhile_is_judged(tmp_path, names):
    target = str(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"model")
    with within_command(), pytest.raises(TargetRefused, match="a is there, and is no model"):
        refuse_other_file(target, begins_with(b"model"), "model")
        with Replacing(target) as out:
            for name in names:
                out.open(str(tmp_path / name)).write(b"new")
            (tmp_path / "a").write_bytes(b"notes")
    assert files(tmp_path) == {"a": b"notes"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("make", [os.mkdir, lambda path: os.mkfifo(path)], ids=["folder", "pipe"])
@pytest.mark.parametrize("names", [["a"], ["b", "a"], ["a", "b"]])
@pytest.mark.parametrize("taken", ["a", "b"])
def test_what_is_no_file_and_comes_meanwhile_stays(tmp_path, names, taken, make):
    with pytest.raises(TargetRefused, match=taken), Replacing(str(tmp_path / "a")) as out:
        for name in {*names, taken}:
            out.open(str(tmp_path / name)).write(b"new")
        make(tmp_path / taken)
    (left,) = tmp_path.iterdir()
    assert left.name == taken and not left.is_file()


def test_a_very_long_name_has_room_for_the_temporary_one(tmp_path):
    name = "n" * 250
    with Replacing(str(tmp_path / name)) as out:
        out.open(str(tmp_path / name))
    assert list(files(tmp_path)) == [name]


@pytest.mark.parametrize("by_hand", [False, True])
def test_slices_are_copied_file_to_file_behind_what_is_written(tmp_path, monkeypatch, by_hand):
    if by_hand:  # as on another file system
        monkeypatch.setattr(atomic_write, "CHUNK", 7)
        monkeypatch.setattr(os, "copy_file_range", lambda *a, **k: (_ for _ in ()).throw(OSError))
    source = tmp_path / "source"
    source.write_bytes(bytes(range(100)))
    with (tmp_path / "out").open("w+b") as out, Sources() as sources:
        out.write(b"head")
        sources.copy(FileSlice(str(source), 10, 50), out)
        out.write(b"tail")
        sources.copy(FileSlice(str(source), 0, 0), out)
    assert (tmp_path / "out").read_bytes() == b"head" + bytes(range(10, 60)) + b"tail"


def test_a_source_that_shrinks_is_noticed(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(bytes(10))
    with (
        (tmp_path / "out").open("w+b") as out,
        Sources() as sources,
        pytest.raises(MalformedFile, match="became shorter"),
    ):
        sources.copy(FileSlice(str(source), 5, 50), out)


def test_a_signal_while_old_files_are_removed_leaves_none_of_them(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"before")
    real, count = os.unlink, [0]

    def unlink(path, **options):
        if path.endswith(".before"):
            count[0] += 1
            if count[0] == 1:
                raise KeyboardInterrupt
        real(path, **options)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt), Replacing(str(tmp_path / "a")) as out:
        for name in ("a", "b"):
            out.open(str(tmp_path / name)).write(b"new")
    assert files(tmp_path) == {"a": b"new", "b": b"new"}


def test_what_was_there_comes_back_where_a_temporary_file_is_removed(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"before")
    with pytest.raises(FileNotFoundError), Replacing(str(tmp_path / "a")) as out:
        for name in ("a", "b"):
            out.open(str(tmp_path / name)).write(b"new")
        next(tmp_path.glob(".b.*.part")).unlink()
    assert files(tmp_path) == {"a": b"before", "b": b"before"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_lock_ends_with_its_block_in_forked_processes_too(tmp_path):
    receiver, sender = os.pipe()
    with lock_folder(tmp_path) as is_locked:
        child = os.fork()
        if child == 0:
            os.close(sender)
            os.read(receiver, 1)  # until the parent ends it
            os._exit(0)
    os.close(receiver)
    try:
        with lock_folder(tmp_path, wait=False) as is_free:
            assert is_free is is_locked
    finally:
        os.close(sender)
        os.waitpid(child, 0)


def test_leftovers_of_killed_processes_are_told_by_their_names(tmp_path):
    with Replacing(str(tmp_path / "a\nb")) as out:
        out.open(str(tmp_path / "a\nb"))
        (name,) = files(tmp_path)
    assert is_leftover(name) and is_leftover(name + atomic_write.BEFORE)
    for other in ("a.part", ".part", ".a.part", "a.0123456789ab.part", name + ".onnx"):
        assert not is_leftover(other)


@pytest.mark.parametrize("names", [["a"], ["b", "a"]])
def test_a_folder_that_cannot_be_closed_fails_nothing(tmp_path, monkeypatch, names):
    """All is in place by then, and nothing is written by a folder's handle."""
    real = os.close

    def close(number):
        real(number)
        raise OSError(5, "Input/output error")

    with Replacing(str(tmp_path / "a")) as out:
        for name in names:
            out.open(str(tmp_path / name)).write(b"new")
        monkeypatch.setattr(os, "close", close)
    assert files(tmp_path) == dict.fromkeys(names, b"new")


@pytest.mark.skipif(atomic_write.fcntl is None, reason="there are no locks")
def test_a_folder_that_stays_locked_is_written_to_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_write, "PATIENCE", 0.1)
    number = os.open(tmp_path, os.O_RDONLY)
    try:
        atomic_write.fcntl.flock(number, atomic_write.fcntl.LOCK_EX)
        with Replacing(str(tmp_path / "a")) as out:
            for name in ("a", "b"):
                out.open(str(tmp_path / name)).write(name.encode())
        with lock_folder(tmp_path) as is_locked:
            assert not is_locked
    finally:
        os.close(number)
    assert files(tmp_path) == {"a": b"a", "b": b"b"}


@pytest.mark.skipif(atomic_write.fcntl is None, reason="there are no locks")
def test_an_interruption_as_a_lock_ends_does_not_keep_it(tmp_path, monkeypatch):
    real = atomic_write.suppress

    def interrupt(*kinds):
        monkeypatch.setattr(atomic_write, "suppress", real)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), lock_folder(tmp_path):
        monkeypatch.setattr(atomic_write, "suppress", interrupt)
    with lock_folder(tmp_path, wait=False) as is_locked:
        assert is_locked


INTERRUPTED = (atomic_write.__file__, open_folder.__file__)


def write_interrupted(path, place):
    """Write a model of two files, but for Ctrl-C as a function begins; whether that came."""
    count = itertools.count()

    def interrupt(frame, event, argument):
        code = frame.f_code
        is_own = code.co_filename in INTERRUPTED and not code.co_flags & inspect.CO_GENERATOR
        if is_own and event == "call" and next(count) == place:
            raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        with Replacing(str(path)) as out:
            for name in (path, path.with_suffix(".data")):
                out.open(str(name)).write(b"new")
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors as Linux lists them")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # one is closed as it goes
def test_ctrl_c_as_any_function_begins_leaves_no_descriptor_open(tmp_path):
    place, before = 0, len(os.listdir("/proc/self/fd"))
    while write_interrupted(tmp_path / "model", place):
        assert len(os.listdir("/proc/self/fd")) == before, place
        place += 1
    assert place > 30
