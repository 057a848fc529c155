"""One file of arrays and a page: whole or not at all, and never a pickle."""

import errno
import os
import pickle
import re
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.arrays import read_arrays, write_arrays
from firstclick.files.writing import write_whole
from tests.support.awkward import short_id

if sys.platform != "win32":
    import fcntl

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions, links and locks of POSIX")

PAGE = {"format": "box 1", "k": 3, "items": ["", 7, "ü", "\ud800"], "deep": [[1, 2], [3]]}
ARRAYS = {
    "state.counts": np.arange(6).reshape(2, 3),
    "hidden": np.array([0, 1, 1], np.uint8),
    "none": np.empty((4, 0)),
}
DAMAGED = "damaged, or not a file of firstclick"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "box.npz"
    write_arrays(path, PAGE, ARRAYS)
    return path


def check_refused(path, problem=DAMAGED, expected="box 1"):
    with pytest.raises(InvalidInput, match=rf"^{re.escape(str(path))}.*{re.escape(problem)}"):
        read_arrays(path, expected)


def test_file_is_read_bit_for_bit_and_by_numpy_alone(path):
    page, arrays = read_arrays(path, "box 1")
    assert page == PAGE
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(arrays[name], array)
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
    with np.load(path, allow_pickle=False) as file:
        assert set(file.files) == {"page", *ARRAYS}
    write_arrays(str(path.parent / "model.v2"), PAGE, ARRAYS)
    assert sorted(os.listdir(path.parent)) == ["box.npz", "model.v2"], "names are kept as given"


def test_other_formats_missing_files_and_folders_are_refused(path, tmp_path):
    check_refused(path, "'box 2', got 'box 1'; use the version of firstclick that wrote the file", "box 2")
    check_refused(path, "'jar 1', got 'box 1'; name another file", "jar 1")
    check_refused(tmp_path / "gone.npz", "no such file")
    check_refused(tmp_path, "is a folder")


def test_foreign_files_are_refused(tmp_path):
    for content in (b"", b"PK", b"\x93NUMPY", pickle.dumps({"format": "box 1"})):
        (tmp_path / "x").write_bytes(content)
        check_refused(tmp_path / "x")
    pages = [np.frombuffer(text, np.uint8) for text in (b"[1, 2]", b"{}", b'{"format": ')]
    for arrays in ({"weights": np.ones(3)}, *({"page": page} for page in (np.ones(3), *pages))):
        np.savez(tmp_path / "x.npz", **arrays)
        check_refused(tmp_path / "x.npz")
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    check_refused(tmp_path / "x.npy")


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_pickle_inside_is_refused_and_never_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.load(path) as file:
        good = dict(file)
    np.savez(path, **good, bomb=np.array([Bomb()], object))
    check_refused(path)
    assert not Path("exploded").exists()


def test_damaged_files_are_refused_or_read_as_written(path):
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        check_refused(path)
    noticed = 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            page, arrays = read_arrays(path, "box 1")
        except InvalidInput:
            noticed += 1
        else:  # Times and flags of the archive mean nothing to us.
            assert page == PAGE
            assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in arrays)
    assert noticed > len(whole) / 3 / 2


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "box").mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for name, reason in (
        ("missing/box.npz", "No such file or directory"),
        ("box", "Is a directory"),
        ("one", "Too many levels of symbolic links"),
    ):
        with pytest.raises((InvalidInput, WorkFailed)) as caught:
            write_arrays(tmp_path / name, PAGE, ARRAYS)
        assert str(caught.value) == f"{tmp_path / name} cannot be written: {reason}"
    assert sorted(os.listdir(tmp_path)) == ["box", "one", "two"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_failed_write_keeps_the_previous_file(path, monkeypatch, call, error):
    def fail(*_):
        raise error

    older = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(*{"fsync": (os, "fsync", fail), "replace": (Path, "replace", fail)}[call])
        with pytest.raises((WorkFailed, KeyboardInterrupt)) as caught:
            write_arrays(path, {**PAGE, "k": 4}, ARRAYS)
    if isinstance(error, OSError):
        assert str(caught.value) == f"{path} cannot be written: No space left on device"
    assert path.read_bytes() == older
    assert os.listdir(path.parent) == ["box.npz"]


def test_content_that_cannot_be_written_keeps_the_previous_file(path):
    older = path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_arrays(path, {"format": "box 1", "c": float("nan")}, ARRAYS)

    def pieces():
        yield b"a" * 100_000
        raise WorkFailed("no more pieces")

    with pytest.raises(WorkFailed, match="no more pieces"):
        write_whole(path, pieces())
    assert path.read_bytes() == older
    assert os.listdir(path.parent) == ["box.npz"]
    write_whole(path, (b"piece %d," % number for number in range(3)))
    assert path.read_bytes() == b"piece 0,piece 1,piece 2,"


def test_content_is_on_the_disk_before_it_replaces_the_previous_file(path, monkeypatch):
    calls = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (calls.append("sync"), sync(number)))
    monkeypatch.setattr(Path, "replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    write_arrays(path, PAGE, ARRAYS)
    assert calls == ["sync", "replace", "sync"][: 3 if os.name == "posix" else 2]


PAUSED = """
import os, sys
from firstclick.files.writing import write_whole
sync = os.fsync

def pause(number):
    print("draft written", flush=True)
    sys.stdin.readline()
    os.fsync = sync
    sync(number)

os.fsync = pause
write_whole(sys.argv[1], b"theirs")
"""


@contextmanager
def another_writer(path):
    """A process that has written a draft of the file, and waits there for a line on stdin."""
    command = [sys.executable, "-c", PAUSED, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b"draft written\n"
            yield writer
        finally:
            writer.kill()


def test_damaged_compressed_file_is_refused(path):
    with np.load(path) as file:
        np.savez_compressed(path, **file)
    whole = bytearray(path.read_bytes())
    start = whole.index(b"page.npy") + 20
    whole[start : start + 60] = b"\xff" * 60
    path.write_bytes(whole)
    check_refused(path)


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    failures = []

    def save(number):
        try:
            for _ in range(20):
                write_whole(tmp_path / "shared", bytes([number]) * 10_000)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    content = (tmp_path / "shared").read_bytes()
    assert (len(content), len(set(content))) == (10_000, 1), "two writers got into one file"
    assert os.listdir(tmp_path) == ["shared"]


@posix
def test_drafts_of_killed_writers_are_removed_by_the_next_one(tmp_path, monkeypatch):
    for _ in range(2):
        with another_writer(tmp_path / "box") as writer:
            writer.kill()
        assert os.listdir(tmp_path), "it left nothing behind"

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:  # Where nothing can be locked, a writer may be alive.
        patch.setattr(fcntl, "flock", no_locks)
        write_whole(tmp_path / "box", b"ours")
    assert len(os.listdir(tmp_path)) == 2
    assert (tmp_path / "box").read_bytes() == b"ours"
    write_whole(tmp_path / "box", b"again")
    assert os.listdir(tmp_path) == ["box"]


@posix
def test_draft_of_a_writer_that_lives_is_left_to_it(tmp_path):
    with another_writer(tmp_path / "box") as writer:
        write_whole(tmp_path / "box", b"ours")
        assert len(os.listdir(tmp_path)) == 2
        assert (tmp_path / "box").read_bytes() == b"ours"
        writer.stdin.write(b"\n")
        writer.stdin.close()
        assert writer.wait(30) == 0
    assert (tmp_path / "box").read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["box"]


@posix
def test_writer_whose_draft_is_removed_before_it_is_locked_makes_another(tmp_path, monkeypatch):
    locked, lock = [], fcntl.flock

    def slow(descriptor, operation):
        if not locked:
            for name in os.listdir(tmp_path):
                (tmp_path / name).unlink()
        locked.append(descriptor)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    write_whole(tmp_path / "box", b"ours")
    assert (tmp_path / "box").read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["box"]


def test_files_that_only_look_like_drafts_are_left_alone(tmp_path):
    others = [".box.part", ".box.2.abcdefgh.part", ".boxes.abcdefgh.part", "box.abcdefgh.part"]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / ".box.abcdefgh.part").mkdir()
    write_whole(tmp_path / "box", b"ours")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, ".box.abcdefgh.part", "box"])


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_permissions_are_kept_or_those_of_the_umask(path, tmp_path):
    for mode in (0o600, 0o640, 0o666, 0o444):
        path.chmod(mode)
        write_arrays(path, PAGE, ARRAYS)
        assert mode_of(path) == mode
    for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(mask)
        try:
            write_whole(tmp_path / f"new {mask}", b"ours")
        finally:
            os.umask(before)
        assert mode_of(tmp_path / f"new {mask}") == mode


@posix
def test_draft_of_a_private_file_is_private(path, monkeypatch):
    path.chmod(0o600)
    modes = []
    monkeypatch.setattr(os, "fsync", lambda _: modes.extend(map(mode_of, path.parent.glob(".*.part"))))
    write_arrays(path, PAGE, ARRAYS)
    assert modes == [0o600]


@posix
@pytest.mark.parametrize("there", [True, False])
def test_target_of_a_symbolic_link_is_written_and_the_link_stays(tmp_path, there):
    (tmp_path / "shelf").mkdir()
    real, link = tmp_path / "shelf" / "box", tmp_path / "link"
    if there:
        real.write_bytes(b"older")
        real.chmod(0o640)
    (tmp_path / "middle").symlink_to(real)
    link.symlink_to("middle")
    write_whole(link, b"ours")
    assert link.is_symlink()
    assert real.read_bytes() == b"ours"
    assert mode_of(real) == 0o640 or not there
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["box", "link", "middle", "shelf"]


@posix
def test_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    write_whole(tmp_path / "pipe", b"ours")
    assert reader.communicate(timeout=30)[0] == b"ours"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_longest_name_that_a_file_may_have_is_not_too_long(tmp_path):
    for name in ("x" * 255, "ü" * 127):
        write_whole(tmp_path / name, b"ours")
    assert sorted(map(len, os.listdir(tmp_path))) == [127, 255]


@pytest.mark.parametrize(
    "path", [None, 3, 2.5, b"box", "", "a\0b", "\ud800", ["box"], 10**5000], ids=short_id
)
def test_values_that_are_not_paths_are_refused(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for use in (lambda: write_whole(path, b"ours"), lambda: read_arrays(path, "box 1")):
        with pytest.raises(InvalidInput, match=r"^path must be a text that is not empty, or a Path, got "):
            use()
    assert os.listdir(tmp_path) == []
