"""The folder of a partition: all of its files are replaced, or none.

New files are written into a folder inside (``.serde-….part``) and moved out of it at the end: first
what was there goes away, the manifest before all else, then the new files come, the manifest last.
Without a manifest nothing runs the parts. A process that is killed meanwhile leaves its folder
behind, from which the next one restores what was there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from serde.errors import UsageError
from serde.io.atomic_write import lock_folder
from serde.io.command_files import active_files, check_name
from serde.io.named_file import name_path_in_errors

from .manifest import NAME, hash_file, list_files

STAGING = re.compile(r"\.serde-[0-9a-f]{12}\.part")  # the name of a folder that is written into
NEW, OLD = "new", "old"  # folders inside: what is to come, and what was there


@contextmanager
def replace_parts(place: Path) -> Iterator[Path]:
    """Give an empty folder to write parts and manifest into; they are in ``place`` at the end.

    Raises:
        UsageError: for a folder of other files, or one whose files are read by the command.
    """
    check_name(place)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place} is a file: name a folder")
    missing = [f for f in (place, *place.parents) if not f.exists()]  # the innermost first
    try:
        place.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            staging = place / f".serde-{os.urandom(6).hex()}.part"
            with lock_folder(place):
                _restore(place)
                _check_folder(place)
                with name_path_in_errors(place):
                    stack.callback(_clean_up, place, staging)  # first: Ctrl-C may come in between
                    staging.mkdir()
                    stack.enter_context(lock_folder(staging))  # it tells that this process is alive
            with _name_final_paths(staging, place):
                (staging / NEW).mkdir()
                (staging / OLD).mkdir()
                yield staging / NEW
                with lock_folder(place):
                    _swap(place, staging)
    except BaseException:
        for folder in missing:
            with suppress(OSError):  # another process writes into it
                folder.rmdir()
        raise


def _check_folder(place: Path) -> None:
    files = [f for f in place.iterdir() if not STAGING.fullmatch(f.name)]
    if files and list_files(place) is None:
        raise UsageError(
            f"{place} has files, and no {NAME} of a partition: name a folder that is new or empty"
        )


@contextmanager
def _name_final_paths(staging: Path, place: Path) -> Iterator[None]:
    """Enter into errors of the system where a file was to be."""
    try:
        yield
    except OSError as error:
        path = Path(os.fsdecode(error.filename or ""))
        if staging in path.parents:
            error.filename = os.fspath(place / path.name)
            del error.filename2
        raise


def _swap(place: Path, staging: Path) -> None:
    """Move away what was there, and put the new files in place."""
    before = list_files(place) or {}
    new = sorted((f.name for f in (staging / NEW).iterdir()), key=lambda name: name == NAME)
    for name in new:
        is_part = name in before and (place / name).is_file()
        if os.path.lexists(place / name) and not is_part:
            raise UsageError(f"{place / name} is no file of the partition there: move it away")
        active_files().refuse_result(place / name)
    gone = [n for n, digest in before.items() if n in new or _is_unchanged(place / n, digest)]
    for name in gone:
        active_files().refuse_target(place / name)
    try:
        for name in sorted(gone, key=lambda name: name != NAME):
            with suppress(FileNotFoundError):
                os.rename(place / name, staging / OLD / name)
        for name in new:
            os.rename(staging / NEW / name, place / name)
            active_files().enter_written(os.fspath(place / name))
    except BaseException:
        _undo(place, staging)
        raise


def _is_unchanged(path: Path, digest: str) -> bool:
    return path.is_file() and hash_file(path) == digest


def _restore(place: Path) -> None:
    """Undo what processes that were killed have left behind."""
    for staging in [f for f in place.iterdir() if STAGING.fullmatch(f.name)]:
        if staging.is_symlink() or not staging.is_dir():
            continue
        with lock_folder(staging, wait=False) as is_free:
            if is_free:
                _undo(place, staging)


def _clean_up(place: Path, staging: Path) -> None:
    """Remove what is left, while no other process moves files: the manifest is away meanwhile.

    Ctrl-C meanwhile comes behind that.
    """
    try:
        if staging.exists():
            with lock_folder(place):
                _undo(place, staging)
    except BaseException:
        with lock_folder(place):
            _undo(place, staging)
        raise


def _undo(place: Path, staging: Path) -> None:
    """Put back what was moved away, unless all new files are in place; remove ``staging``."""
    if not (place / NAME).exists():
        ahead = list_files(staging / NEW) or {}
        for name, digest in ahead.items():
            if not (staging / NEW / name).exists() and _is_unchanged(place / name, digest):
                os.unlink(place / name)
        with suppress(FileNotFoundError):
            names = sorted(os.listdir(staging / OLD), key=lambda name: name == NAME)
            for name in names:
                if os.path.lexists(place / name):
                    raise UsageError(
                        f"{place / name} is in the place of {staging / OLD / name}, which a "
                        "process that was killed moved away: move one of them elsewhere"
                    )
                os.rename(staging / OLD / name, place / name)
    _remove(staging)


def _remove(folder: Path) -> None:
    """Remove a folder as far as the system lets it be; Ctrl-C in ``shutil.rmtree`` may get lost."""
    with suppress(OSError):
        for path in (*sorted(folder.rglob("*"), reverse=True), folder):
            is_folder = path.is_dir() and not path.is_symlink()
            path.rmdir() if is_folder else path.unlink()
