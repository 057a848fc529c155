import pytest

from firstclick.data.sources import lines as lines_module
from firstclick.data.sources.lines import Lines
from firstclick.errors import InvalidInput


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "_BLOCK", 10)
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 100)
    path = tmp_path / "long.json"
    path.write_text("ok\n" + "x" * 1000)
    read = []
    blocks = Lines(path, read.append).blocks()
    assert next(blocks) == (1, [b"ok"])
    with pytest.raises(InvalidInput, match=r"long\.json line 2: longer than 100 bytes"):
        next(blocks)
    assert sum(read) < 200


def test_lines_are_counted_through_blocks(tmp_path, monkeypatch):
    path = tmp_path / "many.txt"
    texts = [f"line {number}" * (number % 4) for number in range(1, 200)]
    path.write_text("\n".join(texts) + "\n")
    for size in (1, 13, 64, 1 << 18):
        monkeypatch.setattr(lines_module, "_BLOCK", size)
        assert list(Lines(path)) == list(enumerate(texts, 1))
