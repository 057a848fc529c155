"""Settings of all tests."""

import os
import resource
import time
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from tests.support.policies import COMPILED, PLAIN

# Kernels that tests compile stay in the checkout: the developer's cache is left alone. Processes inherit it.
os.environ.setdefault("FIRSTCLICK_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "kernels"))

# Empty is as good as unset.
if not os.environ.get("FIRSTCLICK_DATA"):
    os.environ.pop("FIRSTCLICK_DATA", None)

# The first call of a kernel compiles: no deadline. In CI the examples are the same each time.
settings.register_profile("firstclick", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("firstclick")

COMPILED_BEFORE, COMPILED_TOO = pytest.StashKey(), pytest.StashKey()
START = time.perf_counter()


def pytest_addoption(parser):
    parser.addoption(
        "--update-messages",
        action="store_true",
        help="write tests/doors/messages again, to be read as a diff",
    )


def pytest_configure(config):
    if PLAIN:
        # Hashes wrap on purpose, and kernels may divide by zero: Numba is silent about it, NumPy warns.
        config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Keep one shard, `SHARD=1/2`: by policy or else by file, so that one shard alone compiles a policy."""
    number, of = map(int, (os.environ.get("SHARD") or "1/1").split("/"))
    kept, left = [], []
    for item in items:
        policy = item.callspec.params.get("policy") if hasattr(item, "callspec") else None
        key = policy.partition(":")[0] if isinstance(policy, str) else item.path.name
        (kept if crc32(key.encode()) % of == number - 1 else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def compiled_policies():
    """Policies that have machine code in the cache of the tests."""
    cache = Path(os.environ["FIRSTCLICK_CACHE_DIR"])
    # Such as firstclick.policies.cascade_ts.CascadeTS-f9d8ce278677c28d, and kernels.ranking-42429763232afe6c.
    folders = {path.relative_to(cache).parts[0] for path in cache.rglob("*.nbc")}
    modules = {folder.rpartition(".")[0].removeprefix("firstclick.") for folder in folders}
    policies = {module for module in modules if module.partition(".")[0] != "kernels"}
    return {module.removeprefix("policies.").replace("_", "-") for module in policies}


def pytest_sessionstart(session):
    session.config.stash[COMPILED_BEFORE] = compiled_policies()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail where the compiled pass of `make test` compiled other policies than it may."""
    config = session.config
    if PLAIN or hasattr(config, "workerinput") or config.option.markexpr != "not long":
        return
    if extra := compiled_policies() - config.stash[COMPILED_BEFORE] - {*COMPILED}:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        config.stash[COMPILED_TOO] = sorted(extra)


def pytest_terminal_summary(terminalreporter, config):
    """Report what the pass cost, and policies that it should not have compiled."""
    if extra := config.stash.get(COMPILED_TOO, None):
        terminalreporter.section("policies compiled")
        terminalreporter.line(
            f"Only {', '.join(COMPILED)} may be compiled; a test compiled {', '.join(extra)}."
        )
        terminalreporter.line("Let it use one of the four, or mark it OTHERS (tests/support/policies.py).")
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    terminalreporter.line(
        f"{sum(usage.ru_utime + usage.ru_stime for usage in used):.0f} s of CPU in "
        f"{time.perf_counter() - START:.0f} s, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


@pytest.fixture(scope="session")
def movielens_1m():
    """The folder of MovieLens 1M, or skip."""
    folder = Path(os.environ.get("FIRSTCLICK_DATA", "")) / "ml-1m"
    if "FIRSTCLICK_DATA" not in os.environ or not (folder / "ratings.dat").is_file():
        pytest.skip("MovieLens 1M is not here; set FIRSTCLICK_DATA to the folder that holds ml-1m/")
    return folder
