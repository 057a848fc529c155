"""`firstclick evaluate propensities`: how likely every slate of a log was."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Option

from firstclick.cli.console import page, print_json, talk
from firstclick.cli.options import count, number, processes
from firstclick.cli.progress_bar import progress_bar
from firstclick.cli.stores import (
    OWN_STORE,
    ArchiveOption,
    ModelArgument,
    StoreOption,
    find_model,
    log_of,
    opened,
    refuse_existing,
)
from firstclick.errors import InvalidInput
from firstclick.files.parquet import write_parquet

if TYPE_CHECKING:
    from firstclick.evaluation.logged_propensities import LoggedPropensities


def propensities(
    model: ModelArgument,
    out: Annotated[Path, Option("--out", metavar="FILE", help="Parquet file to write.")],
    store: StoreOption = OWN_STORE,
    archive: ArchiveOption = None,
    relative_error: Annotated[
        float, number("Relative standard error of probabilities that are not exact.", "--relative-error")
    ] = 0.05,
    last: Annotated[int, count("Only the last N slates.")] = 0,
    seed: Annotated[int, count("Seed of what is drawn for Monte Carlo and redraws.")] = 0,
    jobs: Annotated[int, count("Threads; 0 for all processors.")] = 0,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace an existing file.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute the probability of each slate of a model's log, prefix by prefix, and write a Parquet file.

    The log is replayed, and each slate is judged by what the policy knew when it was drawn, with the same
    request, exploration, baseline and trial. The file is a log for `firstclick evaluate run`. Slates whose
    probability is unknown are in it too, with the reason. Works while a server is running.

    \b
    Examples:
      firstclick evaluate propensities shop --store shop.db --out slates.parquet
      firstclick evaluate propensities shop --store shop.db --last 5000 \\
        --relative-error 0.02 --out a.parquet
    """
    from firstclick.evaluation.logged_propensities import COLUMNS, logged_propensities, table_rows

    if out.suffix != ".parquet":
        raise InvalidInput(f"--out {out} must end in .parquet")
    refuse_existing(out, overwrite=overwrite)
    with opened(store) as there, progress_bar(every=60.0) as progress:
        stored = find_model(there, model)
        with log_of(there, stored, archive) as whole:
            found = logged_propensities(
                whole, stored, relative_error=relative_error, last=last, jobs=processes(jobs), seed=seed,
                progress=progress.doing(f"propensities of {model}"),
            )  # fmt: skip
    write_parquet(out, COLUMNS, table_rows(found))
    summary = _summary(model, found)
    if json:
        print_json(summary | {"out": str(out)})
        return
    table = page()
    for line in _in_words(summary):
        table.print(line)
    talk.print(f"{out} is written")


def _summary(model: str, found: "LoggedPropensities") -> dict[str, Any]:
    errors, reasons = found.relative_errors(), found.reasons()
    known = [one.propensity for one in found.slates if one.propensity is not None]
    k = max((len(one.chances) for one in known), default=0)
    medians = [float(np.median([one.chances[j] for one in known if len(one.chances) > j])) for j in range(k)]
    return {
        "model": model,
        "slates": len(found.slates),
        "evaluable": len(known),
        "methods": dict(sorted(found.methods().items())),
        "not_evaluable": dict(sorted(reasons.items())),
        "given_arm": sum(one.given_arm and one.propensity is not None for one in found.slates),
        "other_build": sum(not one.same_build for one in found.slates if one.propensity is not None),
        "not_drawn_again": sum(not one.drawn_again for one in found.slates if one.propensity is not None),
        "median_propensities": medians,
        "median_relative_error": float(np.median(errors)) if len(errors) else 0.0,
        "worst_relative_error": float(errors.max(initial=0.0)),
        "draws": sum(one.draws for one in known),
        "seconds": found.seconds,
    }


def _in_words(told: dict[str, Any]) -> list[str]:
    lines = [
        f"{told['model']}: {told['slates']:,} slates, {told['evaluable']:,} with probabilities, in "
        f"{told['seconds']:.1f} s"
    ]
    for method, n in told["methods"].items():
        more = ""
        if method in ("monte carlo", "redrawn"):
            more = (
                f"; relative standard error: median {told['median_relative_error']:.1%}, worst "
                f"{told['worst_relative_error']:.1%}"
            )
        lines.append(f"  {method}: {n:,}{more}")
    if told["median_propensities"]:
        shown = ", ".join(f"{median:.3g}" for median in told["median_propensities"])
        lines.append(f"  median probability of the first 1, 2, ... items: {shown}")
    if told["given_arm"]:
        lines.append(f"  {told['given_arm']:,} are probabilities within their arm of a trial")
    if told["not_drawn_again"]:
        lines.append(
            f"  {told['not_drawn_again']:,} were drawn by another build, and come out otherwise here: their "
            "probabilities are near, not exact"
        )
    lines += [f"  not evaluable: {n:,} {reason}" for reason, n in told["not_evaluable"].items()]
    return lines
