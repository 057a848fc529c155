"""The extras of firstclick: the packages of each, and the error where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from firstclick.errors import InvalidInput

# As in pyproject.toml, but by the names under which packages are imported.
EXTRAS = {
    "report": ("jinja2", "matplotlib"),
    "serve": ("httptools", "httpx", "msgspec", "prometheus_client", "uvicorn", "uvloop"),
    "postgresql": ("psycopg",),
    "pandas": ("pandas",),
    "dask": ("dask", "distributed"),
}


class MissingExtra(InvalidInput, ImportError):
    """A package is not installed; the message names the extra that installs it."""


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Import packages of an extra in here: a missing one becomes MissingExtra."""
    try:
        yield
    except ImportError as error:
        # Without its library in C, psycopg is there, but cannot be imported.
        missing = "psycopg" if "pq wrapper" in str(error) else (error.name or "").partition(".")[0]
        for extra, packages in EXTRAS.items():
            if missing in packages:
                raise MissingExtra(f"{what} needs {missing}: pip install 'firstclick[{extra}]'") from None
        raise
