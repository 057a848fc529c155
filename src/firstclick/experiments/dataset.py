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
    """Data from one source, loaded for experiments.

    Attributes:
        source: Where it comes from.
        matrix: The feedback matrix, users x items.
        interactions: Who met what.
        title: Its name in figures.
    """

    source: Source
    matrix: sparse.csr_matrix
    interactions: Interactions
    title: str

    @classmethod
    def load(cls, source: Source, path: Path | None, progress: Progress = silent) -> "Dataset":
        """Load a source from its files.

        Args:
            source: The source.
            path: The folder or file; None if the data is made up.
            progress: Called as `progress(done, total)`.

        Raises:
            InvalidInput: A file is missing or wrong, or no item attracts anybody.
        """
        return cls.of(source.load(path, progress), source)

    @classmethod
    def of(
        cls, interactions: Interactions, source: Source | str = "table", title: str | None = None
    ) -> "Dataset":
        """Use interactions that are in memory already, such as those of a data frame.

        Args:
            interactions: Who met what.
            source: The source to name them by.
            title: The name in figures; by default the source's.
        """
        source = make_source(source)
        title = source.title if title is None else title
        matrix = feedback_matrix(interactions)
        if not matrix.nnz:
            raise InvalidInput(f"{title}: nothing attracts anybody; look at the threshold")
        return cls(source, matrix, interactions, title)

    @cached_property
    def called(self) -> dict[str, str]:
        """The name of each item by id. Items that share a name have their id added."""
        named = Counter(self.interactions.names)
        pairs = zip(self.interactions.item_ids, self.interactions.names, strict=True)
        return {id_: name if named[name] == 1 else f"{name} ({id_})" for id_, name in pairs}

    @cached_property
    def digest(self) -> str:
        """A hash of everything that results depend on."""
        content = hashlib.sha256()
        items = self.interactions
        for array in (np.array(self.matrix.shape), self.matrix.indptr, self.matrix.indices, items.item_ranks):
            content.update(np.ascontiguousarray(array, np.int64).tobytes())
        content.update(json.dumps([items.item_ids, items.names, items.item_groups]).encode())
        return content.hexdigest()

    def items_of(self, group: str) -> NDArray[np.int64]:
        """The item codes of a group, in order.

        Args:
            group: The name of the group; empty for all items.
        """
        if not group:
            return np.arange(self.matrix.shape[1])
        try:
            return group_items(self.interactions, group)
        except FirstclickError as error:
            raise error.within(self.title) from None
