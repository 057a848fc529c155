"""The position-based model of 60 Yandex queries, beside the parameters that others fitted to them.

    python -m benchmarks.yandex_pbm --data FOLDER

FOLDER has counts.csv (query, url, pos, Impression, Click) and pbm_parameters.json ({query: {"thetas": [...],
"kappas": [...]}}, thetas in the numeric order of urls). Each query is fitted by itself, as theirs were. What
is compared are products of attraction and examination where a url had more than 1,000 impressions at a
position, and both with the click rate that was observed there.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from firstclick.click_models.count_table import CountTable, fit_counts, read_counts

LEAST = 1000


def one_query(table: CountTable, segment: int) -> CountTable:
    """The counts of one query alone."""
    own = table.cell_segments == segment
    urls = table.places[own] % len(table.items)
    return CountTable(
        table.segments[segment], tuple(table.items[url] for url in urls), ("",), np.arange(len(urls)),
        table.impressions[own], table.clicks[own], table.first_position, (), (),
    )  # fmt: skip


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--data", type=Path, required=True)
    folder = given.parse_args().data
    began = time.perf_counter()
    table = read_counts(folder / "counts.csv")
    read = time.perf_counter() - began
    others = json.loads((folder / "pbm_parameters.json").read_text())
    ours_all, theirs_all, seen_all, weight_all = [], [], [], []
    began = time.perf_counter()
    for segment, query in enumerate(table.segments):
        own = one_query(table, segment)
        fit = fit_counts(own)
        ours = fit.attraction[0][:, None] * fit.chances
        order = np.argsort(np.argsort([int(url) for url in own.items]))
        theirs = np.array(others[query]["thetas"])[order][:, None] * np.array(others[query]["kappas"])
        often = own.impressions > LEAST
        ours_all.append(ours[often])
        theirs_all.append(theirs[:, : ours.shape[1]][often])
        seen_all.append(own.clicks[often] / own.impressions[often])
        weight_all.append(own.impressions[often])
    fitted = time.perf_counter() - began
    ours, theirs, seen, weight = map(np.concatenate, (ours_all, theirs_all, seen_all, weight_all))
    total = f"{table.impressions.sum():,.0f} impressions, {table.clicks.sum():,.0f} clicks"
    print(f"{len(table.segments)} queries, {len(table.places):,} cells, {total}; capped: {table.capped}")
    print(f"read in {read:.1f} s, {len(table.segments)} fits in {fitted:.1f} s")
    print(f"{len(ours):,} products with more than {LEAST:,} impressions:")
    print(f"{'':34}ours   theirs  observed")
    print(f"{'mean':30}{ours.mean():8.4f} {theirs.mean():8.4f} {seen.mean():8.4f}")
    means = [float(np.average(values, weights=weight)) for values in (ours, theirs, seen)]
    print(f"{'mean, weighted by impressions':30}{means[0]:8.4f} {means[1]:8.4f} {means[2]:8.4f}")
    loss = [np.average(np.abs(values - seen), weights=weight) for values in (ours, theirs)]
    print(f"{'mean distance from observed':30}{loss[0]:8.4f} {loss[1]:8.4f}")
    close = [np.corrcoef(values, seen)[0, 1] for values in (ours, theirs)]
    print(f"{'correlation with observed':30}{close[0]:8.4f} {close[1]:8.4f}")
    # Whatever url each of their thetas belongs to: the closest they can come, both sorted.
    sorted_loss = np.average(np.abs(np.sort(theirs) - np.sort(seen)))
    print(f"theirs and observed, each sorted: mean distance {sorted_loss:.4f}")


if __name__ == "__main__":
    main()
