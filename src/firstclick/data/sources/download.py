"""Public data sets from their official addresses: resumed, checked, and there whole or not at all."""

import hashlib
import shutil
import zipfile
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from firstclick._version import __version__
from firstclick.data.sources import Progress, silent
from firstclick.errors import InvalidInput, UnknownName, WorkFailed
from firstclick.files.writing import folder_draft, write_whole
from firstclick.parameters import did_you_mean

TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Archive:
    """A zip file at an address, with the checksum its owner states and the terms to agree to first."""

    title: str
    address: str
    md5: str
    # The zip file holds `members` in `folder`; nothing else is taken out of it.
    folder: str
    members: tuple[str, ...]
    # The source that reads it.
    source: str
    terms: str

    def lacks(self, folder: Path) -> list[str]:
        """The members that are not below `folder` yet."""
        return [name for name in self.members if not (folder / self.folder / name).is_file()]


ARCHIVES = {
    "movielens-1m": Archive(
        title="MovieLens 1M",
        address="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
        md5="c4d9eecfca2ab87c1945afe126590906",
        folder="ml-1m",
        members=("README", "movies.dat", "ratings.dat", "users.dat"),
        source="movielens",
        terms="""\
MovieLens 1M belongs to GroupLens Research at the University of Minnesota. It
is free for research. Its terms, in our words:
  - Do not pass the data on unless they allow it.
  - Do not use it commercially or to earn money unless they allow it.
  - Do not suggest that the university or GroupLens endorses you.
  - Cite it in what you publish: F. M. Harper and J. A. Konstan (2015), The
    MovieLens Datasets: History and Context, ACM TiiS 5(4), article 19.
They promise nothing about its correctness. What counts is their own text:
  https://files.grouplens.org/datasets/movielens/ml-1m-README.txt
""",
    ),
}

# Data whose owners want to be asked by each user.
BY_HAND = {
    "yelp": "Yelp gives its data to those who agree to its terms on https://www.yelp.com/dataset; get the "
    "JSON files there, put yelp_academic_dataset_business.json and yelp_academic_dataset_review.json into "
    "one folder, and name it with --data",
    "million-song": "the Million Song files have several owners; get train_triplets.txt (Taste Profile) and "
    "unique_tracks.txt on http://millionsongdataset.com and a genre file such as msd_tagtraum_cd2c.cls on "
    "https://www.tagtraum.com/msd_genre_datasets.html, put them into one folder, and name it with --data",
}


def find_archive(name: str) -> Archive:
    """The archive of this name; for data that cannot be fetched, InvalidInput says how to get it."""
    if name in BY_HAND:
        raise InvalidInput(f"{name} cannot be downloaded: {BY_HAND[name]}")
    if name not in ARCHIVES:
        hint = did_you_mean(name, ARCHIVES) or "; known are " + ", ".join([*ARCHIVES, *BY_HAND])
        raise UnknownName(f"unknown download {name!r}{hint}")
    return ARCHIVES[name]


def download(
    archive: str | Archive, folder: Path, progress: Progress = silent, *, timeout: float = TIMEOUT
) -> Path:
    """The archive's own folder is in `folder`, checked and whole; its path.

    What is there already is not fetched again. A download that was cut leaves a `.part` file, from which
    the next one goes on. With the wrong checksum nothing is kept.
    """
    if isinstance(archive, str):
        archive = find_archive(archive)
    target = folder / archive.folder
    lacks = archive.lacks(folder)
    if not lacks:
        return target
    if target.exists():
        raise InvalidInput(f"{target} is there but has no {lacks[0]}; move it away, or name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be made: {error.strerror or error}") from None
    part = folder / f"{archive.folder}.zip.part"
    _fetch(archive.address, part, progress, timeout)
    _check(archive, part)
    _unpack(archive, part, target)
    part.unlink()
    return target


def _fetch(address: str, part: Path, progress: Progress, timeout: float) -> None:
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": f"firstclick/{__version__}"}
    if done:
        headers["Range"] = f"bytes={done}-"
    response = _open(Request(address, headers=headers), timeout)
    if response is None:
        return
    with response:
        goes_on = response.status == HTTPStatus.PARTIAL_CONTENT
        done = done if goes_on else 0
        total = done + int(response.headers.get("Content-Length", 0))
        try:
            with part.open("ab" if goes_on else "wb") as file:
                while block := _read(response, done, total):
                    file.write(block)
                    done += len(block)
                    progress(done, total)
        except OSError as error:
            raise WorkFailed(f"{part} cannot be written: {error.strerror or error}") from None
    if done < total:
        raise _cut("the connection ended", done, total)


def _open(request: Request, timeout: float) -> HTTPResponse | None:
    """The server's answer, or None if it has nothing beyond what we have."""
    host = urlsplit(request.full_url).netloc
    try:
        response: HTTPResponse = urlopen(request, timeout=timeout)
    except HTTPError as error:
        with error:
            # The checksum will tell whether what we have is all of it.
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and request.has_header("Range"):
                return None
            raise WorkFailed(f"{request.full_url}: the server says {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise WorkFailed(f"{host} cannot be reached: {said}; try again when it can") from None
    return response


def _read(response: HTTPResponse, done: int, total: int) -> bytes:
    try:
        return response.read(_BLOCK)
    except (OSError, HTTPException) as error:
        raise _cut(f"the connection failed ({str(error) or type(error).__name__})", done, total) from None


def _cut(what: str, done: int, total: int) -> WorkFailed:
    of = f" of {total:,}" if total else ""
    return WorkFailed(f"{what} after {done:,}{of} bytes, which are kept; run it again to go on from there")


def _check(archive: Archive, part: Path) -> None:
    with part.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != archive.md5:
        part.unlink()
        raise WorkFailed(
            f"{archive.address}: expected a file with md5 {archive.md5}, got {found}; it was "
            "thrown away: run it again, and if that does not help, ask the owner of the address"
        )


def _unpack(archive: Archive, part: Path, target: Path) -> None:
    draft = folder_draft(target.parent, target.name)
    try:
        draft.mkdir()
        with zipfile.ZipFile(part) as packed:
            for name in archive.members:
                # By our own names, never by the file's: those could lead out of the folder.
                write_whole(draft / name, packed.read(f"{archive.folder}/{name}"))
        draft.replace(target)
    except (KeyError, zipfile.BadZipFile) as error:
        part.unlink()
        raise WorkFailed(f"{archive.address}: not the expected zip file ({error.args[0]})") from None
    except OSError as error:
        raise WorkFailed(f"{target} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
