"""Long sweeps that are gone on with where they stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def resume(
    arguments: Sequence[str], every: Iterable[str], kept: Path, page: Path,
    run: Callable[[str], Any], lines: Callable[[Mapping[str, Any]], Iterable[str]],
    shown: Callable[[Any], str], is_done: Callable[[Any], bool] = lambda result: True,
) -> None:  # fmt: skip
    """Run what is not in the file ``kept`` yet, and write both files after each.

    ``arguments`` are the names to run, all if there are none; with ``--again`` those that are known
    are run anew. ``lines`` makes the page of all results, ``shown`` what is printed of one.
    A result that is not done, ``is_done`` tells, is made anew.
    """
    chosen = [a for a in arguments if not a.startswith("--")] or list(every)
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if "--again" in arguments:
        known = {n: r for n, r in known.items() if n not in chosen}
    for name in chosen:
        if name in known and is_done(known[name]):
            continue
        start = time.perf_counter()
        known[name] = run(name)
        kept.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        print(f"{name}: {shown(known[name])} in {time.perf_counter() - start:.0f} s", flush=True)
        page.write_text("\n".join(lines(known)))
