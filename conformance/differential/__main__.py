"""Send random programs every way, and compare.

    python -m conformance.differential --seconds 600 [--first SEED] [--direction NAME …] [--record]
    python -m conformance.differential --show SEED [--direction NAME]
    python -m conformance.differential --rerun

The first runs programs by their seeds until the time is up, and prints those that differ;
``--record`` adds the counts to the record, where no seed may be twice. The second shrinks one that
differs, and prints what is left. The third runs again what the record has as different, and enters
what became of it. Directions are those of ``directions.py``; those of files if none is named.
Consumers are sent other programs, so they are named without other directions.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from .campaign import Count, Run, run_child, run_seeds, supervise
from .directions import CONSUMERS, DIRECTIONS, FILES, is_narrow
from .recording import add_to_record, open_differences, settle

ANOTHER = "not made any more: its operands are undefined, or ONNX Runtime gets them wrong"


def main() -> int:
    """Run what the command line asks for; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--direction", action="append", choices=list(DIRECTIONS))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--rerun", action="store_true")
    parser.add_argument("--most", type=int, default=10**9, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    directions = args.direction or list(FILES)
    if not is_narrow(directions) and not CONSUMERS.keys().isdisjoint(directions):
        parser.error("consumers have programs of their own: name no other directions beside them")
    if args.child:
        end = time.time() + args.seconds
        seeds = range(args.first, args.first + args.most)
        run_seeds(seeds, directions, args.child, end)
        return 0
    if args.show is not None:
        return show_smallest(args.show, directions)
    if args.rerun:
        return rerun()
    counts, bad = {d: Count() for d in directions}, 0
    for run in supervise(args.first, args.seconds, directions):
        for name, count in run.counts.items():
            counts.setdefault(name, Count()).join(count)
        bad += len(run.differences)
        if args.record:
            add_to_record(run)
    for name, count in counts.items():
        print(f"{name}: {count.row()}")
    return int(bad > 0)


def rerun() -> int:
    """Run again, a seed in a process, what the record has as different."""
    outcomes: dict[str, str] = {}
    entries = open_differences()
    for seed, narrow in dict.fromkeys(map(program_of, entries)):
        names = [name for name in entries if program_of(name) == (seed, narrow)]
        chosen = [d for d in DIRECTIONS if f"{seed} {d}" in names] or list(FILES)
        run = run_child(seed, 600, chosen, 1)
        for name in names:
            outcomes[name] = outcome_of(run, name, entries[name]["model"])
            print(f"{name}: {outcomes[name]}", flush=True)
    settle(outcomes)
    return int(bool(open_differences()))


def program_of(name: str) -> tuple[int, bool]:
    """The seed of a recorded difference, and whether its program is one for consumers."""
    seed, _, direction = name.partition(" ")
    return int(seed), is_narrow([direction])


def outcome_of(run: Run, name: str, model: str) -> str:
    """What became of a program in a direction, if the seed still gives the same program."""
    if run.differences and (name in run.differences or not run.model):
        return f"differs: {next(iter(run.differences.values()))['why']}"
    if run.model != model:
        return ANOTHER
    counts = run.counts.get(name.partition(" ")[2])
    return ", ".join(sorted(k for k, n in counts.kinds.items() if n)) if counts else "not sent"


def show_smallest(seed: int, directions: list[str]) -> int:
    """Print the smallest program that still differs as that of a seed does."""
    from .run import generate, send
    from .shrink import show, shrink

    program = generate(seed, directions)
    bad = [o for o in send(program, directions) if o.kind == "differs"]
    for outcome in bad[:1]:
        direction, how = outcome.direction, outcome.why.split(":")[0]

        def fails(candidate, direction=direction, how=how):  # type: ignore[no-untyped-def]
            runs = send(candidate, [direction])
            exact = how.endswith("Error") or how == "cannot run"
            return any(o.kind == "differs" and (not exact or o.why.startswith(how)) for o in runs)

        print(f"{direction}: {outcome.why}\n{show(shrink(program, outcome.output, fails))}")
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
