"""The page tells the truth, shows everything, and trusts no text that it is given."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import firstclick.report
from firstclick.errors import InvalidInput, WorkFailed
from firstclick.experiments.results import Results
from firstclick.report import headline, html, html_report, write_report
from firstclick.report.winner import leaders
from tests.support.html import Page

MakeResults = Callable[..., Results]


def report(results):
    return html_report(
        results,
        title="A <title>",
        subtitle="<img src=x onerror=alert(1)>",
        command="firstclick demo --policy 'a & <b>'",
    )


def test_a_hostile_policy_label_is_text_in_table_and_figures(make_results):
    name = "x'\"><script>:a=<b>,c=1"
    page = Page(html_report(make_results({name: (1.0, 2.0), "random": (5.0, 6.0)}), title="t"))
    assert not {"script", "b"} & set(page.tags)
    assert page.text.count(name) >= 3


def test_the_default_has_a_badge_and_is_named_in_headline_and_figures(results):
    source = html_report(results, title="t", default="my-plugin")
    # In the table, and over what it recommended in the end.
    badges = re.findall(r'([\w-]+)</span></span> <span class="badge default">the default<', source)
    assert badges == ["my-plugin"] * 2
    page = Page(source)
    assert "my-plugin is the default: it has lost 41.0\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}1.5." in page.text
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert all("my-plugin, the default " in label for label in labels)
    assert page.text.count("the default") == 2 + 1 + 3  # badges, headline, ends of curves
    assert "the default" not in Page(report(results)).text


def test_three_figures_with_labels_and_ids_of_their_own(results):
    page = Page(report(results))
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(labels) == 3
    assert all("cascade-lin-ts −20.0 ± 1.2" in label for label in labels[:2])
    assert len(page.ids) == len(set(page.ids)) > 0
    used = {value[1:] for _, name, value in page.attributes if name == "href" and value.startswith("#")}
    used |= {name for _, _, value in page.attributes for name in re.findall(r"url\(#([^)]+)\)", value)}
    assert used == set(page.ids)
    assert page.tags.count("figure") == page.tags.count("figcaption") == 3


def test_every_policy_item_setting_and_version_is_there(results):
    text = Page(report(results)).text
    for result in results.results:
        assert text.count(result.policy) >= 4  # table, two regret figures, slate
        for shown in result.shown:
            assert text.count(shown.item) >= len(results.results)
    for word in ("Never learned", "1234", "matrix", "numpy", np.__version__, "numba", "python", "platform"):
        assert word in text
    for share in ("96.0%", "4.0%", "<0.1%", "100%"):
        assert share in text


def test_items_of_the_best_slate_are_marked_in_words_and_the_rest_folded_away(results):
    page = Page(report(results))
    assert page.text.count("(in the best slate)") == 2 + len(results.results)
    assert page.tags.count("details") == len(results.results)
    assert page.text.count("2 more") == len(results.results)


def test_the_table_is_sorted_and_marks_the_lowest(results):
    source = report(results)
    rows = re.findall(r"<tr><th scope=\"row\"><span class=\"name\">.*?</tr>", source, flags=re.DOTALL)
    rows = [" ".join(Page(re.sub("</t[dh]>", " ", row)).text.split()) for row in rows]
    assert [row.split()[0] for row in rows] == [
        "cascade-lin-ts", "my-plugin", "cascade-ucb1:radius=0.5", "random",
    ]  # fmt: skip
    assert rows[0] == "cascade-lin-ts lowest −20.0 ± 1.2 −19.0 ± 1.2 107.6% 3.9"
    assert not any("lowest" in row for row in rows[1:])


def test_the_headline_names_the_winner_and_what_it_left_behind(make_results):
    results = make_results({"random": (9000, 9100, 9200), "b": (1200, 1260, 1230), "a": (800, 850, 810)})
    assert headline(results) == (
        "After 500 steps a has lost 820 ± 15 clicks to the best fixed slate, fewer than any other policy; "
        "b follows with 1,230 ± 17, and random, which learns nothing, has lost 9,100 ± 58."
    )
    assert "a has lost 820" in report(results)


def test_the_headline_claims_no_win_within_noise(make_results):
    results = make_results({"random": (9000, 9100, 9200), "b": (800, 960, 850), "a": (900, 810, 820)})
    assert headline(results) == (
        "After 500 steps a and b share the lead: they have lost 843 ± 28 and 870 ± 47 clicks to the best "
        "fixed slate, too close to call over 3 runs; random, which learns nothing, has lost 9,100 ± 58."
    )
    assert report(results).count("tied for lowest") == 2


def test_a_small_difference_that_every_run_shows_is_a_win(make_results):
    """Runs differ a lot, but the same users make them differ for both."""
    results = make_results({"a": (500, 900, 1300), "b": (521, 920, 1319)})
    assert [result.policy for result in leaders(results)] == ["a"]


def test_equal_policies_seldom_have_a_single_leader(make_results):
    """At most 5 in 100; more than 21 of 200 would come by chance with probability below 1e-3."""
    rng = np.random.default_rng(5)
    alone = 0
    for _ in range(200):
        finals = {name: 100 + rng.standard_normal(6) for name in "abcd"}
        alone += len(leaders(make_results(finals))) == 1
    assert alone <= 21


def test_the_headline_of_one_run_one_policy_or_negative_regret(make_results):
    one_run = headline(make_results({"random": (155.0,), "a": (83.0,)}))
    assert one_run.startswith("In this one run of 500 steps a has lost 83.0 clicks")
    assert one_run.endswith("One run cannot tell skill from luck: play several to be sure.")
    assert headline(make_results({"a": (80.0, 86.0)})) == (
        "After 500 steps a has lost 83.0 ± 3.0 clicks to the best fixed slate."
    )
    assert "cascade-lin-ts has won 20.0 ± 1.2 clicks more than the best fixed slate" in headline(
        make_results()
    )
    unlearned = headline(make_results({"random": (80.0, 90.0), "a": (81.0, 86.0)}))
    assert "too close to call" in unlearned
    assert "The lead includes random" in unlearned


def test_one_run_has_no_errors_and_no_badge(make_results):
    page = Page(html_report(make_results({"random": (155.0,), "a": (83.0,)}), title="t"))
    assert "±" not in page.text
    assert "nan" not in page.text
    assert "lowest" not in page.text


def test_writing_replaces_the_file_whole_or_not_at_all(results, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    assert write_report(results, target, title="first") == target
    assert target.read_text(encoding="utf-8") == html_report(results, title="first")

    def fail(self, target):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(WorkFailed, match="no space"):
            write_report(results, target, title="second")
    assert "first" in target.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InvalidInput, match=r"report\.html cannot be written: No such file or directory"):
        html.write_report(results, tmp_path / "missing" / "report.html", title="t")


def test_a_demo_sized_page_stays_small(make_results):
    from firstclick.experiments.results import PolicyResult
    from firstclick.registry import USUAL_POLICIES

    rng = np.random.default_rng(3)
    step = np.unique(np.rint(np.geomspace(1, 100_000, 100)).astype(np.int64))
    small = make_results()
    noise = np.sqrt(step) * rng.standard_normal((len(USUAL_POLICIES), 10, len(step)))
    results = tuple(
        PolicyResult(name, step + rough, step + rough, 2 * step + rough, 1e-6, small.results[0].shown)
        for name, rough in zip(USUAL_POLICIES, noise, strict=True)
    )
    large = Results(**{**vars(small), "step": step, "runs": 10, "results": results})
    assert len(html_report(large, title="t")) < 150_000


def test_a_public_name_is_never_that_of_a_module():
    """Names are loaded when they are used: a module of the same name would take their place."""
    modules = {path.stem for path in Path(firstclick.report.__file__).parent.glob("*.py")}
    assert not modules & set(firstclick.report.__all__)
