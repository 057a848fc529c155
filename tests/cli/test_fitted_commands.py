"""`--world fitted:FILE`: your page in `firstclick simulate` and `firstclick compare`."""

import json

import numpy as np
import pytest

from firstclick.click_models.click_fit import ClickFit
from firstclick.studies.guide.fitted_page import FittedPage

ITEMS = ("tea", "cocoa", "milk", "juice", "water")


@pytest.fixture
def fit_file(folder):
    """Users on a desk and on a phone, who look at three positions by chance; the desk has no water."""
    ClickFit(
        model="pbm", items=ITEMS, segments=("desk", "phone, old"), shares=np.array([0.75, 0.25]),
        attraction=np.array([[0.1, 0.2, 0.3, 0.4, 0.5], [0.5, 0.4, 0.3, 0.2, 0.1]]),
        satisfaction=np.empty((0, 0)), chances=np.array([1.0, 0.5, 0.2]),
        looks=np.array([[9.0, 9.0, 9.0, 9.0, 0.0], [9.0, 9.0, 9.0, 9.0, 9.0]]), k=3, slates=100.0,
    ).save("fit.npz")  # fmt: skip
    return folder / "fit.npz"


def test_simulate_plays_in_the_world_of_a_fit_and_calls_items_by_their_names(run, fit_file):
    play = ("--policy", "random", "--steps", 50, "--runs", 2, "--seed", 1, "--jobs", 1, "--json")
    told = json.loads(run("simulate", "--world", "fitted:fit.npz", "--k", 2, *play).out)
    # juice and milk on a desk, tea and cocoa on a phone.
    best = 0.75 * (0.4 + 0.5 * 0.3) + 0.25 * (0.5 + 0.5 * 0.4)
    assert told["optimal_reward"] == pytest.approx(best)
    assert {shown["item"] for shown in told["optimal_items"]} == {"juice", "milk", "tea", "cocoa"}
    assert told["settings"]["world"] == "fitted:file=fit.npz"
    alone = run("simulate", "--world", "fitted:fit.npz,segment=phone, old", "--k", 2, *play)
    assert json.loads(alone.out)["optimal_reward"] == pytest.approx(0.5 + 0.5 * 0.4)
    for spec, said in (
        ("fitted:none.npz", "error: none.npz: no such file\n"),
        ("fitted", "error: fitted needs the file of a fit: fitted:fit.npz\n"),
    ):
        seen = run("simulate", "--world", spec, *play)
        assert (seen.code, seen.err[-len(said) :]) == (2, said)
    seen = run("simulate", "--world", "fitted:fit.npz", "--k", 5, *play)
    assert (seen.code, "--k must be at most 3, the positions of the page in the log, got 5" in seen.err) == (
        2,
        True,
    )


@pytest.mark.long
def test_compare_says_which_policy_for_the_page_and_what_it_cannot_tell(run, fit_file):
    play = ("--policy", "cascade-ts", "--steps", 60, "--runs", 3, "--jobs", 1, "--out", "page")
    seen = run("compare", "--world", "fitted:fit.npz", *play)
    assert seen.code == 0, seen.err
    answer, _, _, *rows = seen.out.splitlines()
    assert answer.startswith(("Take ", "The runs cannot tell: "))
    assert {row.split()[0] for row in rows} == {"cascade-ts", "cascade-mixed", "random"}
    assert "- It is model-based, not an estimate from the log" in seen.err
    page = (fit_file.parent / "page" / "guide.md").read_text()
    assert page.startswith(f"# Which policy for fit.npz?\n\n{answer}\n")
    assert "- It is model-based, not an estimate from the log" in page
    # Another fit of the same name is another world: its cells are not those of before.
    again = run("compare", "--world", "fitted:fit.npz", *play)
    assert "9 of them finished already" in again.err
    ClickFit(
        model="cm", items=ITEMS, segments=("",), shares=np.ones(1), attraction=np.full((1, 5), 0.2),
        satisfaction=np.empty((0, 0)), chances=np.empty(0), looks=np.ones((1, 5)), k=3,
    ).save("fit.npz")  # fmt: skip
    assert run("compare", "--world", "fitted:fit.npz", *play).code == 2
    assert "finished already" not in run("compare", "--world", "fitted:fit.npz", *play, "--overwrite").err


def test_a_fitted_page_is_compared_alone(run, fit_file):
    for more, said in (
        (("--world", "linear"), "fitted:fit.npz is played alone; leave out other worlds and --interactions"),
        (("--interactions", "ratings.csv"), "fitted:fit.npz is played alone"),
        (("--data", "."), "--data goes with the worlds of MovieLens"),
        (("--sweep-k",), "--sweep-k goes with --interactions, or the worlds of MovieLens"),
        (("--rank", 3), "--rank goes with --interactions"),
        (("--k", 4), "--k must be at most 3, because 4 items compete"),
    ):
        seen = run("compare", "--world", "fitted:fit.npz", *more)
        assert (seen.code, said in seen.err) == (2, True), seen.err


def test_the_page_has_slates_as_long_as_its_log_and_knows_segments_by_number(fit_file):
    page = FittedPage.of("fitted:fit.npz")
    assert (page.k, page.segments, page.name) == (3, 2, "fit.npz")
    assert page.call == "--world fitted:file=fit.npz --k 3"
    assert page.why == "A click model (pbm) fitted to a log: 5 items, 2 segments of users."
    assert page.stage(1, 0).world.n_context == 2
    assert page.stage(1, 0, page.spec + ",told=number").world.n_context == 1
    assert FittedPage.of("fitted:fit.npz,segment=desk").segments == 0
