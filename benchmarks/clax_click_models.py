"""clax-models on sessions in an .npz file: seconds and perplexity. Run by `python -m benchmarks.click_models`
with a Python that has clax-models (JAX, torch); it imports nothing of firstclick.

    PYTHON clax_click_models.py sessions.npz MODEL [BATCH]

The file has `cells` and `clicks` (n x K), `held_out` (n) and `n_cells`. One line of JSON on stdout. Settings
are those of the package's README: adamw(0.003), at most 50 epochs, stop where the validation loss falls by
less than 1e-5; a tenth of the sessions that are not held out validates. Batches are slices of arrays in
memory, which is faster than its loaders of Parquet.
"""

import contextlib
import json
import sys
import time

import clax
import numpy as np
from flax import nnx
from optax import adamw


class Batches:
    """Sessions in batches, in a new order each time."""

    def __init__(self, cells, clicks, size, seed):
        self.cells, self.clicks, self.size = cells, clicks, size
        self.generator = np.random.default_rng(seed)

    def __len__(self):
        return len(self.cells) // self.size

    def __iter__(self):
        order = self.generator.permutation(len(self.cells))
        for number in range(len(self)):
            rows = order[number * self.size : (number + 1) * self.size]
            cells = self.cells[rows]
            positions = np.broadcast_to(np.arange(1, cells.shape[1] + 1, dtype=np.int32), cells.shape)
            yield {
                "query_doc_ids": cells,
                "positions": positions,
                "mask": np.ones(cells.shape, np.bool_),
                "clicks": self.clicks[rows].astype(np.float32),
            }


def main():
    path, name, *more = sys.argv[1:]
    size = int(more[0]) if more else 512
    data = np.load(path)
    cells, clicks, held_out = data["cells"].astype(np.int32), data["clicks"], data["held_out"]
    pairs, k = int(data["n_cells"]), cells.shape[1]
    makers = {
        "cm": lambda: clax.CascadeModel(query_doc_pairs=pairs, rngs=nnx.Rngs(42)),
        "dcm": lambda: clax.DependentClickModel(query_doc_pairs=pairs, positions=k, rngs=nnx.Rngs(42)),
        "sdbn": lambda: clax.DynamicBayesianNetwork(
            query_doc_pairs=pairs, fix_continuation=True, rngs=nnx.Rngs(42)
        ),
        "pbm": lambda: clax.PositionBasedModel(query_doc_pairs=pairs, positions=k, rngs=nnx.Rngs(42)),
        "dbn": lambda: clax.DynamicBayesianNetwork(query_doc_pairs=pairs, rngs=nnx.Rngs(42)),
    }
    model = makers[name]()
    train = np.flatnonzero(~held_out)
    validation, train = train[::10], np.setdiff1d(train, train[::10])
    test = np.flatnonzero(held_out)
    trainer = clax.Trainer(optimizer=adamw(0.003), epochs=50)
    batches = [
        Batches(cells[rows], clicks[rows], size, seed)
        for seed, rows in enumerate((train, validation, test), start=1)
    ]
    began, cpu = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(sys.stderr):
        history = trainer.train(model, *batches[:2])
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        tested = trainer.test_clicks(model, batches[2])
    row = tested.iloc[-1]
    print(json.dumps({
        "model": name, "seconds": seconds, "cpu": cpu, "epochs": len(history), "batch": size,
        **{one: float(row[one]) for one in tested.columns if one.startswith("test_")},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
