"""Which click model fits a page, whether a cascade is good enough, and what follows.

The rules, made before any log was looked at:

- A model is *close* to another one if its held-out log-likelihood is at most two standard errors worse, page
  by page, or at most 0.005 nats a click. That much is lost if all click chances are 10 % off.
- The model to take is the simplest one that is close to the best, in the order of `SIMPLEST_FIRST`.
- A cascade is good enough if cm is close to the best model down to the first click, and at most 10 % of the
  clicked slates have a second click, which a cascade does not learn from.
- With fewer than 100 clicked slates held out, nothing is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.click_fit import ClickFit
from firstclick.click_models.fitting import fit_sessions
from firstclick.click_models.quality import Quality, quality
from firstclick.click_models.sessions import Sessions
from firstclick.rounding import percent, whole

SIMPLEST_FIRST = ("cm", "dcm", "pbm", "sdbn", "dbn")
CLOSE_NATS = 0.005
CLOSE_ERRORS = 2.0
MOST_SECOND_CLICKS = 0.10
LEAST_CLICKED = 100
HELD_OUT, FOLDS = 0, 5  # the part on which models are compared


@dataclass(frozen=True)
class Difference:
    """How much worse a model is than the best, in nats a slate, with the standard error of the pairs."""

    worse: float
    error: float
    close: bool


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models fitted to one part of a log, and how they predict the other."""

    fits: Mapping[str, ClickFit]  # to the slates that are not held out
    qualities: Mapping[str, Quality]
    slates: int  # held out
    clicked: int  # of them with a click
    clicks: int
    second_clicks: int  # slates with two clicks or more
    unreported: int  # slates of the log whose outcome nobody knows


@dataclass(frozen=True)
class Verdict:
    """What a comparison says. Without other models only `take` is there, without enough clicks a sentence."""

    best: str
    take: str
    cascade_enough: bool | None  # None: cannot say
    policy: str
    examined: str
    pages: Mapping[str, Difference]
    first_clicks: Mapping[str, Difference]
    sentences: tuple[str, ...]


def compare_models(sessions: Sessions, models: tuple[str, ...]) -> Comparison:
    """Fit each model without the slates that are held out, and predict their clicks."""
    apart = sessions.folds(FOLDS) == HELD_OUT
    chosen = np.flatnonzero(apart)
    clicks = sessions.clicks[chosen].sum(axis=1, dtype=np.int64)
    fits, qualities = {}, {}
    for model in models:
        fits[model] = fit_sessions(sessions, model, np.where(apart, 0.0, 1.0))
        qualities[model] = quality(fits[model], sessions, chosen)
    return Comparison(
        fits, qualities, len(chosen), int((clicks > 0).sum()), int(clicks.sum()), int((clicks > 1).sum()),
        sessions.unreported,
    )  # fmt: skip


def verdict(compared: Comparison) -> Verdict:
    """What the comparison says, by the rules above; of one model alone, nothing."""
    if len(compared.qualities) == 1:
        return Verdict("", next(iter(compared.qualities)), None, "", "", {}, {}, ())
    if compared.clicked < LEAST_CLICKED:
        sentence = (
            f"Cannot say which model fits: {whole(compared.clicked)} of the {whole(compared.slates)} "
            f"held-out slates were clicked, and it takes {LEAST_CLICKED}."
        )
        return Verdict("", "", None, "", "", {}, {}, (sentence,))
    best, pages = _differences({name: one.pages for name, one in compared.qualities.items()}, compared.clicks)
    _, first_clicks = _differences(
        {name: one.first_clicks for name, one in compared.qualities.items()}, compared.clicked
    )
    take = next(name for name in SIMPLEST_FIRST if name in pages and pages[name].close)
    second = compared.second_clicks / compared.clicked
    enough = first_clicks["cm"].close and second <= MOST_SECOND_CLICKS if "cm" in pages else None
    policy, examined = _what_follows(compared, "cm" if enough else take)
    sentences = [_best_sentence(best, pages)]
    if take != best:
        sentences.append(f"Take {take}, the simplest model that is close to it.")
    if "cm" in pages:
        sentences.append(_cascade_sentence(first_clicks["cm"], second, bool(enough)))
    if not compared.second_clicks:
        sentences.append(
            "No held-out slate has two clicks: cm, dcm and sdbn cannot be told apart. If the page or the log "
            "keeps one click only, the others cannot be judged either."
        )
    sentences += [f"Policy: {policy}.", f"Examined: {examined}."]
    return Verdict(best, take, enough, policy, examined, pages, first_clicks, tuple(sentences))


def _differences(
    by_model: Mapping[str, NDArray[np.float64]], clicks: int
) -> tuple[str, dict[str, Difference]]:
    best = max(by_model, key=lambda name: float(by_model[name].mean()))
    differences = {}
    for name, pages in by_model.items():
        pairs = by_model[best] - pages
        worse, error = float(pairs.mean()), float(pairs.std() / np.sqrt(len(pairs)))
        close = worse <= max(CLOSE_ERRORS * error, CLOSE_NATS * clicks / len(pairs))
        differences[name] = Difference(worse, error, close)
    return best, differences


def _best_sentence(best: str, pages: Mapping[str, Difference]) -> str:
    others = sorted((name for name in pages if name != best), key=lambda name: pages[name].worse)
    worse = ", ".join(f"{name} {_nats(pages[name])}" for name in others)
    return f"{best} fits best. Nats a slate worse than {best}: {worse}."


def _nats(difference: Difference) -> str:
    return f"{difference.worse:.4f} ± {difference.error:.4f}"


def _cascade_sentence(first: Difference, second: float, enough: bool) -> str:
    down = (
        f"down to the first click cm is {_nats(first)} nats a slate worse than the best, "
        f"which is {'' if first.close else 'not '}close"
    )
    several = f"{percent(second)} of the clicked slates have a second click"
    start = "A cascade is good enough" if enough else "A cascade is not good enough"
    return f"{start}: {down}, and {several} (at most {percent(MOST_SECOND_CLICKS)})."


def _what_follows(compared: Comparison, model: str) -> tuple[str, str]:
    """The policy, and what counts as examined."""
    if model == "cm":
        return (
            "cascade-mixed, the default",
            "down to the first click, or all of a slate without one; send `click` alone",
        )
    if model == "pbm":
        chances = compared.fits["pbm"].chances
        text = "/".join(f"{chance:.2g}" for chance in chances)
        return (
            f"pbm-ucb:examination={text}",
            "by chance, whatever was clicked; send all `clicks`, and `examined` if the page knows it",
        )
    text = "down to the last click, or all of a slate without one; send all `clicks`"
    if model == "dbn":
        gamma = float(compared.fits["dbn"].chances[0])
        text += (
            f", and `examined` if the page knows it: {percent(1 - gamma)} of the users leave at each position"
        )
    return "dcm-lin-ucb:stop=learned; without features dcm-kl-ucb", text
