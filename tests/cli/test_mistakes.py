"""A wrong call ends with exit code 2 and one sentence on stderr, and nothing is written.

mistakes/*.txt has a line for each, `command -> sentence`. `pytest --update-messages` writes the sentences
again, for a reviewer to read as a diff; a new mistake is a line that ends in ` -> `.
"""

import json
import os
import shlex
from pathlib import Path

import numpy as np
import pytest

from firstclick.serve import Item, open_service
from tests.cli.conftest import write_fit, write_movielens, write_ratings

MISTAKES = sorted(Path(__file__).with_name("mistakes").glob("*.txt"))
PLAY = ("--steps", "10", "--runs", "1", "--jobs", "1")
# Should one of these be accepted after all, it does not play for minutes.
SHORT = dict.fromkeys(("simulate", "compare", "demo", "reproduce"), PLAY)
# What may precede the sentence.
NOTES = ("note: ", "starting (")
FILES = {
    "empty.csv": "",
    "blank.csv": "1,2\n\n3,4\n",
    "ragged.csv": "user,item\n1,2\n3,4\n5,6,7\n",
    "solo.csv": "1,2\n1,3\n",
    "sku.csv": "sku\n1\n",
    "twins.csv": "shop,f\na,1\na,2\n",
    "names.csv": "name,x\na,1\n",
    "flag.csv": "items,click\na|b|c,0\nb|c|a,1\n",
    "clicks.csv": "ranking,pos,who\ntea|milk|jam,1,q1\nmilk|tea|jam,3,q2\n",
    "bare.jsonl": '{"items": ["a", "b"], "clicks": [0]}\n',
    "counts.csv": "segment,item,position,impressions,clicks\nall,tea,1,900,450\n",
    "items.csv": "id,name,group,sweet,hot\ntea,Tea,drinks,0.1,1\nbun,Bun,bakes,0.9,0.2\n",
    "products.csv": "sku,price,brand\n" + "".join(f"A{i},{i + 1},{'AB'[i % 2]}cme\n" for i in range(30)),
    "theirs/thesis.tex": "years of work",
    "mixed/results.json": "{}",
    "mixed/thesis.tex": "years of work",
    "old.db": "older",
    "open.db-wal": "",
    "experiment.toml": 'data = "table:user=who,item=what"\npolicies = ["random"]\npath = "gone.csv"\n',
    "no_data.toml": 'data = "table:user=who,item=what"\npolicies = ["random"]\n',
}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    """Every file that is named in mistakes/*.txt."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name in ("theirs", "mixed", "sub", "folder.csv"):
        (folder / name).mkdir()
    for name, content in FILES.items():
        (folder / name).write_text(content)
    write_ratings(folder)
    write_movielens(folder / "ml-1m")
    features = np.random.default_rng(3).random((16, 2))
    np.save(folder / "short.npy", features[:5])
    features[4, 1] = np.nan
    np.save(folder / "nan.npy", features)
    np.savetxt(folder / "nan.csv", features, delimiter=",", fmt="%.3g")
    (folder / "latin.csv").write_bytes("1,café\n2,thé\n".encode("iso-8859-1"))
    (folder / "garbage.bin").write_bytes(bytes(range(256)))
    (folder / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    rows = [{"items": ["tea", "bun"], "clicks": [n % 2], "propensities": [0.5, 0.5]} for n in range(50)]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open_service(str(folder / "shop.db")) as service:
        items = [Item("tea"), Item("bun"), Item(7), Item("pie")]
        service.create("shop", policy="cascade-ts", k=2, items=items, seed=4, baseline=["pie", 7])
        service.feedback("shop", service.recommend("shop"), click=0)
        service.create("new", policy="cascade-ts", k=2, items=items, seed=4)
    (folder / "link.db").symlink_to("shop.db")
    write_fit(folder)
    return folder


@pytest.mark.parametrize("file", MISTAKES, ids=lambda file: file.stem)
def test_mistakes_are_one_sentence(run, mistaken, monkeypatch, pytestconfig, file):
    monkeypatch.chdir(mistaken)
    monkeypatch.delenv("FIRSTCLICK_DATA", raising=False)
    lines, problems, before = [], [], contents(mistaken)
    for line in file.read_text(encoding="utf-8").splitlines():
        command = line.partition(" ->")[0]
        name, *words = shlex.split(command)
        seen = run(name, *SHORT.get(name, ()), *words)
        *notes, sentence = seen.err.splitlines() or [""]
        lines.append(f"{command} -> {sentence.removeprefix('error: ')}")
        well_formed = sentence.startswith("error: ") and len(sentence) < 400
        noted = all(note.startswith(NOTES) for note in notes)
        if (seen.code, seen.out, well_formed, noted) != (2, "", True, True):
            problems.append((command, seen))
        if contents(mistaken) != before:
            problems.append((command, "something was written"))
    text = "".join(f"{line}\n" for line in lines)
    if pytestconfig.getoption("update_messages"):
        file.write_text(text, encoding="utf-8")
    assert not problems
    assert text == file.read_text(encoding="utf-8")


def contents(folder):
    """Each file and its bytes, without those that SQLite keeps while it reads."""
    paths = (path for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm")))
    return sorted((os.fspath(path), path.is_file() and path.read_bytes()) for path in paths)
