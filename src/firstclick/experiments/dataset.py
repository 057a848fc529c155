"""A data set in memory: its feedback matrix, names, groups, and a hash of them."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from firstclick.data.cut import group_items
from firstclick.data.interactions import Interactions
from firstclick.data.matrix import feedback_matrix
from firstclick.data.sources import Progress, Source, make_source, silent
from firstclick.errors import FirstclickError, InvalidInput


@dataclass(frozen=True, eq=False)
class Dataset:
    """What was loaded from one source, as experiments need it."""

    source: Source
    matrix: sparse.csr_matrix
    interactions: Interactions
    title: str

    @classmethod
    def load(cls, source: Source, path: Path | None, progress: Progress = silent) -> "Dataset":
        """Read the source's files at `path`; a data set in which nothing attracts is refused."""
        return cls.of(source.load(path, progress), source)

    @classmethod
    def of(
        cls, interactions: Interactions, source: Source | str = "table", title: str | None = None
    ) -> "Dataset":
        """Interactions that are here already, such as those of a data frame, as the data of `source`."""
        source = make_source(source)
        title = source.title if title is None else title
        matrix = feedback_matrix(interactions)
        if not matrix.nnz:
            raise InvalidInput(f"{title}: nothing attracts anybody; look at the threshold")
        return cls(source, matrix, interactions, title)

    @cached_property
    def called(self) -> dict[str, str]:
        """What to call the item of each id: its name, and its id too where several have that name."""
        named = Counter(self.interactions.names)
        pairs = zip(self.interactions.item_ids, self.interactions.names, strict=True)
        return {id_: name if named[name] == 1 else f"{name} ({id_})" for id_, name in pairs}

    @cached_property
    def digest(self) -> str:
        """A hash of everything a result can depend on: who was attracted by what, names and groups."""
        content = hashlib.sha256()
        items = self.interactions
        for array in (np.array(self.matrix.shape), self.matrix.indptr, self.matrix.indices, items.item_ranks):
            content.update(np.ascontiguousarray(array, np.int64).tobytes())
        content.update(json.dumps([items.item_ids, items.names, items.item_groups]).encode())
        return content.hexdigest()

    def items_of(self, group: str) -> NDArray[np.int64]:
        """The items of a group, in order; all of them for no group."""
        if not group:
            return np.arange(self.matrix.shape[1])
        try:
            return group_items(self.interactions, group)
        except FirstclickError as error:
            raise error.within(self.title) from None
