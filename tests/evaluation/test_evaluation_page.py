"""The forest plot and the page: numbers where there is support, words where there is none."""

import re

import pytest

from firstclick.evaluation.figure import forest_plot
from firstclick.evaluation.numbers import value_and_interval
from firstclick.evaluation.page import evaluation_page
from firstclick.evaluation.result import (
    CANNOT_SAY,
    Estimate,
    EstimatorRow,
    Evaluation,
    Played,
    PlayedAnswer,
    PolicyAnswer,
)
from firstclick.evaluation.text import headlines
from firstclick.report.figures import figure_bytes


def judged(policy, difference, verdict="ok"):
    value = Estimate(0.4 + difference, 0.38 + difference, 0.42 + difference)
    told = Estimate(difference, difference - 0.012, difference + 0.012)
    row = EstimatorRow("rips", "RIPS", value, told, chosen=True)
    return PolicyAnswer(policy, verdict, ("Enough",), "", told, value, "RIPS", "It fits", (row,))


NO_ANSWER = PolicyAnswer(
    "greedy:<b>shop</b>", CANNOT_SAY, ("The log never shows the first item",), "2,000 slates with explore=0.1"
)
PLAYED = Played(
    (PlayedAnswer("cascade-ts", Estimate(0.5, 0.4, 0.6), Estimate(0.1, 0.0, 0.2)),), None, ("Refits.",)
)


def evaluation(answers, played=None):
    shown = Estimate(0.4, 0.39, 0.41)
    return Evaluation("log.csv", 900, {}, 7, 3, shown, tuple(answers), played, versions={"firstclick": "1"})


def texts(*answers, played=None):
    svg = figure_bytes(forest_plot(evaluation(answers, played)), "svg").decode()
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_each_policy_has_a_row_with_its_number_or_its_verdict():
    words = texts(judged("random", -0.031), NO_ANSWER, judged("list:a,b", 0.0204, "caution"), played=PLAYED)
    assert {"random", "list:a,b", "−0.031  (−0.043 to −0.019)", "+0.020  (+0.008 to +0.032)"} < set(words)
    assert {"caution", "model-based: cascade-ts"} < set(words)
    assert words.count("cannot say") == 1
    assert "cannot say" in texts(NO_ANSWER), "with no number at all"


def test_headline_names_the_highest_and_the_lowest_of_many():
    answers = [judged("a", 0.01), judged("b", 0.05), NO_ANSWER, judged("c", -0.02)]
    page = evaluation_page(evaluation(answers, PLAYED))
    assert "2,000 slates with explore=0.1" in page
    assert "Model-based, not an estimate from the log" in page
    headline = re.search(r'<p class="headline">(.*?)</p>', page, re.DOTALL)
    assert re.match(r"Highest of 4: b: .* Lowest: c: .* Cannot say: 1 of 4\.", headline[1])
    # A caution does not lead the headline while others are ok.
    answers[1:3] = judged("b", 0.05, "caution"), judged("d", 0.0)
    words = headlines(evaluation(answers))
    assert re.match(r"Highest of 4: a: .* Higher, but: b: .*, with caution\. Lowest: c: ", words)
    doubtful = [judged(name, 0.01 * n, "caution") for n, name in enumerate("abcd")]
    assert headlines(evaluation(doubtful)).startswith("Highest of 4: d: ")


@pytest.mark.parametrize(
    ("estimate", "texts"),
    [
        (Estimate(0.04212, 0.0311, 0.0531), ("+0.042", "+0.031 to +0.053")),
        (Estimate(-0.00004, -0.02, 0.02), ("0.000", "−0.020 to +0.020")),
        (Estimate(0.5, 0.1, 0.9), ("+0.50", "+0.10 to +0.90")),
        (Estimate(0.25, 0.25, 0.25), ("+0.2500", "+0.2500 to +0.2500")),
    ],
)
def test_numbers_are_cut_where_the_interval_has_its_second_digit(estimate, texts):
    assert value_and_interval(estimate, signed=True) == texts
