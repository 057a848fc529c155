"""The floor: how often its promise is broken, what it costs, and which form learns more.

    python -m benchmarks.floor [--movielens FOLDER] [--runs 100] [--steps 20000] [--world NAME] [--form NAME]
    [--baseline SHARE] [--jobs 2] [--seed 1] [--out out/floor] [--figure floor.png]

The default policy in each stock world and on MovieLens, beside made-up lists that get a share of the best
slate's clicks. Forms: `none`, no floor; `floor`, as in the product; `gate`, which shows the policy's slate
where its share is 1 and nowhere else. Every run has a world of its own, or a split of the users of its own,
and the same users for all forms. Runs are appended to runs.jsonl in the folder as they finish: interrupted,
the same command goes on, and with more runs it plays only those. Expected clicks are exact, by the true
click probability of every slate.
"""

import argparse
import json
import time
from collections import defaultdict
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from firstclick import make_policy
from firstclick.cli.progress_bar import progress_bar
from firstclick.data import FeedbackScenario, feedback_matrix
from firstclick.data.sources import make_source
from firstclick.experiments.baseline import made_up_list
from firstclick.experiments.loop import Against, Tally, Task, new_launch, play
from firstclick.kernels.compiling import compiled
from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.stock import STOCK

FORMS = ("floor", "none", "gate")
FILMS = (16, 256, 3706)
MOVING = ("switch", "drift")  # The baseline's rate is not constant there: nothing is promised.
FIRST, LAST = 500, 2000
SECONDS_BETWEEN_LINES = 60
# Sums of shares are rounded.
SLACK = 1e-9

_places: dict = {}


def begin(movielens, names):
    """Each process has the worlds: they are large to send."""
    for world in STOCK:
        _places[world.name] = world, world.k
    if movielens and any(name.startswith("MovieLens") for name in names):
        films = FeedbackScenario(feedback_matrix(make_source("movielens").load(movielens)), rank=20)
        for n in FILMS:
            _places[f"MovieLens {n}"] = films.resized(n, 20), 4


def marks_of(steps):
    """The steps at which sums are kept."""
    wanted = [FIRST, steps - LAST, steps, *np.geomspace(20, steps, 40).astype(int)]
    return np.unique([mark for mark in wanted if 0 < mark <= steps])


def played(task):
    """What is missing of one run in one world: a line for each baseline and form."""
    name, run, steps, seed, max_loss, missing = task
    place, k = _places[name]
    stage = place.stage(seed, run)
    optimal, best = stage.world.optimal_slates(k), stage.world.optimal_reward(k)
    lists = {share: made_up_list(stage.world, k, share, seed, run) for share in {one[0] for one in missing}}
    lines = []
    for share, form in missing:
        cell = Task(0, make_policy(DEFAULT_POLICY), stage, optimal, best, run, marks_of(steps), seed)
        policy, player, ground = cell._begin()
        launch = new_launch(lists[share], None if form == "none" else max_loss)._replace(gate=form == "gate")
        tally = Tally(np.zeros(3), np.zeros(stage.world.n_items, np.int64), steps)
        loop, done, sums = compiled(play, type(policy)), 0, []
        began = time.process_time()
        for mark in marks_of(steps).tolist():
            loop(player, ground, tally, done, mark, launch)
            done = mark
            sums.append([float(f"{value:.9g}") for value in launch.sums])
        lines.append({
            "world": name, "run": run, "steps": steps, "seed": seed, "max_loss": max_loss, "baseline": share,
            "form": form, "sums": sums, "seconds": round(time.process_time() - began, 2),
        })  # fmt: skip
    return lines


def read(file, given):
    """The finished runs of these steps, seed and max_loss, by world, baseline and form."""
    found = defaultdict(dict)
    for text in file.read_text().splitlines() if file.exists() else ():
        line = json.loads(text)
        if (line["steps"], line["seed"], line["max_loss"]) == (given.steps, given.seed, given.max_loss):
            found[line["world"], line["baseline"], line["form"]][line["run"]] = np.array(line["sums"])
    return found


def play_missing(given, names):
    file = given.out / "runs.jsonl"
    given.out.mkdir(parents=True, exist_ok=True)
    found = read(file, given)
    tasks = []
    for run in range(given.runs):
        for name in names:
            missing = [
                (share, form)
                for form in given.form
                for share in given.baseline
                # Without a floor the baseline changes nothing.
                if (form != "none" or share == given.baseline[0])
                and (form == "floor" or run < given.others)
                and run not in found[name, share, form]
            ]
            if missing:
                tasks.append((name, run, given.steps, given.seed, given.max_loss, missing))
    with (
        progress_bar(every=SECONDS_BETWEEN_LINES) as bar,
        Pool(given.jobs, begin, (given.movielens, names)) as pool,
        file.open("a") as out,
    ):
        bar(0, len(tasks) or 1)
        for done, lines in enumerate(pool.imap_unordered(played, tasks), 1):
            for line in lines:
                out.write(json.dumps(line) + "\n")
            out.flush()
            bar(done, len(tasks))
    return read(file, given)


class Cell:
    """The runs of one world, list and form, side by side with those without a floor."""

    def __init__(self, found, name, share, form, given):
        marks = marks_of(given.steps).tolist()
        first, before = marks.index(FIRST), marks.index(given.steps - LAST)
        usual, free = found[name, share, "floor"], found[name, given.baseline[0], "none"]
        runs = usual if form == "floor" else free if form == "none" else found[name, share, form]
        # Without a floor one list stands for all. The users are the same, and so is what a list gets.
        runs = {run: Against(*sums.T) for run, sums in runs.items() if run in usual}
        base = np.array([Against(*usual[run].T).baseline for run in runs])
        shown = np.array([against.shown for against in runs.values()])
        self.runs = len(runs)
        if not runs:
            return
        bound = 1 - given.max_loss - SLACK
        self.worst = min(against.worst_stated[-1] for against in runs.values())
        self.broken = sum(against.worst_stated[-1] < bound for against in runs.values())
        self.broken_shown = int(np.count_nonzero((shown / base)[:, first:].min(axis=1) < bound))
        self.first = shown[:, first].sum() / base[:, first].sum()
        self.last = (shown[:, -1] - shown[:, before]).sum() / (base[:, -1] - base[:, before]).sum()
        self.all = shown[:, -1].sum() / base[:, -1].sum()
        self.policy = np.mean([against.policy_pages[-1] for against in runs.values()]) / given.steps
        both = [run for run in runs if run in free]
        alone = sum(Against(*free[run].T).shown[-1] for run in both)
        self.of_none = sum(runs[run].shown[-1] for run in both) / alone if both else np.nan


def table(found, names, given):
    """A line for each world, list and form; then one for each world, as Markdown."""
    print(
        f"\n{given.steps:,} pages, max_loss {given.max_loss}, seed {given.seed}. Clicks: expected, of what "
        "was shown, over those of the list.\n"
        "broken: runs in which the promise did not hold at some time, as stated, before the coin fell.\n"
        f"by coin: runs in which the slates shown fell below it, at some mark from page {FIRST} on.\n"
        "worst: the smallest ratio at any time of any run, as stated. of none: all clicks over no floor's.\n"
    )
    print(
        f"{'world':18}{'list':>5} {'form':6}{'runs':>5}{'broken':>8}{'by coin':>8}{'worst':>7}"
        f"{f'first {FIRST}':>10}{f'last {LAST}':>10}{'all':>7}{'of none':>8}{'policy':>8}"
    )
    for name in names:
        for share in given.baseline:
            for form in given.form:
                cell = Cell(found, name, share, form, given)
                if cell.runs:
                    told = (
                        f"{'':>8}{'':>8}{'':>7}" if form == "none"
                        else f"{cell.broken:>8}{cell.broken_shown:>8}{cell.worst:>7.3f}"
                    )  # fmt: skip
                    print(
                        f"{name:18}{share:>5g} {form:6}{cell.runs:>5}{told}{cell.first:>10.3f}"
                        f"{cell.last:>10.3f}{cell.all:>7.3f}{cell.of_none:>8.3f}{cell.policy:>8.1%}"
                    )
    lists = " / ".join(f"{share:g}" for share in given.baseline)
    print(
        f"\n| lists {lists} | runs | broken | worst | first {FIRST} pages | without a floor | last {LAST:,} "
        "| all clicks, of no floor | of the gate's |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name in names:
        cells = [Cell(found, name, share, "floor", given) for share in given.baseline]
        free = [Cell(found, name, share, "none", given) for share in given.baseline]
        gate = [of_gate(found, name, share) for share in given.baseline]
        if not all(cell.runs for cell in (*cells, *free)):
            continue

        def row(values, digits=2):
            return " / ".join("–" if np.isnan(value) else f"{value:.{digits}f}" for value in values)

        print(
            f"| {name} | {sum(cell.runs for cell in cells)} | {sum(cell.broken for cell in cells)} | "
            f"{min(cell.worst for cell in cells):.3f} | {row(cell.first for cell in cells)} | "
            f"{row(cell.first for cell in free)} | {row(cell.last for cell in cells)} | "
            f"{row((cell.of_none for cell in cells), 3)} | {row(gate, 3)} |"
        )


def of_gate(found, name, share):
    """All clicks over those of the gate, in the runs of both."""
    mine, its = found[name, share, "floor"], found[name, share, "gate"]
    both = [run for run in mine if run in its]
    clicks = [sum(Against(*runs[run].T).shown[-1] for run in both) for runs in (mine, its)]
    return clicks[0] / clicks[1] if both else np.nan


def figure(found, names, given):
    """Clicks of what was shown over those of the baseline, so far, by world: a panel for each."""
    from matplotlib.figure import Figure

    from firstclick.report.figures import dress, look, save_figure

    marks, across = marks_of(given.steps), 5
    down = -(-len(names) // across)
    with look():
        drawn = Figure(figsize=(2.9 * across, 2.3 * down), layout="constrained")
        for number, name in enumerate(names):
            axes = drawn.add_subplot(down, across, number + 1)
            axes.set_xscale("log")
            for share, color in zip(given.baseline, ("#0072b2", "#009e73", "#d55e00"), strict=False):
                usual = found[name, share, "floor"]
                free = found[name, given.baseline[0], "none"]
                both = sorted(set(usual) & set(free))
                if not both:
                    continue
                base = np.mean([Against(*usual[run].T).baseline for run in both], axis=0)
                for runs, dash in ((usual, "-"), (free, ":")):
                    shown = np.mean([Against(*runs[run].T).shown for run in both], axis=0)
                    label = f"list of {share:.0%}, floor" if dash == "-" else f"list of {share:.0%}, no floor"
                    axes.plot(marks, shown / base, dash, color=color, label=label, linewidth=1.4)
            axes.axhline(1 - given.max_loss, color="#767676", linewidth=0.8, linestyle="--")
            axes.set_title(name + (" (moves)" if name in MOVING else ""), fontsize=10)
            axes.set_xlim(marks[0], marks[-1])
            axes.set_ylim(0, max(axes.get_ylim()[1], 1.2))
            dress(axes, ticks=(4, 4))
        handles, labels = drawn.axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        drawn.suptitle(
            "Expected clicks so far over those of the list, by number of pages; dashed: the promise"
        )
        save_figure(drawn, given.figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", type=Path, help="folder of MovieLens 1M")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--others", type=int, default=20, help="runs of other forms than floor")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--world", action="append", help="name of a world; again for more")
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--baseline", action="append", type=float)
    parser.add_argument("--max-loss", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/floor"))
    parser.add_argument("--figure", type=Path, help="also draw the curves")
    given = parser.parse_args()
    given.form = given.form or list(FORMS)
    given.baseline = given.baseline or [0.5, 0.75, 1.0]
    names = [world.name for world in STOCK]
    names += [f"MovieLens {n}" for n in FILMS] if given.movielens else []
    names = [name for name in names if not given.world or name in given.world]
    names.sort(key=lambda name: name in MOVING)
    found = play_missing(given, names)
    table(found, names, given)
    if given.figure:
        figure(found, names, given)


if __name__ == "__main__":
    main()
