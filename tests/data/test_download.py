"""Downloads, from a server on loopback: whole, cut, resumed, wrong."""

import hashlib
import io
import threading
import time
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from firstclick.data.sources import download as package
from firstclick.data.sources.download import Archive, download, find_archive
from firstclick.errors import InvalidInput, UnknownName, WorkFailed

FILES = {"ratings.txt": b"7::19::4\n" * 9000, "items.txt": "19::Café\n".encode("latin-1")}


def zipped(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return file.getvalue()


WHOLE = zipped(
    {f"small/{name}": content for name, content in FILES.items()} | {"small/junk": b"x", "../evil": b"x"}
)


@pytest.fixture
def server(monkeypatch):
    """Sends `body`: at most `cut` bytes if that is set, by range if `ranges`, nothing if `status` is 0."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = SimpleNamespace(body=WHOLE, cut=None, ranges=True, status=200, length=True, requested=[])
    silence = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = self.headers["Range"]
            served.requested.append(wanted)
            if served.status == 0:
                silence.wait(20)
                return
            body, status = served.body, served.status
            if status != 200:
                body = b"no such thing"
            elif wanted and served.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                body, status = body[start:], 206 if start < len(body) else 416
            self.send_response(status)
            if served.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: served.cut])

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served.address = f"http://127.0.0.1:{http.server_port}/some/small.zip"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        silence.set()
        http.shutdown()
        thread.join()


@pytest.fixture
def archive(server):
    return Archive(
        title="Small", address=server.address, md5=hashlib.md5(WHOLE).hexdigest(), folder="small",
        members=tuple(FILES), source="movielens", terms="Be kind.",
    )  # fmt: skip


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def check_whole(archive, folder):
    """Download the archive into `folder`, and check its files; return the last progress."""
    seen = []
    target = download(archive, folder, lambda *progress: seen.append(progress))
    assert target == folder / "small"
    assert {path.name: path.read_bytes() for path in target.iterdir()} == FILES
    assert listing(folder) == ["small", "small/items.txt", "small/ratings.txt"]
    return (seen or [None])[-1]


@contextmanager
def failing(kind, *words):
    with pytest.raises(kind) as caught:
        yield
    for word in words:
        assert word in str(caught.value)


def test_expected_files_are_fetched_once_and_nothing_else(archive, server, tmp_path):
    assert check_whole(archive, tmp_path / "new" / "place") == (len(WHOLE), len(WHOLE))
    assert listing(tmp_path / "new")[0] == "place"
    assert not (tmp_path / "new" / "evil").exists()
    assert download(archive, tmp_path / "new" / "place") == tmp_path / "new" / "place" / "small"
    assert server.requested == [None]


def test_interrupted_download_is_kept_and_resumed(archive, server, tmp_path):
    server.cut = 101
    with failing(WorkFailed, f"after 101 of {len(WHOLE):,} bytes, which are kept; run it again to go on"):
        download(archive, tmp_path)
    assert listing(tmp_path) == ["small.zip.part"]
    server.cut = None
    assert check_whole(archive, tmp_path) == (len(WHOLE), len(WHOLE))
    assert server.requested == [None, "bytes=101-"]


def test_servers_may_lack_ranges_and_lengths(archive, server, tmp_path):
    server.ranges, server.cut = False, 101
    with failing(WorkFailed, "after 101 of"):
        download(archive, tmp_path)
    server.cut = None
    assert check_whole(archive, tmp_path) == (len(WHOLE), len(WHOLE))
    assert server.requested == [None, "bytes=101-"]
    server.length = False
    assert check_whole(archive, tmp_path / "other") == (len(WHOLE), 0)
    # The file was whole already.
    server.ranges = True
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "small.zip.part").write_bytes(WHOLE)
    check_whole(archive, tmp_path / "part")


def test_nothing_is_kept_with_the_wrong_checksum(archive, server, tmp_path):
    server.body = b"<html>Please log in to the hotel's network, it is free for all of our guests</html>"
    (tmp_path / "small.zip.part").write_bytes(b"something else that was there")
    with failing(WorkFailed, server.address, archive.md5, "thrown away"):
        download(archive, tmp_path)
    assert listing(tmp_path) == []
    server.body = WHOLE
    check_whole(archive, tmp_path)


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"not a zip file", "(File is not a zip file)"),
        (zipped({"small/items.txt": b"1"}), "(There is no item named 'small/ratings.txt'"),
        (zipped({"../small/ratings.txt": b"1", "../small/items.txt": b"1"}), "not the expected zip file"),
    ],
)
def test_zip_file_without_the_expected_files_leaves_nothing(archive, server, tmp_path, packed, words):
    server.body = packed
    with failing(WorkFailed, "not the expected zip file", words):
        download(replace(archive, md5=hashlib.md5(packed).hexdigest()), tmp_path)
    assert listing(tmp_path) == []


def test_failing_servers_are_named(archive, server, tmp_path):
    server.status = 404
    with failing(WorkFailed, f"{server.address}: the server says 404 Not Found"):
        download(archive, tmp_path)
    assert listing(tmp_path) == []
    (tmp_path / "small.zip.part").write_bytes(WHOLE[:70])
    with failing(WorkFailed, "127.0.0.1:9 cannot be reached: Connection refused; try again when it can"):
        download(replace(archive, address="http://127.0.0.1:9/small.zip"), tmp_path)
    server.status = 0
    start = time.monotonic()
    with failing(WorkFailed, "cannot be reached: timed out"):
        download(archive, tmp_path, timeout=0.2)
    assert time.monotonic() - start < 4
    assert (tmp_path / "small.zip.part").read_bytes() == WHOLE[:70]


def test_places_that_cannot_be_are_refused_before_a_request(archive, server, tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "items.txt").write_text("mine")
    with failing(InvalidInput, "small is there but has no ratings.txt; move it away"):
        download(archive, tmp_path)
    assert (tmp_path / "small" / "items.txt").read_text() == "mine"
    (tmp_path / "file").touch()
    with failing(InvalidInput, "file", "cannot be made"):
        download(archive, tmp_path / "file" / "data")
    assert server.requested == []


def test_folder_does_not_appear_on_a_full_disk(archive, tmp_path, monkeypatch):
    def full(path, content):
        raise WorkFailed(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr(package, "write_whole", full)
    with failing(WorkFailed, "No space left on device"):
        download(archive, tmp_path)
    assert listing(tmp_path) == ["small.zip.part"]
    monkeypatch.undo()
    check_whole(archive, tmp_path)


def test_movielens_comes_from_its_owner_with_its_checksum_and_its_terms():
    archive = find_archive("movielens-1m")
    assert archive.address == "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
    assert archive.md5 == "c4d9eecfca2ab87c1945afe126590906"
    for words in ("Harper", "Konstan", "2015", "research", "https://", "pass the data on"):
        assert words in archive.terms


def test_other_names_are_refused_with_what_to_do(tmp_path):
    for name, kind, words in (
        ("yelp", InvalidInput, ["cannot be downloaded", "https://", "--data"]),
        ("million-song", InvalidInput, ["train_triplets.txt", "unique_tracks.txt", "--data"]),
        ("movielens-2m", UnknownName, ["did you mean 'movielens-1m'?"]),
        ("xyz", UnknownName, ["known are movielens-1m, yelp, million-song"]),
    ):
        with failing(kind, name, *words):
            download(name, tmp_path)
