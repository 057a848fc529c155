"""A client of a dask cluster, one of our own on this machine or one that runs already: quiet, gone after."""

import asyncio
import logging
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import dask
from distributed import Client, LocalCluster, Security
from distributed.versions import VersionMismatchWarning

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.experiments.engines.processes import deaf_to_interrupts
from firstclick.registry import policy_classes
from firstclick.source_code import code_hash, installed_versions

CONNECT_SECONDS = 8

# What a worker may take to end by itself before it is killed: it may be in the middle of a long run.
FAREWELL_SECONDS = 1.0

SETTINGS = {
    # Dask gives a worker up for good that is away some time after a death, be it because it died once more.
    "distributed.deploy.lost-worker-timeout": "365 days",
    # It takes a stage away from workers that have no task for it at the moment, and sends it again later.
    "distributed.scheduler.active-memory-manager.start": False,
}

HIDDEN = "127.0.0.1:0"

NOISY = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


@contextmanager
def connected(address: str | None, jobs: int) -> Iterator[Client]:
    """A client of the cluster at `address`, or of a new one; nothing of it is left afterwards."""
    with ExitStack() as stack:
        if address is None:
            ours = stack.enter_context(_local_cluster(jobs)).scheduler_address
            yield stack.enter_context(_client(ours))
        else:
            client = stack.enter_context(_client(address))
            _check_versions(client, address)
            yield client


@contextmanager
def _client(address: str) -> Iterator[Client]:
    if address.startswith("tls://") and not Security().get_connection_args("client").get("ssl_context"):
        raise InvalidInput(f"{address} needs certificates; dask's settings name them (distributed.comm.tls)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VersionMismatchWarning)  # We look for ourselves.
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ImportError) as error:
        raise InvalidInput(f"no dask scheduler answers at {address}: {error}") from None
    with client:
        yield client


@contextmanager
def _local_cluster(jobs: int) -> Iterator[LocalCluster]:
    """A cluster of `jobs` processes that only this machine can reach."""
    with dask.config.set(SETTINGS), ThreadPoolExecutor(1) as pool:
        with deaf_to_interrupts():
            # In a thread, which Ctrl-C cannot stop half way; its children inherit that they are deaf.
            starting = pool.submit(
                LocalCluster,
                n_workers=jobs,
                threads_per_worker=1,
                memory_limit=None,
                silence_logs=logging.CRITICAL,
                # No dashboard; what answers in its place takes any free port. We count failures ourselves.
                scheduler_kwargs={"dashboard": False, "dashboard_address": HIDDEN, "allowed_failures": 0},
            )
        try:
            if failure := starting.exception():
                raise WorkFailed(
                    f"no dask cluster could be started on this machine ({failure}); in a script of your own, "
                    "start it under `if __name__ == '__main__':`"
                )
            yield starting.result()
        finally:
            if starting.exception() is None:
                cluster = starting.result()
                cluster.sync(_dismiss, cluster)
                cluster.close()


async def _dismiss(cluster: LocalCluster) -> None:
    nannies = cluster.workers.values()
    await asyncio.gather(
        *(nanny.close(timeout=FAREWELL_SECONDS) for nanny in nannies), return_exceptions=True
    )


def _installed() -> dict[str, str]:
    """Versions, and under `code` what tells apart two states of one version."""
    return installed_versions() | {
        "code": code_hash("firstclick.experiments.loop", *policy_classes().values())
    }


def _check_versions(client: Client, address: str) -> None:
    """Refuse a cluster that lacks firstclick, or whose results could differ from ours in the last bits."""
    ours = _installed()
    try:
        theirs = client.run(_installed)
        theirs["its scheduler"] = client.run_on_scheduler(_installed)
    except Exception as error:  # Whatever went wrong over there, dask makes its own errors of it.
        raise InvalidInput(
            f"{address}: the dask cluster cannot run firstclick ({error}); install firstclick "
            f"{ours['firstclick']} on its scheduler and on all its workers"
        ) from None
    if len(theirs) == 1:
        raise InvalidInput(f"{address}: the dask cluster has no workers; start one: `dask worker {address}`")
    for who, versions in theirs.items():
        for name in ("firstclick", "code", "numpy", "numba", "platform"):
            if versions[name] != ours[name]:
                raise InvalidInput(
                    f"{address}: {who} has {name} {versions[name]}, this machine {ours[name]}; results are "
                    "equal bit for bit only where these are the same"
                )


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing that dask has to say about dying workers reaches the terminal; we say it ourselves."""
    loggers = [logging.getLogger(name) for name in NOISY]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
