"""Write schema-<n>.sql: a store as this version makes it, for later versions to open. Never made anew later.

Run from the top of the repository: python tests/serve/databases/dump.py
"""

import sqlite3
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from made_log import Log  # noqa: E402

from firstclick.serve.events import NewEvent  # noqa: E402
from firstclick.serve.store import migrations, open_store  # noqa: E402


def main() -> None:
    """One model with every kind of event, keys and a snapshot that is only a cache."""
    log = Log("cascade-lin-ts")
    log.eventful()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        store = open_store(path)
        model = store.create("shop", [NewEvent(*event[1:]) for event in log.events])
        store.save_snapshot(model.id, model.head, b"no snapshot of any version")
        store.add_token_key(b"k" * 32, 1_700_000_000.5)
        store.add_api_key("dashboard", "read", b"h" * 32, 1_700_000_001.5)
        store.close()
        connection = sqlite3.connect(path)
        text = "\n".join(connection.iterdump())
        connection.close()
    name = HERE / f"schema-{len(migrations.SQLITE_STEPS)}.sql"
    if name.exists():
        raise SystemExit(f"{name.name} was released and stays as it is")
    name.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
