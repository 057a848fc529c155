"""What every source of data has in common: a name, parameters, a place to look, and `load`."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from firstclick.data.interactions import Interactions
from firstclick.declaration import Declared, split_spec
from firstclick.errors import InvalidInput
from firstclick.registry import find, named

# progress(done, total), in bytes of the files read, or in rows made.
Progress = Callable[[int, int], Any]


def silent(done: int, total: int) -> None:
    """No progress is shown."""


class Source(Declared, ABC):
    """A data set that can be asked for by name, as in `movielens:above=3`; one file in this folder each."""

    # How titles, tables and figures call it.
    title: ClassVar[str] = ""
    # Made up from a seed: needs no files, and says so in its title.
    synthetic: ClassVar[bool] = False
    # Folders that the files usually lie in, below the one that is given.
    folders: ClassVar[tuple[str, ...]] = ()

    def find(self, path: Path) -> dict[str, Path]:
        """The files by what they hold, in `path` or in one of its usual folders; InvalidInput if not there."""
        tried = [path, *(path / folder for folder in self.folders)]
        for folder in tried:
            if files := self.files_in(folder):
                return files
        raise InvalidInput(f"{path} has no {self.title} data: expected {self.wanted()}")

    def files_in(self, folder: Path) -> dict[str, Path]:
        """The files that `load` reads, by what they hold, if they are all in this folder; else nothing."""
        return {}

    def wanted(self) -> str:
        """The files that `find` looks for, in words."""
        return "nothing"

    @abstractmethod
    def load(self, path: Path | None, progress: Progress = silent) -> Interactions:
        """Everything in the files at `path` as interactions; a synthetic source needs no path."""


def source_classes() -> dict[str, type[Source]]:
    """Every known source class by its name."""
    return named(Source)  # type: ignore[type-abstract]


def make_source(spec: str | Source) -> Source:
    """The source that `name:param=value,...` describes."""
    if isinstance(spec, Source):
        return spec
    name, texts = split_spec(spec)
    return find("source", name, source_classes()).from_text(texts)
