"""What the plain pass of `make test` leaves out: files that the compiled pass plays whole."""

from tests.support.policies import PLAIN

collect_ignore = []
if PLAIN:
    names = ("known_results", "mixed", "one_file", "skeleton", "states", "theorem", "who_wins")
    collect_ignore = [f"test_{name}.py" for name in names]
