"""Files that a migration wrote before, which are no models to migrate again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import takewhile
from pathlib import PurePath
from typing import Any

TABLES = ("migration.html", "migration.json", "migration.csv")
JOURNAL = "migration.jsonl"  # a row in each line, or the results that a run begins
BEGUN = "begun"  # the first field of such a line


class OwnResults:
    """What journals have as written; ``root`` is what the user named.

    Those of the root itself, and of folders above it, count where the models they came from are in
    the root, too: a folder of results may be migrated to another format. What a run left there that
    was stopped counts where the root is ``replaced``: results are written into it again.
    """

    def __init__(self, root: str, replaced: bool = False) -> None:
        self.root, self.replaced = PurePath(root), replaced
        self._files: set[PurePath] = set()

    def enter(self, folder: str, journal: str) -> None:
        """Take in the text of the journal in a folder.

        Where the folder was moved since, the ends of the paths tell: all that may lie below it.
        """
        at = PurePath(folder)
        is_above = self.root.is_relative_to(at)
        files = {
            PurePath(file) for source, file in _list_written(journal)
            if not is_above or (PurePath(source).is_relative_to(self.root) if source
                                else self.replaced)
        }  # fmt: skip
        moved = [file for file in files if not file.is_relative_to(at)]
        levels = zip(*(file.parts[:-1] for file in moved), strict=False)
        least = sum(1 for _ in takewhile(lambda names: len(set(names)) == 1, levels))
        self._files |= files
        for file in moved:
            self._files |= {at.joinpath(*file.parts[n:]) for n in range(1, least + 1)}

    def has(self, path: str) -> bool:
        """Whether a file is a table, a journal, or a result that a journal names."""
        file = PurePath(path)
        return file.name in (JOURNAL, *TABLES) or file in self._files


def _list_written(text: str) -> Iterator[tuple[str, str]]:
    """The source and the path of each file that a journal names as written.

    Results that a run began, and did not enter, are without a source; where another file was in
    the place of one, it is none.
    """
    begun: dict[str, Any] = {}
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(row, dict):
            continue
        if isinstance(row.get(BEGUN), dict):
            begun |= row[BEGUN]
        if isinstance(row.get("written"), dict):
            begun.pop(str(row.get("target", "")), None)
            yield from ((str(row.get("source", "")), file) for file in row["written"])
    for target, spared in begun.items():
        if isinstance(spared, list) and os.path.basename(target) not in spared:
            yield "", os.path.abspath(target)
