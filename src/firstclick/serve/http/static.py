"""The dashboard's files: read once, known by name. No path of a request ever reaches a file system."""

import hashlib
from functools import cache
from importlib.resources import files

from firstclick.serve.http.messages import Answer, Asked

TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
}
# Pages with an address of their own; every other file is at /ui/ and its name.
PAGES = {"page.html": "/", "api.html": "/ui/api"}

# Nothing from elsewhere, no script within the page, nobody may frame it.
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [(b"content-security-policy", POLICY), (b"referrer-policy", b"no-referrer")]


@cache
def static_files() -> dict[str, Answer]:
    """Path to answer, of all files of the dashboard."""
    found: dict[str, Answer] = {}
    for file in files("firstclick.serve").joinpath("dashboard").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in TYPES and file.is_file():
            path = PAGES.get(file.name, f"/ui/{file.name}")
            content = file.read_bytes()
            tag = (b"etag", b'"%b"' % hashlib.sha256(content).hexdigest()[:16].encode())
            found[path] = Answer(content, 200, [tag, *HEADERS], TYPES[suffix], cache=b"no-cache")
    return dict(sorted(found.items()))


def send_file(file: Answer, asked: Asked) -> Answer:
    """The file, or 304 if the browser's copy is current. `no-cache`: it may keep one, and asks each time."""
    (_, tag), *_ = file.headers
    # A substring: the header may list several tags, and a proxy that compresses puts W/ before them.
    return file._replace(content=b"", code=304) if tag in asked.known_tags else file
