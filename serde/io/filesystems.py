"""File systems of URLs, by fsspec: opened, and read within bounds, whatever a server sends."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from importlib import import_module
from pathlib import PurePath
from typing import Any

from serde.errors import (
    MalformedFile,
    MissingDependency,
    SerdeError,
    UsageError,
    show_error,
    suggest,
)
from serde.io.copies import limit_copy

WEB = ("http", "https")
LOCAL = ("file", "local")  # protocols of this machine's own files
# The package that fsspec needs for a protocol, where their names differ.
DRIVERS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs",
           "abfs": "adlfs", "abfss": "adlfs", "http": "aiohttp", "https": "aiohttp",
           "hdfs": "pyarrow", "sftp": "paramiko", "ssh": "paramiko", "oci": "ocifs"}  # fmt: skip
MOST_OF_PAGE = 1 << 24  # bytes: a list of files, or the beginning of one
SILENCE = 60  # seconds that a server may send nothing
PATIENCE = 300  # seconds for a page, and for a file until its rate counts
SLOWEST = 1 << 10  # bytes of a file in a second


def is_url(path: str) -> bool:
    """Whether a path names a protocol."""
    return "://" in path


def local_path(path: str) -> str:
    """A URL of this machine's own files as their path, anything else as it is."""
    protocol, _, rest = path.partition("://")
    return rest if protocol in LOCAL else path


def open_filesystem(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it.

    Raises:
        MissingDependency: naming the package to install. SerdeError: where it cannot be reached.
    """
    try:
        import fsspec
    except ImportError as error:
        reason = f"{url}: URLs need fsspec: pip install fsspec"
        raise MissingDependency(reason) from error
    protocol = url.partition("://")[0]
    try:
        system, path = fsspec.core.url_to_fs(url, **_options_of(protocol))
    except ImportError as error:
        package = DRIVERS.get(protocol, protocol)
        reason = f"{url}: {protocol}:// needs a driver of fsspec: pip install {package}"
        raise MissingDependency(reason) from error
    except ValueError as error:
        hint = suggest(protocol, [p for p in fsspec.available_protocols() if p != protocol])
        raise UsageError(f"{url}: {error}{hint}") from error
    except Exception as error:  # of any driver: wrong credentials, no network
        raise SerdeError(f"{url}: {show_error(error)}") from error
    return system, path


def _options_of(protocol: str) -> dict[str, Any]:
    """Bounds of a protocol whose servers may be anyone's; what the user has configured wins."""
    from fsspec.config import conf

    if protocol not in WEB:
        return {}
    return {
        "client_kwargs": {**_bound_clients(), **conf.get(protocol, {}).get("client_kwargs", {})}
    }


@lru_cache(1)
def _bound_clients() -> dict[str, Any]:
    """What makes clients of HTTP stop at pages without end; files are read piece by piece."""
    aiohttp: Any = import_module("aiohttp")

    async def read(self: Any) -> bytes:
        if self._body is None:
            body, end = bytearray(), time.monotonic() + PATIENCE
            async for piece in self.content.iter_any():
                body += piece
                if len(body) > MOST_OF_PAGE or time.monotonic() > end:
                    self.close()
                    raise ValueError("the page does not end in time: name a file of it")
            self._body = bytes(body)
        return self._body  # type: ignore[no-any-return]

    return {
        "response_class": type("Response", (aiohttp.ClientResponse,), {"read": read}),
        # Large files take their time.
        "timeout": aiohttp.ClientTimeout(sock_connect=SILENCE, sock_read=SILENCE),
    }


def is_web(system: Any) -> bool:
    """Whether a file system is that of HTTP, where each URL may be a file and a folder."""
    return not {*WEB}.isdisjoint(
        [system.protocol] if isinstance(system.protocol, str) else system.protocol
    )


def list_folder(system: Any, folder: str) -> list[dict[str, Any]]:
    """What is in a folder; nothing where it may not be listed, as on most servers of HTTP."""
    try:
        return list(system.ls(folder, detail=True))
    except (FileNotFoundError, PermissionError):
        return []
    except Exception as error:  # of any driver
        if 400 <= getattr(error, "status", 0) < 500:
            return []
        raise


def name_copy(url: str) -> str:
    """The name that a copy of a file at a URL has in a folder of this machine.

    Raises:
        MalformedFile: where it would lie in another folder.
    """
    name = url.rpartition("/")[2]
    if name in ("", "..") or PurePath(name).name != name:
        raise MalformedFile(url, "its name is none of a file: name another URL of it")
    return name


def fetch_file(system: Any, name: str, path: str, url: str = "") -> None:
    """Copy a file of a file system of fsspec, whose server may lie about its size, to a path.

    Errors name its ``url``, where it has one.

    Raises:
        MalformedFile: where it does not end in time.
    """
    from fsspec.callbacks import Callback

    shown = url or name
    check, begin = limit_copy(os.path.dirname(path), shown), time.monotonic()

    def limit(size: int | None, value: int, **more: Any) -> None:
        check(value)
        seconds = time.monotonic() - begin
        if seconds > PATIENCE and value < seconds * SLOWEST:
            raise MalformedFile(
                shown, f"comes slower than {SLOWEST} bytes a second. Fetch it, and name the file"
            )

    try:
        system.get_file(name, path, callback=Callback(hooks={"limit": limit}))
    except FileNotFoundError as error:  # whose text is the name
        raise MalformedFile(shown, "there is nothing at this URL") from error
    except SerdeError:
        raise
    except Exception as error:  # of any driver
        if isinstance(error, OSError) and error.errno:  # of the disk
            raise
        raise SerdeError(f"{shown}: {show_error(error)}") from error
