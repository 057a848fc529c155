"""One file of arrays and a page: whole or not at all, and never a pickle."""

import errno
import io
import os
import pickle
import stat
import subprocess
import sys
import threading
import zipfile
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


def refusal(path, expected="box 1"):
    with pytest.raises(InvalidInput) as caught:
        read_arrays(path, expected)
    return str(caught.value)


def test_what_was_written_is_read_bit_for_bit(path):
    page, arrays = read_arrays(path, "box 1")
    assert page == PAGE
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert np.array_equal(arrays[name], array)
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)


def test_nothing_but_the_file_is_left_in_the_folder(path):
    assert os.listdir(path.parent) == ["box.npz"]


def test_the_name_is_kept_as_given_and_a_text_is_a_path(tmp_path):
    write_arrays(str(tmp_path / "model.v2"), PAGE, ARRAYS)
    assert os.listdir(tmp_path) == ["model.v2"]


@pytest.mark.parametrize(
    ("expected", "way_out"),
    [("box 2", "use the version of firstclick that wrote the file"), ("jar 1", "name another file")],
)
def test_another_format_is_refused_with_both_names_and_a_way_out(path, expected, way_out):
    assert refusal(path, expected) == f"{path}: its format must be {expected!r}, got 'box 1'; {way_out}"


def test_a_missing_file_and_a_folder_are_refused_in_one_sentence(tmp_path):
    assert refusal(tmp_path / "gone.npz") == f"{tmp_path / 'gone.npz'}: no such file"
    assert refusal(tmp_path) == f"{tmp_path} is a folder; name a file in it"


@pytest.mark.parametrize("content", [b"", b"PK", b"hello\n", b"\x93NUMPY", pickle.dumps({"format": "box 1"})])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    assert refusal(tmp_path / "x") == f"{tmp_path / 'x'}: {DAMAGED}"


@pytest.mark.parametrize(
    "arrays",
    [
        {"weights": np.ones(3)},
        {"page": np.ones(3)},
        {"page": np.frombuffer(b"[1, 2]", np.uint8)},
        {"page": np.frombuffer(b"{}", np.uint8)},
        {"page": np.frombuffer(b'{"format": ', np.uint8)},
    ],
)
def test_an_npz_of_somebody_else_is_refused(tmp_path, arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    assert refusal(tmp_path / "x.npz") == f"{tmp_path / 'x.npz'}: {DAMAGED}"


def test_a_plain_npy_file_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    assert refusal(tmp_path / "x.npy").endswith(DAMAGED)


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_a_pickle_inside_is_refused_and_never_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.load(path) as file:
        good = dict(file)
    np.savez(path, **good, bomb=np.array([Bomb()], object))
    assert refusal(path) == f"{path}: {DAMAGED}"
    assert not Path("exploded").exists()


def test_a_file_cut_off_anywhere_is_refused(path):
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        assert refusal(path) == f"{path}: {DAMAGED}"


def test_a_flipped_byte_is_refused_or_changes_nothing(path):
    whole = path.read_bytes()
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


def test_a_damaged_compressed_file_is_refused(path):
    with np.load(path) as file:
        np.savez_compressed(path, **file)
    whole = bytearray(path.read_bytes())
    start = whole.index(b"page.npy") + 20
    whole[start : start + 60] = b"\xff" * 60
    path.write_bytes(whole)
    assert refusal(path).endswith(DAMAGED)


def test_a_folder_that_does_not_exist_is_named_in_one_sentence(tmp_path):
    target = tmp_path / "missing" / "box.npz"
    with pytest.raises(InvalidInput) as caught:
        write_arrays(target, PAGE, ARRAYS)
    assert str(caught.value) == f"{target} cannot be written: No such file or directory"


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "box").mkdir()
    with pytest.raises(InvalidInput, match="cannot be written: Is a directory"):
        write_arrays(tmp_path / "box", PAGE, ARRAYS)
    assert os.listdir(tmp_path) == ["box"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_whatever_goes_wrong_while_writing_leaves_the_older_file_whole(path, monkeypatch, call, error):
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


def test_the_content_is_on_the_disk_before_it_takes_the_place_of_the_older(path, monkeypatch):
    calls = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (calls.append("sync"), sync(number)))
    monkeypatch.setattr(Path, "replace", lambda *paths: (calls.append("replace"), replace(*paths)))
    write_arrays(path, PAGE, ARRAYS)
    assert calls == ["sync", "replace", "sync"][: 3 if os.name == "posix" else 2]


def test_a_page_that_json_cannot_hold_is_not_written(path):
    older = path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_arrays(path, {"format": "box 1", "c": float("nan")}, ARRAYS)
    assert path.read_bytes() == older


def test_the_file_can_be_opened_with_numpy_alone(path):
    assert zipfile.is_zipfile(io.BytesIO(path.read_bytes()))
    with np.load(path, allow_pickle=False) as file:
        assert set(file.files) == {"page", *ARRAYS}


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
    assert len(content) == 10_000
    assert len(set(content)) == 1, "two writers got into one file"
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]


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
    """A process that has written a draft of the file, and stops there until it is told to go on."""
    command = [sys.executable, "-c", PAUSED, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b"draft written\n"
            yield writer
        finally:
            writer.kill()


@posix
def test_drafts_of_killed_writers_are_removed_by_the_next_one(tmp_path):
    for _ in range(2):
        with another_writer(tmp_path / "box") as writer:
            writer.kill()
        assert os.listdir(tmp_path), "it left nothing behind"
    write_whole(tmp_path / "box", b"ours")
    assert os.listdir(tmp_path) == ["box"]


@posix
def test_the_draft_of_a_writer_that_lives_is_left_to_it(tmp_path):
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
def test_a_writer_whose_draft_is_taken_away_before_it_is_locked_makes_another(tmp_path, monkeypatch):
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


@posix
def test_where_nothing_can_be_locked_no_draft_is_removed(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    with another_writer(tmp_path / "box") as writer:
        writer.kill()
    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_whole(tmp_path / "box", b"ours")
    assert len(os.listdir(tmp_path)) == 2
    assert (tmp_path / "box").read_bytes() == b"ours"


def test_files_that_only_look_like_drafts_are_left_alone(tmp_path):
    others = [
        ".box.part",
        ".box.2.abcdefgh.part",
        ".box.tar.part",
        ".boxes.abcdefgh.part",
        "box.abcdefgh.part",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / ".box.abcdefgh.part").mkdir()
    write_whole(tmp_path / "box", b"ours")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, ".box.abcdefgh.part", "box"])


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_an_older_file_keeps_its_permissions(path, mode):
    path.chmod(mode)
    write_arrays(path, PAGE, ARRAYS)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "box", b"ours")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "box").stat().st_mode) == mode


@posix
def test_nobody_else_can_read_the_draft_of_a_private_file(path, monkeypatch):
    path.chmod(0o600)
    seen, sync = [], os.fsync

    def look(number):
        seen.append([stat.S_IMODE(one.stat().st_mode) for one in path.parent.glob(".*.part")])
        sync(number)

    monkeypatch.setattr(os, "fsync", look)
    write_arrays(path, PAGE, ARRAYS)
    assert seen[0] == [0o600]


@posix
@pytest.mark.parametrize("there", [True, False])
def test_what_a_symbolic_link_points_to_is_written_and_the_link_stays(tmp_path, there):
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
    assert stat.S_IMODE(real.stat().st_mode) == 0o640 or not there
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["box", "link", "middle", "shelf"]


@posix
def test_links_that_go_round_in_a_circle_are_named(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(WorkFailed, match="one cannot be written: Too many levels of symbolic links"):
        write_whole(tmp_path / "one", b"ours")


@posix
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    write_whole(tmp_path / "pipe", b"ours")
    assert reader.communicate(timeout=30)[0] == b"ours"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_longest_name_that_a_file_may_have_is_not_too_long(tmp_path):
    for name in ("x" * 255, "ü" * 127):
        write_whole(tmp_path / name, b"ours")
    assert sorted(map(len, os.listdir(tmp_path))) == [127, 255]


@pytest.mark.parametrize(
    "path", [None, 3, 2.5, b"box", "", "a\0b", "\ud800", ["box"], 10**5000], ids=short_id
)
@pytest.mark.parametrize(
    "use", [lambda path: write_whole(path, b"ours"), lambda path: read_arrays(path, "box 1")]
)
def test_what_is_no_path_is_refused(tmp_path, monkeypatch, use, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"^a path must be a text that is not empty, or a Path, got "):
        use(path)
    assert os.listdir(tmp_path) == []


def test_content_in_pieces_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "box"
    write_whole(path, (b"piece %d," % number for number in range(3)))
    assert path.read_bytes() == b"piece 0,piece 1,piece 2,"

    def broken():
        yield b"a" * 100_000
        raise WorkFailed("no more pieces")

    with pytest.raises(WorkFailed, match="no more pieces"):
        write_whole(path, broken())
    assert path.read_bytes() == b"piece 0,piece 1,piece 2,"
    assert [one.name for one in tmp_path.iterdir()] == ["box"], "no draft is left"
