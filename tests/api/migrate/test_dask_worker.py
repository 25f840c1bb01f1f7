"""What a worker of a local Dask cluster does first."""

import os
import signal
from importlib import import_module

import pytest

from serde.api.migrate.engines import WORKER


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_a_worker_goes_on_where_the_user_stops_the_command():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        import_module(WORKER).dask_setup(None)
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
