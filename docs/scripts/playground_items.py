"""The items of the playground: those of `firstclick serve --demo`, with the features of the file."""

import csv
import json
from pathlib import Path

CAFE = Path(__file__).parents[2] / "src" / "firstclick" / "serve" / "cafe.csv"
WORDS = ("id", "name", "group")


def cafe_items() -> list[dict[str, object]]:
    """Name, group and features of each item."""
    with CAFE.open(encoding="utf-8", newline="") as file:
        return [
            {
                "name": row["name"],
                "group": row["group"],
                "features": [float(value) for column, value in row.items() if column not in WORDS],
            }
            for row in csv.DictReader(file)
        ]


def items_script() -> str:
    """The items as a script: a page that is opened from a folder cannot read other files."""
    lines = ",\n".join(f"  {json.dumps(item, ensure_ascii=False)}" for item in cafe_items())
    return f"// Written by docs/scripts/generate.py from serve/cafe.csv.\nconst ITEMS = [\n{lines},\n];\n"
