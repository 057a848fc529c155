"""How long firstclick takes to start: to be imported, and to play in a process that compiles or does not.

python -m benchmarks.start_up
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time


def start_up(cache):
    """Seconds of an import, and of processes that play with an empty cache of kernels and a full one."""

    def seconds(code):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code], check=True, env=os.environ | {"FIRSTCLICK_CACHE_DIR": cache}
        )
        return time.perf_counter() - start

    nothing = min(seconds("pass") for _ in range(3))
    play_once = (
        "import firstclick as f; f.simulate(['cascade-lin-ts'], f.make_world('linear').build(0), "
        "k=4, steps=1000)"
    )
    return {
        "import firstclick": min(seconds("import firstclick") for _ in range(3)) - nothing,
        "first process, compiling": seconds(play_once),
        "second process, from the cache": min(seconds(play_once) for _ in range(3)),
    }


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as cache:
        for name, value in start_up(cache).items():
            print(f"{name:32}{value:6.2f} s")


if __name__ == "__main__":
    main()
