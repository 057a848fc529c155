"""A click model with the numbers that a log gives it."""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId, item_id
from firstclick.errors import InvalidInput
from firstclick.files.arrays import read_arrays, write_arrays

FITTED_MODELS = ("cm", "dcm", "sdbn", "pbm", "dbn")
# Models in which users leave satisfied after a click on an item.
SATISFIED_MODELS = ("sdbn", "dbn")

FORMAT = "firstclick click model 1"


@dataclass(frozen=True, eq=False)
class ClickFit:
    """A click model fitted to a log.

    `chances` are, by position, those of being examined (pbm) or of going on after a click (dcm); for dbn the
    one number gamma, the chance of going on; else empty.

    >>> fit = ClickFit(
    ...     model="cm", items=("tea", "cocoa"), segments=("",), shares=np.ones(1),
    ...     attraction=np.array([[0.5, 0.2]]), satisfaction=np.empty((0, 0)), chances=np.empty(0),
    ...     looks=np.array([[40.0, 25.0]]), k=2,
    ... )
    >>> fit.click_chances(np.array([[0, 1], [1, 0]], np.int32), np.zeros(2, np.int32))
    array([[0.5, 0.1],
           [0.2, 0.4]])
    """

    model: str  # of FITTED_MODELS
    items: tuple[ItemId, ...]
    segments: tuple[str, ...]  # ("",) for a log as a whole
    shares: NDArray[np.float64]  # of all slates, by segment
    attraction: NDArray[np.float64]  # segments x items
    satisfaction: NDArray[np.float64]  # segments x items for sdbn and dbn: leaving after a click; else empty
    chances: NDArray[np.float64]
    looks: NDArray[np.float64]  # segments x items: how many looks each attraction rests on; 0: never shown
    k: int  # positions of the longest slate
    slates: float = 0.0  # that it was fitted to
    converged: bool = True  # whether EM stopped by itself, or at its largest number of steps

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together: a file may be anything."""
        if self.model not in FITTED_MODELS:
            raise InvalidInput(f"must be one of {', '.join(FITTED_MODELS)}, got {self.model!r}", "model")
        shape = len(self.segments), len(self.items)
        wanted = {
            "shares": shape[:1],
            "attraction": shape,
            "satisfaction": shape if self.model in SATISFIED_MODELS else None,
            "chances": {"pbm": (self.k,), "dcm": (self.k,), "dbn": (1,)}.get(self.model),
            "looks": shape,
        }
        for name, size in wanted.items():
            array = getattr(self, name)
            if size is not None and array.shape != size:
                raise InvalidInput(
                    f"a fit of {self.model} must have the shape {size}, got {array.shape}", name
                )
            if not (np.isfinite(array).all() and (array >= 0).all()):
                raise InvalidInput(f"a fit of {self.model} must hold numbers of 0 or more", name)
            if name != "looks" and (array > 1).any():
                raise InvalidInput(f"a fit of {self.model} must hold numbers of at most 1", name)

    @property
    def gamma(self) -> float:
        """The chance of going on to the next position, where the user is not satisfied."""
        return float(self.chances[0]) if self.model == "dbn" else 1.0

    def leaving(self, k: int) -> NDArray[np.float64]:
        """The chance of leaving satisfied after a click: by position (cm, dcm) or segments x items."""
        if self.model in SATISFIED_MODELS:
            return self.satisfaction
        return 1.0 - self.by_position(k) if self.model == "dcm" else np.ones(k)

    def by_position(self, k: int) -> NDArray[np.float64]:
        """The chances of the first k positions; the last one holds for all further."""
        return self.chances[np.minimum(np.arange(k), len(self.chances) - 1)]

    def click_chances(self, items: NDArray[np.int32], segments: NDArray[np.int32]) -> NDArray[np.float64]:
        """The probability of a click at each position of slates (n x K places in `items`, NO_ITEM after the
        end) shown to users of these segments. It depends on the items above, not on what is clicked."""
        shown = items >= 0
        place = np.where(shown, items, 0)
        attraction = np.where(shown, self.attraction[segments[:, None], place], 0.0)
        k = items.shape[1]
        if self.model == "pbm":
            return attraction * self.by_position(k)
        leaving = self.leaving(k)
        if self.model in SATISFIED_MODELS:
            leaves = leaving[segments[:, None], place]
        else:
            leaves = np.broadcast_to(leaving, items.shape)
        # The user goes on unless a click satisfies.
        stays = self.gamma * (1.0 - attraction * leaves)
        reached = np.ones(items.shape)
        np.cumprod(stays[:, :-1], axis=1, out=reached[:, 1:])
        return attraction * reached

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to one file: a .npz of plain arrays and a JSON page (docs/guide/click_models.md)."""
        page = {
            "format": FORMAT,
            "model": self.model,
            "items": list(self.items),
            "segments": list(self.segments),
            "k": self.k,
            "slates": self.slates,
            "converged": self.converged,
        }
        arrays = {
            "shares": self.shares,
            "attraction": self.attraction,
            "satisfaction": self.satisfaction,
            "chances": self.chances,
            "looks": self.looks,
        }
        write_arrays(path, page, arrays)


def load_click_fit(path: str | os.PathLike[str]) -> ClickFit:
    """The fit in a file that `ClickFit.save` wrote."""
    page, arrays = read_arrays(path, FORMAT)
    try:
        return ClickFit(
            model=str(page["model"]),
            items=tuple(item_id(item) for item in page["items"]),
            segments=tuple(map(str, page["segments"])),
            k=int(page["k"]),
            slates=float(page["slates"]),
            converged=bool(page["converged"]),
            **{
                name: np.asarray(arrays[name], np.float64)
                for name in ("shares", "attraction", "satisfaction", "chances", "looks")
            },
        )
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(f"{path}: damaged; a part of the fit is missing") from None
