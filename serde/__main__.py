"""The command line as a module: ``python -m serde``."""

from __future__ import annotations

from serde.cli.commands import main

if __name__ == "__main__":
    main()
