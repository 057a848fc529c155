"""A log of your own: a text or Parquet file with a column of users and a column of items."""

from pathlib import Path

from firstclick.data.cut import cut
from firstclick.data.interactions import Interactions
from firstclick.data.logs import read_interactions
from firstclick.data.sources.source import Progress, Source, silent
from firstclick.errors import InvalidInput
from firstclick.files.reading import reading
from firstclick.parameters import param

COLUMNS = ("user", "item", "value", "item_name", "item_group")


class Table(Source):
    """Your own log, one user and item per row: CSV, TSV or `::` text (also as .gz), or Parquet.

    Give a column by name or by number, from 0. With a name, line 1 of a text file is a header. A row counts
    as attracted if its value is above `above` (0 by default), or always without a value column. An item may
    have several groups, separated by '|'; its name and groups are those of the first row that has any. Rows
    that cannot be used (blank, too short, without a user, an item or a number) are skipped and counted. If
    there are fewer users or items than `top_users` and `top_items`, all are kept.
    """

    name = "table"
    title = "Your own data"
    user: str = param("0", "column of users")
    item: str = param("1", "column of items")
    value: str | None = param(None, "column of a value, such as a rating", kind=str)
    above: float | None = param(None, "a row attracts if its value is above this", kind=float)
    item_name: str | None = param(None, "column of what people call the item", kind=str)
    item_group: str | None = param(None, "column of the item's groups", kind=str)
    top_users: int | None = param(None, "keep the users with most rows, so many", kind=int, at_least=1)
    top_items: int | None = param(None, "keep the items with most rows, so many", kind=int, at_least=1)
    separator: str | None = param(None, "separator of columns, if not found by itself", kind=str)
    encoding: str = param("utf-8-sig", "encoding of a text file")
    strict: str = param("no", "refuse blank lines and rows that cannot be used", words=("no", "yes"))

    def __post_init__(self) -> None:
        for column in COLUMNS:
            if type(given := getattr(self, column)) is int:
                object.__setattr__(self, column, str(given))
        super().__post_init__()

    def find(self, path: Path | None) -> dict[str, Path]:
        """The file itself: a log has no usual name."""
        if path is None:
            raise InvalidInput(f"{self.name} needs the path of its file: {self.wanted()}")
        with reading(path), path.open("rb"):
            return {"log": path}

    def wanted(self) -> str:
        return "a CSV, TSV or Parquet file"

    def load(self, path: Path | None, progress: Progress = silent) -> Interactions:
        read = read_interactions(
            self.find(path)["log"], user_column=self.user, item_column=self.item, value_column=self.value,
            above=self.above, name_column=self.item_name, group_column=self.item_group,
            separator=self.separator, encoding=self.encoding, strict=self.strict == "yes", progress=progress,
        )  # fmt: skip
        return cut(read, top_users=self.top_users, top_items=self.top_items)
