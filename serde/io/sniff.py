"""Identifies files that are not models by their first bytes."""

from __future__ import annotations

import errno
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from serde.errors import MalformedFile, SerdeError
from serde.io.command_files import active_files, check_name
from serde.io.named_file import NamedFile, name_path_in_errors, stat_open
from serde.ir.budget import active_budget

HEAD = 1024  # bytes looked at
NO_FILE = (errno.ENXIO, errno.ENODEV)  # a socket, and a device that is not there
BLOCK = 512  # bytes that a system counts as one block of a file
GZIP_MAGIC = b"\x1f\x8b"
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip", ".mar", ".model")  # endings
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")  # the second of an archive without members
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257


def open_uncharged(path: str | os.PathLike[str]) -> BinaryIO:
    """Like ``open_regular``, for a file whose size does not matter, or is in the budget already."""
    check_name(path)
    waiting = getattr(os, "O_NONBLOCK", 0)  # a pipe would have to be waited for
    try:
        file = NamedFile(path, opener=lambda p, flags: os.open(p, flags | waiting))
    except OSError as error:
        if error.errno in NO_FILE:
            raise MalformedFile(path, "not a regular file") from error
        raise
    with closing_on_errors(file):
        if not is_regular(file.fileno()):
            raise MalformedFile(path, "not a regular file")
        return io.BufferedReader(file)


@contextmanager
def closing_on_errors(file: BinaryIO | NamedFile) -> Iterator[None]:
    """Close a file where the block fails; errors of the system name it."""
    try:
        with name_path_in_errors(file.name):
            yield
    except BaseException:
        with suppress(OSError):
            file.close()
        raise


def is_regular(number: int) -> bool:
    """Whether an open file is one, of a size that tells how much there is to read.

    Those of a system's state, as in ``/proc``, have no size, and may be endless.
    """
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        return False
    if status.st_size or not hasattr(os, "pread"):
        return True
    try:
        return not os.pread(number, 1, 0)
    except OSError:
        return False


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to read it; refuse pipes and devices, which may never end.

    Raises:
        MalformedFile: for what is no regular file.
    """
    try:
        file = open_uncharged(path)
    except FileNotFoundError:
        active_files().absent.add(os.fspath(path))
        raise
    with closing_on_errors(file):
        allow_file(path, file.fileno())
    return file


def allow_file(path: str | os.PathLike[str], number: int) -> None:
    """Enter an open file among those read, and in the budget by what lies on the disk of it.

    Raises:
        MalformedFile: for a file of holes that is out of all proportion.
    """
    status = os.fstat(number)
    active_files().note_opened(path, status)
    stored = _count_stored(number, status.st_size)
    active_budget().add_file(file_id(number), status.st_size, path, stored)


def _count_stored(number: int, size: int) -> int:
    """The bytes of a file that lie on the disk, all where its system does not tell of holes."""
    blocks = getattr(os.fstat(number), "st_blocks", None)
    if blocks is None or blocks * BLOCK >= size or not hasattr(os, "SEEK_HOLE"):
        return size
    try:  # fewer blocks than bytes: it may be compressed instead
        has_hole = os.lseek(number, 0, os.SEEK_HOLE) < size
        os.lseek(number, 0, os.SEEK_SET)
    except OSError:
        return size
    return int(blocks * BLOCK) if has_hole else size


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """The contents of a file of at most as many bytes.

    Raises:
        MalformedFile: for a larger file, and for what is no regular file.
    """
    with open_regular(path) as file:
        data = file.read(min(stat_open(file).st_size, most) + 1)
    if len(data) > most:
        raise MalformedFile(path, f"larger than {most >> 10} KiB, the most that is read of it")
    return data


def file_id(file: IO[bytes] | int) -> tuple[int, int]:
    """The device and inode of an open file, which tell it from any other there is now."""
    status = os.fstat(file) if isinstance(file, int) else stat_open(file)
    return status.st_dev, status.st_ino


def read_head(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file."""
    with open_uncharged(path) as file:
        return file.read(HEAD)


def inflate_head(head: bytes, most: int = HEAD) -> bytes:
    """The beginning of what is packed with gzip; empty where it is damaged."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, most)
    except zlib.error:
        return b""


def is_tar(head: bytes) -> bool:
    """Whether ``head`` begins a tar archive of today's kinds."""
    return head.startswith(TAR_MAGIC, TAR_MAGIC_AT)


def may_be_archive(place: object) -> bool:
    """Whether something is the path of an archive, or of a member as ``split_member`` has it."""
    if not isinstance(place, (str, os.PathLike)):
        return False
    path = os.fspath(place)
    return _begins_archive(path) or bool(split_member(path)[1])


def split_member(path: str) -> tuple[str, str]:
    """The archive and the member of ``models.zip:net/model.onnx``, as errors call files in it.

    The path itself, and no member, where there is a file of that path, or no such archive. At a URL
    the ending tells of one, as of ``https://host/models.zip:net/model.onnx``.
    """
    protocol, separator, rest = path.partition("://")
    if not separator:
        return (path, "") if os.path.exists(path) else _split(path, 0, _begins_archive)
    begin = len(protocol) + len(separator) + max(0, rest.find("/"))  # behind a port
    return _split(path, begin, lambda archive: archive.lower().endswith(ARCHIVES))


def _split(path: str, begin: int, is_archive: Callable[[str], bool]) -> tuple[str, str]:
    """The parts of a path at the first colon behind an archive; ``::`` chains file systems."""
    at = path.find(":", begin)
    while at >= 0:
        archive, member = path[:at], path[at + 1 :]
        if member and member[0] != ":" and is_archive(archive):
            return archive, member
        at = path.find(":", at + 1)
    return path, ""


def _begins_archive(path: str) -> bool:
    """Whether a path is that of a file which begins like an archive: a zip, tar or gzip."""
    try:
        head = read_head(path) if os.path.isfile(path) else b""
    except (OSError, SerdeError):  # told of where it is read
        return False
    return head.startswith((*ZIP_MAGICS, GZIP_MAGIC)) or is_tar(head)


def is_text(head: bytes) -> bool:
    """Whether the beginning of a file is text: printable characters, in ASCII or UTF-8."""
    text = head.decode("utf-8", "replace").removesuffix("\ufffd")  # a character that is cut off
    return "\ufffd" not in text and all(c.isprintable() or c in "\t\r\n\f\ufeff" for c in text)


def identify_other_file(head: bytes) -> str | None:
    """Say what commonly takes the place of a model file, None if it is nothing of the kind."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not head:
        return "the file is empty"
    if text.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'"
    if text.startswith((b"<!doctype html", b"<html", b"<?xml", b"<head")):
        return "an HTML or XML page, probably from a download that failed"
    return None


def refuse_other_file(path: str | os.PathLike[str], head: bytes) -> None:
    """Raise MalformedFile if ``head`` begins something that is plainly no model."""
    reason = identify_other_file(head)
    if reason is not None:
        raise MalformedFile(path, reason)


def refuse_missing(path: Path) -> None:
    """Raise MalformedFile if there is nothing at ``path``."""
    if not path.exists():
        active_files().absent.add(os.fspath(path))
        raise MalformedFile(path, "there is no such file or folder")
