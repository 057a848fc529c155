"""Settings of all tests."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from sizes import PLAIN

# The first call of a kernel compiles: no deadline. In CI the examples are the same each time.
settings.register_profile("firstclick", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("firstclick")


def pytest_configure(config: pytest.Config) -> None:
    if PLAIN:
        # Hashes wrap on purpose, and kernels may divide by zero: Numba is silent about it, NumPy warns.
        config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m plain` files without such tests are not imported: that would take longer than the tests."""
    if not str(config.option.markexpr).startswith("plain") or collection_path.suffix != ".py":
        return None
    source = collection_path.read_text(encoding="utf-8")
    return None if "pytest.mark.plain" in source or "from sizes import" in source else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of all policies are long where kernels are compiled: 32 policies take minutes."""
    for item in items:
        if item.get_closest_marker("plain") and not PLAIN:
            item.add_marker("long")


@pytest.fixture(autouse=True)
def _a_short_moment() -> None:
    """An experiment times NumPy for 0.1 s a cell: in tests a moment is enough."""
    if plain_numpy := sys.modules.get("firstclick.studies.paper.plain_numpy"):
        plain_numpy.TIMED_SECONDS = 0.005  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def movielens_1m() -> Path:
    """The folder of MovieLens 1M, or skip."""
    places = [os.environ.get("FIRSTCLICK_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for place in filter(None, places):
        if (Path(place) / "ml-1m" / "ratings.dat").is_file():
            return Path(place) / "ml-1m"
    pytest.skip("MovieLens 1M is not here; set FIRSTCLICK_DATA to the folder that holds ml-1m/")
