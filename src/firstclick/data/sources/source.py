"""What every source of data has in common: a name, parameters, a place to look, and `load`."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from firstclick.data.interactions import Interactions
from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress as Progress
from firstclick.files.progress import silent as silent
from firstclick.parameters import Declared, split_spec
from firstclick.registry import find, named


class Source(Declared, ABC):
    """A data set that can be asked for by name, as in `movielens:above=3`; one file in this folder each."""

    # How titles, tables and figures call it.
    title: ClassVar[str] = ""
    # Made up from a seed: needs no files, and says so in its title.
    synthetic: ClassVar[bool] = False
    # Folders that the files usually lie in, below the one that is given.
    folders: ClassVar[tuple[str, ...]] = ()
    # The names of its files by what they hold, in each form that the data comes in.
    forms: ClassVar[tuple[dict[str, str], ...]] = ()

    def find(self, path: Path | None) -> dict[str, Path]:
        """The files by what they hold, in `path` or in one of the usual folders there; else InvalidInput."""
        if path is None:
            raise InvalidInput(f"{self.name} needs the path of its files: {self.wanted()}")
        if not path.exists():
            raise InvalidInput(f"{path}: no such file or folder")
        tried = [path, *(path / folder for folder in self.folders)]
        for folder in tried:
            if files := self.files_in(folder):
                return files
        raise InvalidInput(f"{path} has no {self.title} data: expected {self.wanted()}")

    def files_in(self, folder: Path) -> dict[str, Path]:
        """The files that `load` reads, by what they hold, if they are all in this folder; else nothing."""
        for form in self.forms:
            files = {what: folder / name for what, name in form.items()}
            if all(file.is_file() for file in files.values()):
                return files
        return {}

    def wanted(self) -> str:
        """The files that `find` looks for, in words."""
        return ", or ".join(" and ".join(form.values()) for form in self.forms) or "nothing"

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
