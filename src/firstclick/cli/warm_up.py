"""`firstclick warm-up`: compile what a server needs before it is started."""

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.console import page
from firstclick.cli.progress_bar import progress_bar
from firstclick.errors import InvalidInput, WorkFailed
from firstclick.extras import needed_by
from firstclick.registry import DEFAULT_POLICY, is_research, make_policy, policy_classes

# From so many items on, a catalog gets a search tree, which is built by kernels too.
LARGE = 1500
# Slates of each kind have kernels of their own. Chance decides which kind comes next: by the floor the policy
# chooses one page in twenty at first, and half of those are explored.
KINDS = {"floor", "holdout", "policy"}
MOST_SLATES = 5000


def warm_up(
    policy: Annotated[
        list[str] | None,
        Option("--policy", metavar="NAME", help=f"Policy to compile; repeatable [{DEFAULT_POLICY}]."),
    ] = None,
    all_core: Annotated[bool, Option("--all-core", help="All policies except those for research.")] = False,
) -> None:
    """Compile the kernels that a server needs, so that it starts in seconds.

    Kernels are stored in FIRSTCLICK_CACHE_DIR, or in the user's cache folder. A second run compiles nothing.
    A policy's parameters do not matter: the same kernels serve all of them.

    \b
    Examples:
      firstclick warm-up
      firstclick warm-up --policy cascade-ts --policy cascade-lin-ts
    """
    with needed_by("the server"):
        import firstclick.serve.startup  # noqa: F401
    from firstclick.kernels.compiling import cache_root

    if all_core and policy:
        raise InvalidInput("names all policies that --all-core has; say one or the other", "policy")
    core = [name for name, cls in policy_classes().items() if not is_research(cls)]
    # One of several settings is enough; `fromkeys` keeps the order.
    names = list(dict.fromkeys(make_policy(spec).name for spec in policy or [DEFAULT_POLICY]))
    names = core if all_core else names
    folder, start = cache_root(), time.perf_counter()
    _check_writable(folder)
    lines = page()
    with progress_bar(every=10) as progress:
        tell = progress.doing("compiling")
        for done, name in enumerate(names):
            tell(done, len(names))
            before, began = _kernels(folder), time.perf_counter()
            _serve_once(name)
            new = len(_kernels(folder) - before)
            took = time.perf_counter() - began
            told = f"{new} kernels compiled" if new else "all kernels were there"
            lines.print(f"{name}: {told} ({took:.1f} s)")
    kept = _kernels(folder)
    size = sum(file.stat().st_size for file in kept) / 1e6
    lines.print(f"{folder}: {len(kept)} kernels, {size:.1f} MB, {time.perf_counter() - start:.1f} s")


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise WorkFailed(
            f"kernels cannot be kept in {folder} ({error.strerror}); set FIRSTCLICK_CACHE_DIR to a "
            "folder that can be written"
        ) from None
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise InvalidInput("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it")


def _kernels(folder: Path) -> set[Path]:
    return set(folder.rglob("*.nbc"))


def _serve_once(policy: str) -> None:
    """Serve a small catalog by this policy: recommend, explore, learn and correct."""
    with needed_by("the server"):
        from firstclick.serve.config import Settings
        from firstclick.serve.http.body_pieces import warm_up as warm_up_bodies
        from firstclick.serve.startup import open_for
        from firstclick.wire.errors import Refused

    import numpy as np

    from firstclick.catalog.search_tree import build_tree

    explores = make_policy(policy).learns_from_others
    kinds = KINDS | ({"explored"} if explores else set())
    with tempfile.TemporaryDirectory(prefix="firstclick-warm-up-") as scratch:
        settings = Settings(
            demo=True, name="warm-up", policy=policy, store=str(Path(scratch) / "shop.db"),
            explore=0.5 if explores else 0.0, no_click_after=1800.0, durability="relaxed",
        )  # fmt: skip
        service = open_for(settings).service
        try:
            warm_up_bodies()
            n_context = service.model("warm-up").engine.policy.n_context
            context = np.zeros(n_context) if n_context else None
            met: set[str] = set()
            for unit in range(MOST_SLATES):
                slate = service.recommend("warm-up", context=context, unit=f"visitor {unit}")
                service.feedback("warm-up", slate.token, unit % 2 or None)
                met.update(slate.reasons)
                if met >= kinds:
                    break
        except Refused as refusal:
            raise WorkFailed(f"{policy}: {refusal}") from None
        finally:
            service.close()
    build_tree(np.random.default_rng(0).standard_normal((LARGE, 8)))
