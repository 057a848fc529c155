"""A world made of a click model that was fitted to a log: your page, as far as the log tells."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.click_models import (
    Cascade,
    ClickModel,
    DependentCounted,
    DynamicBayesian,
    PositionBased,
)
from firstclick.click_models.click_fit import ClickFit, load_click_fit
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.kernels.attraction import BY_USER, WorldArrays
from firstclick.kernels.clicks import COUNTED, DYNAMIC
from firstclick.parameters import Declared, check_name, param
from firstclick.worlds.base import WorldSpec
from firstclick.worlds.bernoulli import IndependentWorld, world_arrays
from firstclick.worlds.most_clicks import most_clicks_by_item, most_clicks_by_position

TOLD = ("places", "number")


class FittedWorld(IndependentWorld):
    """Users who click as a fit says. The reward is the number of clicks, whatever the click model.

    Segments are views: a step's user is of a segment with its share in the log, and a policy that takes a
    context is told the segment, as a 1 in its place or as its number. With `segment` all users are of that
    one.

    Items are those that the log showed in one of these segments. One that it never showed in a segment cannot
    be shown there: nobody knows what it would get. With a catalog policies see the features of its items, in
    the scale of the service.
    """

    view_shares: NDArray[np.float64]
    longest_slate: int

    def __init__(
        self,
        fit: ClickFit,
        *,
        segment: str | None = None,
        catalog: Catalog | None = None,
        told: str = "places",
    ) -> None:
        chosen = _places(fit, segment)
        items = np.flatnonzero((fit.looks[chosen] > 0).any(axis=0))
        if not len(items):
            raise InvalidInput(f"the fit has no item that was shown{_in_segment(segment)}")
        names = [fit.items[item] for item in items.tolist()]
        cut = np.ix_(chosen, items)
        features = None if catalog is None else features_of(catalog, names)
        super().__init__(fit.attraction[cut], click_model_of(fit), features, by_view=True)
        self.model, self.longest_slate = fit.model, fit.k
        self.item_names = [str(name) for name in names]
        self.segments = [fit.segments[place] for place in chosen.tolist()]
        shares = fit.shares[chosen]
        self.view_shares = np.asarray(shares / shares.sum())
        self.hidden = (fit.looks[cut] <= 0).astype(np.uint8)
        self.satisfaction = (
            np.ascontiguousarray(fit.satisfaction[cut])
            if self.click_model.kind == DYNAMIC
            else np.empty((0, 0))
        )
        # Where all users are of one segment, there is nothing to tell.
        numbered = np.arange(self.n_views, dtype=float)[:, None]
        every = np.eye(self.n_views) if told == "places" else numbered
        self.contexts = every if self.n_views > 1 else np.empty((1, 0))
        self.n_context = self.contexts.shape[1]

    def arrays(self) -> WorldArrays:
        return world_arrays(
            self.attractions,
            self.click_model,
            view_by=BY_USER,
            n_users=self.n_views,
            contexts=self.contexts,
            satisfaction=self.satisfaction,
            upto=np.cumsum(self.view_shares),
            hidden=self.hidden if self.hidden.any() else np.empty((0, 0), np.uint8),
        )

    def candidates(self, view: int) -> NDArray[np.int64]:
        """The items that can be shown to users of this segment."""
        return np.flatnonzero(self.hidden[view] == 0)

    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        """The slate with most clicks; `worlds.most_clicks` says how it is found."""
        items = self.candidates(view)
        attraction = self.attractions[view, items]
        if self.click_model.kind == DYNAMIC:
            gamma = self.click_model.chances[0]
            return items[most_clicks_by_item(attraction, self.satisfaction[view, items], gamma, k)]
        if self.click_model.kind == COUNTED:
            return items[most_clicks_by_position(attraction, self.click_model.by_position(k), k)]
        best = np.argsort(-attraction, kind="stable")[:k]
        slate = np.empty_like(items[:k])
        slate[np.argsort(-self.click_model.worth(k), kind="stable")] = items[best]
        return slate

    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        rows = np.asarray(slate, np.int64)
        if isinstance(self.click_model, DynamicBayesian):
            shown = self.attractions[view, rows]
            return float(self.click_model.reward(shown, self.satisfaction[view, rows]))
        return super().expected_reward(rows, view)


def click_model_of(fit: ClickFit) -> ClickModel:
    """The click model of the fit, as worlds know it, with its chances."""
    if fit.model == "cm":
        return Cascade()
    if fit.model == "dcm":  # A fit has the chances of going on, the world those of leaving.
        return DependentCounted(*(1.0 - fit.chances))
    if fit.model == "pbm":
        return PositionBased(*fit.chances)
    return DynamicBayesian(*(fit.chances if fit.model == "dbn" else (1.0,)))


def features_of(catalog: Catalog, items: Sequence[str | int]) -> NDArray[np.float64]:
    """The features of these items as policies see them in the service: divided by one number, with a
    constant."""
    table = catalog.features
    if table is None:
        raise InvalidInput("the catalog has no features; leave it out")
    found = [row for item in items if (row := catalog.row_of(item)) is not None]
    missing = [item for item in items if catalog.row_of(item) is None]
    if missing:
        raise InvalidInput(
            f"the catalog lacks {len(missing):,} of {len(items):,} items of the fit, such as {missing[0]!r}; "
            "give one that has them all, or fit the log of the items that it has"
        )
    rows = table[found]
    return FeatureScale.fitted([str(column) for column in range(rows.shape[1])], rows).apply(rows)


def _places(fit: ClickFit, segment: str | None) -> NDArray[np.int64]:
    """The segments that have users, or the one of this name."""
    if segment is not None:
        return np.array([fit.segments.index(check_name("segment", segment, fit.segments))])
    return np.flatnonzero(fit.shares > 0)


def _in_segment(segment: str | None) -> str:
    return "" if segment is None else f" in segment {segment!r}"


class Fitted(WorldSpec):
    """Users who click as on your page: a click model that `firstclick click-model fit` fitted to a log.

    `fitted:fit.npz` is short for `fitted:file=fit.npz`; the path may contain commas and equals signs. The
    reward is the number of clicks on a page. Segments of the fit are different users, each as frequent as in
    the log; `segment` plays one of them alone. An item that the log never showed in a segment cannot be shown
    there.
    """

    name = "fitted"
    bare: ClassVar[str] = "file"
    clicks: str = param("fitted", "click model: that of the fit", words=("fitted",))
    file: Path | None = param(None, "file that `firstclick click-model fit` wrote", kind=Path)
    segment: str | None = param(None, "the one segment to play; all by default", kind=str)
    catalog: Path | None = param(None, "catalog file with the features of the items", kind=Path)
    told: str = param("places", "the segment as a 1 in its place, or as its number", words=TOLD)

    def __post_init__(self) -> None:
        Declared.__post_init__(self)  # Not that of WorldSpec, which reads `clicks`.

    def build(self, seed: int) -> FittedWorld:
        if self.file is None:
            raise InvalidInput("fitted needs the file of a fit: fitted:fit.npz")
        catalog = None if self.catalog is None else Catalog.read(self.catalog)
        try:
            return FittedWorld(
                load_click_fit(self.file), segment=self.segment, catalog=catalog, told=self.told
            )
        except FirstclickError as error:
            raise error if str(self.file) in str(error) else error.within(str(self.file)) from None
