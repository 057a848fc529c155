"""`firstclick features`: from a log of who liked what to a catalog with learned features."""

import shlex
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from firstclick.cli import interaction_file
from firstclick.cli.console import print_json, talk
from firstclick.cli.data import chosen_source
from firstclick.cli.experiments import SECONDS_BETWEEN_LINES
from firstclick.cli.options import given
from firstclick.cli.progress_bar import progress_bar
from firstclick.cli.stores import refuse_existing
from firstclick.data import Interactions, feedback_matrix, most_attractive, read_interactions, truncated_svd
from firstclick.data.rows_to_interactions import GROUP_SEPARATOR
from firstclick.data.sources import Progress
from firstclick.errors import InvalidInput
from firstclick.files.reading import PARQUET
from firstclick.files.table import read_table
from firstclick.validation.whole_number import whole_number


def features(
    out: Annotated[
        Path, Option(metavar="FILE", help="Catalog to write: .csv or .parquet.", show_default=False)
    ],
    source: Annotated[
        str | None,
        Argument(metavar="[SOURCE]", help="NAME[:param=value,...], see `firstclick data sources`."),
    ] = None,
    data: Annotated[
        Path | None, Option("--data", metavar="PATH", help="Folder or file of SOURCE; none for made-up data.")
    ] = None,
    interactions: Annotated[
        Path | None,
        Option(metavar="FILE", help="Instead of SOURCE: user, item[, value], as CSV, TSV, '::' or Parquet."),
    ] = None,
    user_column: interaction_file.UserColumn = None,
    item_column: interaction_file.ItemColumn = None,
    value_column: interaction_file.ValueColumn = None,
    above: interaction_file.Above = None,
    name_column: Annotated[
        str | None, Option(metavar="COLUMN", help="Column of item names, for people.")
    ] = None,
    group_column: Annotated[
        str | None, Option(metavar="COLUMN", help="Column of item groups; '|' separates several.")
    ] = None,
    separator: interaction_file.Separator = None,
    header: interaction_file.Header = False,
    encoding: interaction_file.Encoding = None,
    strict: interaction_file.Strict = False,
    catalog_file: Annotated[
        Path | None,
        Option(
            "--catalog", metavar="FILE", help="Catalog of all items; prints how many the log does not have."
        ),
    ] = None,
    rank: interaction_file.Rank = None,
    n_items: interaction_file.Items = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace an existing file.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON instead of a sentence.")] = False,
) -> None:
    """Compute item features from who liked what, and write a catalog for `firstclick serve`.

    Features are the rows of V Sigma of a truncated SVD of users x items: items that the same people like get
    similar features. The catalog has the columns id, name, group, f1, f2, ..., the most attractive item
    first.

    \b
    From a file of your own:
      firstclick features --interactions ratings.csv --user-column customer \\
        --item-column film --value-column stars --above 3 --out films.csv
      firstclick serve --catalog films.csv

    \b
    From any source of data:
      firstclick features movielens --data data/ml-1m --items 500 \\
        --out films.parquet

    \b
    Count the items of your catalog that the log does not have:
      firstclick features --interactions clicks.csv --catalog items.csv \\
        --out features.csv
    """
    # Imported late: of the service only this is needed, and only here.
    from firstclick.catalog.file import write_catalog
    from firstclick.catalog.item import Item

    columns = given(
        user_column=user_column, item_column=item_column, value_column=value_column, above=above,
        name_column=name_column, group_column=group_column, separator=separator, header=header,
        encoding=encoding, strict=strict,
    )  # fmt: skip
    load, label = _loader(source, data, interactions, columns)
    for name, value in given(rank=rank, n_items=n_items).items():
        whole_number(name, value, at_least=1)
    _check_target(out, overwrite=overwrite)
    all_items = set() if catalog_file is None else _ids_of(catalog_file)
    with progress_bar(every=SECONDS_BETWEEN_LINES) as progress:
        read = load(progress.doing("reading"))
        if not read.attracted.any():
            raise InvalidInput(
                f"{label}: nothing attracts anybody, so nothing can be learned; lower the bound on values"
            )
        matrix = feedback_matrix(read)
        n_users, in_data = matrix.shape
        if n_items is not None:
            whole_number("n_items", n_items, at_least=1, at_most=in_data, because=", the items in the data")
        progress.doing("learning features")(0, 0)
        rows = truncated_svd(
            matrix, min(interaction_file.DEFAULT_RANK, n_users, in_data) if rank is None else rank
        )
        names, groups = read.item_names or ("",) * in_data, read.item_groups or ((),) * in_data
        catalog = [
            Item(read.item_ids[code], names[code], GROUP_SEPARATOR.join(groups[code]), rows[code])
            for code in most_attractive(matrix, n_items or in_data).tolist()
        ]
        write_catalog(out, catalog, [f"f{j + 1}" for j in range(rows.shape[1])])
    if interactions is not None:
        talk.print(interaction_file.notes_on(label, read, columns), end="")
    else:
        talk.print(interaction_file.note_of_skipped(label, read), end="")
    known = set(read.item_ids)
    # The ones of a matrix are the sum of its squares, and that of all singular values squared.
    explained = float((rows**2).sum()) / matrix.nnz
    if json:
        print_json(
            {
                "catalog": str(out), "data": label, "users": n_users, "items_in_data": in_data,
                "items": len(catalog), "features": rows.shape[1], "explained": round(explained, 6),
            }
            | ({} if catalog_file is None else {"not_in_log": len(all_items - known), "of": len(all_items)})
        )  # fmt: skip
    else:
        print(
            f"{out}: {len(catalog):,} of {in_data:,} items with {rows.shape[1]} features, which explain "
            f"{explained:.0%} of what {n_users:,} users liked"
        )
        if catalog_file is not None:
            print(
                f"{catalog_file}: {len(all_items - known):,} of {len(all_items):,} items are not in the log "
                "and get no features"
            )
    talk.print(f"serve it: firstclick serve --catalog {shlex.quote(str(out))}")


def _ids_of(path: Path) -> set[str]:
    """The ids in a catalog, as texts."""
    table = read_table(path)
    for name, column in zip(table.names, table.columns, strict=True):
        if name.casefold() == "id":
            return {str(cell).strip() for cell in column.tolist() if cell is not None}
    raise InvalidInput(f"{path.name} has no column 'id'; call the column of item ids so", "catalog_file")


def _loader(
    source: str | None, data: Path | None, interactions: Path | None, columns: Mapping[str, Any]
) -> tuple[Callable[[Progress], Interactions], str]:
    """What reads the log, and how to call it."""
    if (source is None) == (interactions is None):
        raise InvalidInput("give a SOURCE of data or --interactions FILE, one of them; --help has examples")
    if interactions is not None:
        if data is not None:
            raise InvalidInput("--data goes with a SOURCE; --interactions names its file itself")
        file = interactions
        return lambda progress: read_interactions(file, **columns, progress=progress), file.name
    if columns:
        raise InvalidInput("goes with --interactions", next(iter(columns)))
    assert source is not None
    chosen = chosen_source(source, data)
    return lambda progress: chosen.load(data, progress), chosen.label


def _check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that is there already, or cannot be written, before any work is done."""
    if path.suffix not in (".csv", *PARQUET):
        raise InvalidInput(f"--out must end in .csv or .parquet, got {str(path)!r}")
    refuse_existing(path, overwrite=overwrite)
    try:
        # Tried, because permissions alone do not tell.
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise InvalidInput(f"--out {path} cannot be written: {error.strerror or error}") from None
