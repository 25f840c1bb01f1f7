"""What a worker of a local Dask cluster, a process that serde starts, does first."""

from __future__ import annotations

from serde.io.signals import ignore_interrupts


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the process that the user started; Dask calls this."""
    ignore_interrupts()
