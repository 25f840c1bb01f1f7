"""The command line: ``serde``, and as a module, ``python -m serde``."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

INTERRUPTED = 130  # as shells have it


def main() -> None:
    """Run the command; Ctrl-C ends it with a word, also while the command is imported."""
    try:
        from serde.cli.commands import main as run_command

        run_command()
    except KeyboardInterrupt:
        with suppress(OSError):  # nobody could be told
            os.write(2, b"\nAborted!\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
