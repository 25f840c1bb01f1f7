"""Servers that send what they should not, or nothing: they cost no memory, disk or patience."""

from __future__ import annotations

import gzip
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import fsspec
import pytest

import serde
from serde.errors import MalformedFile, SerdeError
from serde.io import filesystems
from serde.io.filesystems import fetch_file, is_url, list_folder, local_path, name_copy
from testing.onnx_live import model_of

MODEL = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8).SerializeToString()
PAGE = b"<a href='a.onnx'>a</a> <a href='../../evil.onnx'>b</a>"


class Server(BaseHTTPRequestHandler):
    """Each folder is a way to answer: ``/stall/m.onnx``."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        place, _, name = self.path.lstrip("/").partition("/")
        try:
            if name or place in ("plain", "hidden"):
                getattr(self, f"send_{place}")(name)
            else:
                self.send(405 if place == "unlisted" else 404)
        except OSError:  # the client has left
            self.close_connection = True

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass

    def send(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content_Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def send_plain(self, name):
        self.send(200, MODEL if name else PAGE)

    def send_hidden(self, name):
        self.send(*((200, MODEL) if name else (403,)))

    send_alone = send_unlisted = send_plain

    def send_packed(self, name):
        self.send(200, gzip.compress(MODEL), Content_Encoding="gzip")

    def send_moved(self, name):
        self.send(302, Location="/plain/m.onnx")

    def send_empty(self, name):
        self.send(204)

    def send_looped(self, name):
        self.send(302, Location=self.path)

    def send_local(self, name):
        self.send(302, Location=Path(__file__).as_uri())

    def send_cut(self, name):
        self.send(200, MODEL, Content_Length=len(MODEL) + 1)
        self.close_connection = True

    def send_broken(self, name):
        self.send(200, MODEL, Content_Encoding="gzip")

    def send_partial(self, name):
        self.send(206, MODEL[:40], Content_Range=f"bytes 0-39/{len(MODEL)}")

    def send_unsatisfied(self, name):
        self.send(416)

    def send_negative(self, name):
        self.send(200, Content_Length=-5)

    def send_mute(self, name):
        time.sleep(3)

    def send_stalled(self, name):
        self.send(200, MODEL[:9], Content_Length=len(MODEL))
        time.sleep(3)

    def send_dripping(self, name):
        self.send(200, Content_Length=10_000)
        for _ in range(100 if self.command == "GET" else 0):
            self.wfile.write(b"1")
            time.sleep(0.05)

    def send_endless(self, name):
        self.send(200, Content_Length=1 << 60)
        while self.command == "GET":
            self.wfile.write(bytes(1 << 18))
            time.sleep(0.01)  # the client has its turn


@pytest.fixture(scope="module")
def place():
    pytest.importorskip("aiohttp")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def hasty(monkeypatch):
    """Less patience than the servers of this file have."""
    monkeypatch.setattr(filesystems, "SILENCE", 1)
    monkeypatch.setattr(filesystems, "PATIENCE", 1)
    filesystems._bound_clients.cache_clear()
    yield
    filesystems._bound_clients.cache_clear()


@pytest.fixture
def small(monkeypatch):
    """A disk that has ten million bytes."""
    usage = SimpleNamespace(total=10**7, used=0, free=10**7)
    monkeypatch.setattr("serde.io.copies.shutil", SimpleNamespace(disk_usage=lambda path: usage))


@pytest.mark.parametrize("way", ["plain", "hidden", "alone", "unlisted", "packed", "moved"])
def test_a_model_is_read_whether_its_folder_is_listed_or_not(way, place, tmp_path):
    serde.convert(f"{place}/{way}/m.onnx", tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize(
    ("way", "reason"),
    [("empty", "the file is empty"), ("looped", "TooManyRedirects"), ("local", "Redirect"),
     ("cut", "PayloadError"), ("broken", "decode content-encoding"), ("partial", "not an ONNX"),
     ("unsatisfied", "416"), ("negative", "Content-Length"), ("mute", "Timeout"),
     ("stalled", "Timeout"), ("dripping", "slower than 1024 bytes a second. Fetch it"),
     ("endless", "is longer than 5,000,000 bytes, half of")],
)  # fmt: skip
def test_no_server_has_a_model_written_of_half_of_one(way, reason, place, tmp_path, hasty, small):
    target, begin = tmp_path / "out.onnx", time.monotonic()
    with pytest.raises(SerdeError, match=reason):
        serde.convert(f"{place}/{way}/m.onnx", target)
    assert not target.exists() and time.monotonic() - begin < 60


@pytest.mark.parametrize("way", ["endless", "dripping"])
def test_a_page_without_an_end_is_left(way, place, hasty, small):
    with pytest.raises(SerdeError):
        serde.load(f"{place}/{way}/models")
    with pytest.raises(ValueError, match="does not end in time: name a file of it"):
        list_folder(filesystems.open_filesystem(place)[0], f"{place}/{way}/models")


def test_what_the_user_configures_for_clients_wins(place, monkeypatch):
    monkeypatch.setitem(fsspec.config.conf, "http", {"client_kwargs": {"timeout": "mine"}})
    assert filesystems._options_of("http")["client_kwargs"]["timeout"] == "mine"
    assert filesystems._options_of("s3") == {}


def test_errors_of_a_folder_are_told_where_they_are_no_refusal():
    class Failing:
        def ls(self, folder, detail):
            raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        list_folder(Failing(), "models")


def test_copies_stay_in_their_folder():
    assert name_copy("http://a/b/c.onnx?x=1") == "c.onnx?x=1"
    for url in ("http://a/b/..", "http://a/", "memory://a/.."):
        with pytest.raises(MalformedFile, match="is none of a file"):
            name_copy(url)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(MalformedFile, match=r"a\.onnx: there is nothing at this URL"):
        fetch_file(fsspec.filesystem("memory"), "/none/a.onnx", str(tmp_path / "a.onnx"))


def test_a_file_at_a_url_may_lie_about_its_size(small, tmp_path, monkeypatch):
    """The size is told by the server."""
    system = fsspec.filesystem("memory")
    system.pipe_file("/models/a.onnx", MODEL)
    try:
        serde.convert("memory://models/a.onnx", tmp_path / "a.onnx")
        monkeypatch.setattr(type(system.store["/models/a.onnx"]), "read", lambda self, n: bytes(n))
        with pytest.raises(MalformedFile, match="a.onnx: is longer than 5,000,000 bytes"):
            serde.convert("memory://models/a.onnx", tmp_path / "b.onnx")
        assert not Path(tmp_path / "b.onnx").exists()
    finally:
        system.rm("/models", recursive=True)


@pytest.mark.parametrize(("path", "local", "is_remote"), [
    ("file:///a/b", "/a/b", False), ("local:///a", "/a", False), ("s3://b/c", "s3://b/c", True),
    ("a/b", "a/b", False), ("a:b", "a:b", False),
])  # fmt: skip
def test_urls_of_this_machine_are_paths(path, local, is_remote):
    assert local_path(path) == local and is_url(local) is is_remote
