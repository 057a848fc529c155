"""A small data set with groups."""

import numpy as np

from firstclick.data import Interactions, synthetic_matrix
from firstclick.data.sources import Source
from firstclick.parameters import param

USERS, ITEMS, GROUPS = 90, 61, 3


class Garden(Source):
    """Made-up feedback of gardeners; group A is the largest."""

    name = "garden"
    title = "Garden"
    synthetic = True
    seed: int = param(3, "seed", at_least=0)

    def load(self, path, progress=lambda done, total: None):
        feedback = synthetic_matrix(self.seed, USERS, ITEMS, GROUPS)
        pairs = feedback.matrix.tocoo()
        progress(1, 1)
        return Interactions(
            users=pairs.row,
            items=pairs.col,
            attracted=np.ones(pairs.nnz, np.bool_),
            user_ids=tuple(f"gardener {user}" for user in range(USERS)),
            item_ids=tuple(f"plant {item}" for item in range(ITEMS)),
            item_names=feedback.item_names,
            item_groups=tuple((f"bed {'ABC'[group]}",) for group in feedback.item_groups),
            facts={"gardeners": USERS},
        )


def files_of(folder):
    """The content of every file below a folder but the log of speeds, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "speed.csv"
    }
