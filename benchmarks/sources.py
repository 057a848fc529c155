"""How fast the two large sources are read, and in how much memory: Yelp and Million Song at their true size.

    python -m benchmarks.sources [yelp] [million-song] [--share 1.0]

Writes made-up files into a temporary folder (2 GB of reviews; 48 million triplets, 3 GB; TMPDIR moves
it), reads them in a process of its own, prints seconds, MB/s and peak memory, and deletes the files. On a
busy machine the processor time says more than the clock.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# One core: BLAS reads this when NumPy is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np

from firstclick.data.sources import make_source
from firstclick.streams import stream

CHUNK = 1 << 16


def write_yelp(folder, share):
    """78,000 businesses, 11,000 of them restaurants, and 2 GB of reviews by 550,000 users."""
    rng = stream(0, "benchmark", "yelp")
    n_businesses, n_restaurants, n_users = (max(1, int(share * n)) for n in (78_000, 11_000, 550_000))
    businesses = [f"b{code:021}" for code in range(n_businesses)]
    users = [f"u{code:021}" for code in range(n_users)]
    with (folder / "yelp_academic_dataset_business.json").open("w", encoding="utf-8") as file:
        for code, business in enumerate(businesses):
            categories = ["Food", "Restaurants", "Thai"] if code < n_restaurants else ["Shopping"]
            record = {
                "business_id": business,
                "name": f"place {code}",
                "categories": categories,
                "stars": 4.0,
            }
            file.write(json.dumps(record) + "\n")
    words = "the food was good and the service slow, yet the éclairs made up for it! " * 20
    with (folder / "yelp_academic_dataset_review.json").open("w", encoding="utf-8") as file:
        while file.tell() < share * 2e9:
            who = n_users * rng.random(CHUNK) ** 3
            where = n_businesses * rng.random(CHUNK) ** 4
            lengths = rng.integers(80, 1200, CHUNK)
            file.writelines(
                f'{{"votes": {{"funny": 0, "useful": 1, "cool": 0}}, "user_id": "{users[int(user)]}", '
                f'"review_id": "r{code:021}", "stars": 4, "date": "2012-08-01", '
                f'"text": "{words[:length]}", "type": "review", '
                f'"business_id": "{businesses[int(business)]}"}}\n'
                for code, (user, business, length) in enumerate(zip(who, where, lengths, strict=True))
            )


def write_million_song(folder, share):
    """48,373,586 triplets of 1,019,318 users and 384,546 songs, a million tracks, and genres for a third."""
    rng = stream(0, "benchmark", "million-song")
    n_rows, n_users, n_songs = (max(1, int(share * n)) for n in (48_373_586, 1_019_318, 384_546))
    users = np.array([rng.bytes(20).hex() for _ in range(n_users)], "S40").view(np.uint8).reshape(-1, 40)
    names = [f"SO{code:016X}" for code in range(n_songs)]
    songs = np.array(names, "S18").view(np.uint8).reshape(-1, 18)
    with (folder / "train_triplets.txt").open("wb") as file:
        for start in range(0, n_rows, CHUNK):
            row = np.arange(start, min(start + CHUNK, n_rows))
            lines = np.full((len(row), 62), ord("\t"), np.uint8)
            lines[:, :40] = users[(row / n_rows * n_users).astype(np.int64)]
            lines[:, 41:59] = songs[(n_songs * rng.random(len(row)) ** 4).astype(np.int64)]
            lines[:, 60] = ord("0") + np.minimum(rng.geometric(0.4, len(row)), 9)
            lines[:, 61] = ord("\n")
            file.write(lines.tobytes())
    n_tracks = int(share * 1_000_000)
    with (folder / "unique_tracks.txt").open("w", encoding="utf-8") as file:
        file.writelines(
            f"TR{code:016X}<SEP>{names[code % n_songs]}<SEP>Someone {code % 997}<SEP>A song, number {code}\n"
            for code in range(n_tracks)
        )
    with (folder / "msd_tagtraum_cd2.cls").open("w", encoding="utf-8") as file:
        file.write("# made up\n")
        file.writelines(f"TR{code:016X}\t{('Rock', 'Pop')[code % 2]}\n" for code in range(0, n_tracks, 3))


WRITERS = {"yelp": write_yelp, "million-song": write_million_song}


def read(name, folder):
    """Load once and print what it took, for the process that has written the files."""
    began, used = time.perf_counter(), time.process_time()
    read = make_source(name).load(Path(folder))
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    # Linux counts kilobytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({
        "seconds": seconds, "cpu": cpu, "peak": peak, "facts": dict(read.facts), "pairs": len(read.users),
        "users": len(read.user_ids), "items": len(read.item_ids),
    }))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", metavar="|".join(WRITERS), help="both if none is given")
    parser.add_argument("--share", type=float, default=1.0, help="of the true size")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read(given.sources[0], given.read)
        return
    for name in given.sources or WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            WRITERS[name](Path(folder), given.share)
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
            command = [sys.executable, "-m", "benchmarks.sources", name, "--read", folder]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        took = json.loads(done.stdout)
        seconds = took["seconds"]
        print(f"{name}: {size / 1e9:.2f} GB in {seconds:.0f} s ({size / seconds / 1e6:.0f} MB/s; "
              f"{took['cpu']:.0f} s of processor time), peak memory {took['peak'] / 1e9:.2f} GB")  # fmt: skip
        print("  of " + ", ".join(f"{count:,} {what}" for what, count in took["facts"].items()))
        print(f"  kept {took['users']:,} users x {took['items']:,} items with {took['pairs']:,} pairs")


if __name__ == "__main__":
    main()
