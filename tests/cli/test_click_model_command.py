"""`firstclick click-model`."""

import json

import numpy as np
import pytest

from firstclick.click_models import load_click_fit
from tests.support.made_up_log import chain_clicks, shuffled_slates


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
        lines.append(json.dumps(line))
    (folder / "slates.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "slates.jsonl"


def test_a_log_says_which_model_fits_and_the_fit_is_a_file(run, slates, folder):
    done = run("click-model", "fit", slates, "--out", "fit.npz", "--page", "fit.html")
    assert done.code == 0, done.err
    assert done.out.startswith("dbn fits best. Nats a slate worse than dbn: ")
    assert "A cascade is not good enough" in done.out
    assert "Policy: dcm-lin-ucb:stop=learned" in done.out
    assert "40 slates without a reported outcome are left out" in done.err
    fitted = load_click_fit(folder / "fit.npz")
    assert (fitted.model, fitted.k, fitted.slates) == ("dbn", 4, 3960)
    text = (folder / "fit.html").read_text()
    assert "Click models of slates.jsonl" in text
    assert "dbn fits best" in text
    described = run("click-model", "describe", "fit.npz")
    assert "dbn: 3,960 slates, 8 of 8 items shown" in described.out
    assert json.loads(run("click-model", "describe", "fit.npz", "--json").out)["model"] == "dbn"


def test_json_has_the_documented_fields(run, slates):
    found = json.loads(run("click-model", "fit", slates, "--by-segment", "--json").out)
    assert set(found) == {"log", "slates", "unreported", "held_out", "models", "verdict", "fit"}
    assert (found["slates"], found["unreported"]) == (3960, 40)
    assert [one["model"] for one in found["models"]] == ["cm", "dcm", "sdbn", "pbm", "dbn"]
    assert found["verdict"]["best"] == "dbn"
    assert found["fit"]["segments"] == 2
    assert len(found["models"][0]["perplexity_by_rank"]) == 4


def test_one_model_alone_has_no_verdict(run, slates):
    done = run("click-model", "fit", slates, "--click-model", "pbm")
    assert "fits best" not in done.out
    assert "pbm: chances of being examined, by position" in done.out
    assert (
        json.loads(run("click-model", "fit", slates, "--click-model", "pbm", "--json").out)["verdict"] is None
    )


def test_counts_make_a_position_based_model(run, folder):
    (folder / "counts.csv").write_text(
        "segment,item,position,impressions,clicks\n"
        "all,tea,1,900,450\nall,tea,2,400,80\nall,jam,1,300,60\nall,jam,2,1000,41\nall,jam,3,10,11\n"
    )
    done = run("click-model", "fit", "counts.csv", "--counts", "--out", "fit.npz")
    assert done.code == 0, done.err
    assert "1 with more clicks than impressions (row 5): they count as clicked each time" in done.err
    assert load_click_fit(folder / "fit.npz").model == "pbm"
    refused = run("click-model", "fit", "counts.csv", "--counts", "--click-model", "dcm")
    assert (refused.code, "enough for pbm alone" in refused.err) == (2, True)


def test_mistakes_get_a_sentence(run, slates, folder):
    for arguments, sentence in (
        (("fit", "nowhere.csv"), "nowhere.csv"),
        (("fit", slates, "--click-model", "ubm"), "must be one of cm, dcm, sdbn, pbm, dbn, all"),
        (("fit", slates, "--page", "no/fit.html"), "--page no/fit.html: there is no folder no"),
        (("fit", slates, "--out", "no/fit.npz"), "--out no/fit.npz: there is no folder no"),
        (("describe", slates), "damaged, or not a file of firstclick"),
    ):
        done = run("click-model", *arguments)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err
        assert "Traceback" not in done.err
    (folder / "bare.jsonl").write_text('{"items": ["a", "b"], "clicks": [0]}\n')
    done = run("click-model", "fit", "bare.jsonl", "--by-segment")
    assert "bare.jsonl has no segments; leave out --by-segment" in done.err
