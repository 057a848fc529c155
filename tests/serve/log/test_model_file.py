"""The file of a model: it says what the log says, and a file that was cut or changed is refused."""

import hashlib
import tracemalloc
import zlib
from io import BytesIO

import pytest

from firstclick.errors import WorkFailed
from firstclick.serve.log.events import Event, Kind
from firstclick.serve.log.model_file import _HEAD, MAGIC, Block, ModelFile, model_file
from firstclick.wire.errors import Malformed
from tests.support.made_log import Log


@pytest.fixture(scope="module")
def events():
    return Log().eventful().events


def chunks(events, size):
    return (events[start : start + size] for start in range(0, len(events), size))


def written(events, size=30):
    first = events[0].seq
    base = b"" if first == 1 else b"what was known"
    return b"".join(model_file("shop", chunks(events, size), lambda: "d1", first=first, base=base))


def blocks_of(content):
    """The blocks, each with its checksum."""
    blocks, at = [], len(MAGIC)
    while at < len(content):
        size = _HEAD.unpack_from(content, at)[3]
        end = at + _HEAD.size + size + 32
        blocks.append(content[at:end])
        at = end
    return blocks


def sealed(blocks):
    """The file of these blocks, as somebody would make it who knows the format."""
    content, seal = MAGIC, b""
    for block in blocks:
        seal = hashlib.sha256(seal + block[:-32]).digest()
        content += block[:-32] + seal
    return content


def block(kind, raw, n_events=0, n_changes=0, size=None):
    packed = zlib.compress(raw, 1)
    size = len(raw) if size is None else size
    return _HEAD.pack(kind, n_events, n_changes, len(packed), size) + packed + bytes(32)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_exported_file_is_read_back(events, size):
    file = ModelFile(BytesIO(written(events, size)))
    assert (file.name, file.first, file.last, file.digest, file.base) == ("shop", 1, len(events), "d1", b"")
    assert [event for chunk in file.events() for event in chunk] == events
    assert file.rollbacks == [event for event in events if event.kind == Kind.ROLLED_BACK]
    for after, upto in ((0, 1), (1, None), (29, 61), (30, 30), (200, 10_000), (len(events), None)):
        for feedback in (True, False):
            found = [e for chunk in file.events(after, upto, feedback=feedback) for e in chunk]
            wanted = [e for e in events[after:upto] if feedback or e.kind != Kind.FEEDBACK]
            assert found == wanted, (after, upto, feedback)


def test_two_readers_of_one_file_are_independent(events):
    file = ModelFile(BytesIO(written(events)))
    together = zip(file.events(), file.events(), strict=True)
    assert all(one == other for one, other in together)


def test_export_of_a_part_of_a_log_has_its_base(events):
    file = ModelFile(BytesIO(written(events[99:])))
    assert (file.first, file.last, file.base) == (100, len(events), b"what was known")
    assert [event for chunk in file.events(110) for event in chunk] == events[110:]


def test_a_gap_in_the_log_is_not_written(events):
    with pytest.raises(WorkFailed, match="event 51"):
        written([*events[:50], *events[51:]])


def test_every_cut_and_every_changed_byte_is_refused(events):
    content = written(events[:60])
    for end in range(len(content)):
        with pytest.raises(Malformed, match=r"cut off|not an exported model"):
            ModelFile(BytesIO(content[:end]))
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1
        with pytest.raises(Malformed):
            ModelFile(BytesIO(changed))
    with pytest.raises(Malformed):
        ModelFile(BytesIO(content + b"\0"))


def wrong_blocks(events):
    """Lists of blocks that do not make a file, whatever their checksums are."""
    page, one, two, *others, end = blocks_of(written(events[:150]))
    yield [page, one, *others, end]
    yield [page, one, one, two, *others, end]
    yield [page, two, one, *others, end]  # begins without the creation
    yield [one, two, *others, end]
    yield [page, end]
    yield [page, one, two, *others, block(Block.END, b'{"events": 59, "digest": "d1"}')]
    yield [page, one, two, *others, block(Block.END, b"[]")]
    yield [block(Block.PAGE, b'{"name": "shop", "first": "1"}'), one, two, *others, end]
    for kind, raw, *numbers in (
        (9, b"what is this"),
        (Block.EVENTS, b"", 0),
        (Block.EVENTS, b"short", 3),
        # More is in it than it says: nothing may be unpacked that was not announced.
        (Block.EVENTS, bytes(10**6), 1, 1, 100),
        (Block.EVENTS, bytes(100), 1, 1, 2**40),
    ):
        yield [page, block(kind, raw, *numbers), one, two, *others, end]
    # A part of a log without what was known before.
    page, _, *others = blocks_of(written(events[99:]))
    yield [page, *others]


def test_missing_repeated_moved_and_made_up_blocks_are_refused(events):
    right = blocks_of(written(events[:150]))
    assert len(right) == 7
    assert ModelFile(BytesIO(sealed(right))).last == 150
    for blocks in wrong_blocks(events):
        with pytest.raises(Malformed, match="not an exported model"):
            ModelFile(BytesIO(sealed(blocks)))
    for blocks in ([*right[:3], *right[4:]], [right[0], right[-1]]):
        with pytest.raises(Malformed):
            ModelFile(BytesIO(MAGIC + b"".join(blocks)))


def test_other_format_and_rollback_to_a_later_event_are_refused(events):
    with pytest.raises(Malformed, match="has format '2', and this firstclick reads format '1'"):
        ModelFile(BytesIO(MAGIC[:-1] + b"2" + written(events)[len(MAGIC) :]))
    rollback = next(event for event in events if event.kind == Kind.ROLLED_BACK)
    with pytest.raises(Malformed, match="do not fit together"):
        ModelFile(BytesIO(written([*events[:20], rollback._replace(seq=21)])))


@pytest.mark.long
def test_writing_and_reading_hold_a_few_blocks_only(events, tmp_path):
    n_blocks, size = 150, 1000
    payload = next(e.payload for e in events if e.kind == Kind.FEEDBACK)

    def made():
        yield events[:1]
        for number in range(n_blocks):
            first = 2 + number * size
            yield [Event(first + i, 1, (first + i).to_bytes(16, "big"), payload, 1.0) for i in range(size)]

    path = tmp_path / "shop.model"
    tracemalloc.start()
    try:
        with path.open("wb") as file:
            file.writelines(model_file("shop", made(), lambda: "d1"))
        with path.open("rb") as file:
            assert sum(map(len, ModelFile(file).events())) == n_blocks * size + 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All of the events at once take some 40 MB.
    assert peak < 4_000_000
