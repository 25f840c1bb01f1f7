"""Send random programs every way, and compare.

    python -m conformance.differential --seconds 600 [--first SEED] [--direction NAME …] [--record]
    python -m conformance.differential --show SEED [--direction NAME]

The first runs programs by their seeds until the time is up, and prints those that differ;
``--record`` adds the counts to the record. The second shrinks a program that differs, and prints
what is left. Directions are those of ``directions.py``; those of files if none is named.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

from .campaign import add_to_record, run_seeds, supervise
from .directions import DIRECTIONS, FILES


def main() -> int:
    """Run what the command line asks for; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--direction", action="append", choices=list(DIRECTIONS))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    directions = given.direction or list(FILES)
    if given.child:
        end = time.time() + given.seconds
        run_seeds(itertools.count(given.first), directions, given.child, end)
        return 0
    if given.show is not None:
        return show_smallest(given.show, directions)
    counts = supervise(given.first, given.seconds, directions)
    for name, count in counts.items():
        print(f"{name}: {count.row()}")
    if given.record:
        add_to_record(counts)
    return int(any(count.kinds["differs"] for count in counts.values()))


def show_smallest(seed: int, directions: list[str]) -> int:
    """Print the smallest program that still differs as that of a seed does."""
    from .run import generate, send
    from .shrink import show, shrink

    program = generate(seed)
    bad = [o for o in send(program, directions) if o.kind == "differs"]
    for outcome in bad[:1]:
        direction, how = outcome.direction, outcome.why.split(":")[0]

        def fails(candidate, direction=direction, how=how):  # type: ignore[no-untyped-def]
            found = send(candidate, [direction])
            exact = how.endswith("Error") or how == "cannot run"
            return any(o.kind == "differs" and (not exact or o.why.startswith(how)) for o in found)

        print(f"{direction}: {outcome.why}\n{show(shrink(program, outcome.output, fails))}")
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
