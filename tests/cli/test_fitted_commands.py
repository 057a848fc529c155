"""`firstclick click-model`, and `--world fitted:FILE`: your page in `simulate` and `compare`."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from firstclick.studies.guide.fitted_page import FittedPage
from tests.cli.conftest import write_fit
from tests.support.memory_log import chain_clicks, shuffled_slates


@pytest.fixture
def slates(folder):
    """slates.jsonl: 4,000 slates of a page whose users click several items; 40 without a report."""
    generator = np.random.default_rng(9)
    shown = shuffled_slates(generator, 4000, 8, 4)
    attraction, leaving = np.linspace(0.1, 0.5, 8)[shown], np.linspace(0.8, 0.1, 8)[shown]
    clicks, _ = chain_clicks(generator, attraction, leaving, 0.8)
    lines = []
    for number, (slate, clicked) in enumerate(zip(shown, clicks, strict=True)):
        line = {"items": [f"item {item}" for item in slate], "segment": "new" if number % 3 else "old"}
        line["clicks"] = None if number % 100 == 7 else np.flatnonzero(clicked).tolist()
        lines.append(json.dumps(line) + "\n")
    (folder / "slates.jsonl").write_text("".join(lines))


def test_best_fitting_model_is_reported_and_saved(run, slates, folder):
    fitted = run("click-model", "fit", "slates.jsonl", "--out", "fit.npz", "--page", "fit.html")
    assert fitted.code == 0, fitted.err
    assert fitted.out.startswith("dbn fits best. Nats a slate worse than dbn: ")
    assert "40 slates without a reported outcome are left out" in fitted.err
    assert "dbn fits best" in (folder / "fit.html").read_text()
    assert "dbn: 3,960 slates, 8 of 8 items shown" in run("click-model", "describe", "fit.npz").out
    described = json.loads(run("click-model", "describe", "fit.npz", "--json").out)
    assert (described["model"], described["k"], described["slates"]) == ("dbn", 4, 3960)


def test_fit_as_json_compares_models_and_a_single_one_has_no_verdict(run, slates):
    fit = ("click-model", "fit", "slates.jsonl", "--json")
    page = json.loads(run(*fit, "--by-segment").out)
    assert (page["slates"], page["unreported"]) == (3960, 40)
    assert [model["model"] for model in page["models"]] == ["cm", "dcm", "sdbn", "pbm", "dbn"]
    assert page["verdict"]["best"] == "dbn"
    assert page["fit"]["segments"] == 2
    assert json.loads(run(*fit, "--click-model", "pbm").out)["verdict"] is None


def test_counts_make_a_position_based_model(run, folder):
    counts = "all,tea,1,900,450\nall,tea,2,400,80\nall,jam,1,300,60\nall,jam,2,1000,41\nall,jam,3,10,11\n"
    (folder / "counts.csv").write_text("segment,item,position,impressions,clicks\n" + counts)
    fitted = run("click-model", "fit", "counts.csv", "--counts", "--out", "fit.npz")
    assert fitted.code == 0, fitted.err
    assert "1 with more clicks than impressions (row 5): they count as clicked each time" in fitted.err
    assert json.loads(run("click-model", "describe", "fit.npz", "--json").out)["model"] == "pbm"


@pytest.fixture
def fit(folder):
    return write_fit(folder)


def test_simulate_plays_in_the_world_of_a_fit(run, fit):
    play = ("--policy", "random", "--steps", 50, "--runs", 2, "--seed", 1, "--jobs", 1, "--json")
    page = json.loads(run("simulate", "--world", "fitted:fit.npz", "--k", 2, *play).out)
    # juice and milk on a desk, tea and cocoa on a phone.
    best = 0.75 * (0.4 + 0.5 * 0.3) + 0.25 * (0.5 + 0.5 * 0.4)
    assert page["optimal_reward"] == pytest.approx(best)
    assert {shown["item"] for shown in page["optimal_items"]} == {"juice", "milk", "tea", "cocoa"}
    assert page["settings"]["world"] == "fitted:file=fit.npz"
    phone = run("simulate", "--world", "fitted:fit.npz,segment=phone, old", "--k", 2, *play)
    assert json.loads(phone.out)["optimal_reward"] == pytest.approx(0.5 + 0.5 * 0.4)


@pytest.mark.long
def test_compare_answers_for_the_page_with_its_limitations(run, fit):
    call = ("compare", "--world", "fitted:fit.npz", "--policy", "cascade-ts", "--steps", 60, "--runs", 3,
            "--jobs", 1, "--out", "page")  # fmt: skip
    seen = run(*call)
    assert seen.code == 0, seen.err
    answer, _, _, *rows = seen.out.splitlines()
    assert answer.startswith(("Take ", "The runs cannot tell: "))
    assert {row.split()[0] for row in rows} == {"cascade-ts", "cascade-mixed", "random"}
    for text in (seen.err, Path("page/guide.md").read_text()):
        assert "- It is model-based, not an estimate from the log" in text
    # Another fit of the same name is another world: its cells are not those of before.
    assert "9 of them finished already" in run(*call).err
    replace(fit, attraction=fit.attraction / 2).save("fit.npz")
    assert run(*call).code == 2
    assert "finished already" not in run(*call, "--overwrite").err


def test_fitted_page_has_the_slates_of_its_log_and_segments_by_number(fit):
    page = FittedPage.of("fitted:fit.npz")
    assert (page.k, page.segments, page.name) == (3, 2, "fit.npz")
    assert page.call == "--world fitted:file=fit.npz --k 3"
    assert page.why == "A click model (pbm) fitted to a log: 5 items, 2 segments of users."
    assert page.stage(1, 0).world.n_context == 2
    assert page.stage(1, 0, page.spec + ",told=number").world.n_context == 1
    assert FittedPage.of("fitted:fit.npz,segment=desk").segments == 0
