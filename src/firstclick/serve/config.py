"""The settings of a server, declared once: flags, environment variables and a TOML file set the same ones.

A flag comes before FIRSTCLICK_<NAME>, that before the file, that before the default.
"""

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from firstclick.errors import InvalidInput, UnknownName
from firstclick.files.reading import read_toml
from firstclick.parameters import Rule, check_name, param
from firstclick.registry import DEFAULT_POLICY, make_policy
from firstclick.validation.duration import check_wait
from firstclick.validation.quoting import quoted

PREFIX = "FIRSTCLICK_"
DEFAULT = "default"
HIDDEN = "***"

# What comes before a password, and the password: postgresql://user:HERE@host, or password=HERE.
PASSWORDS = (
    re.compile(r"(?<=://)([^/@:\s]*:)(\S+)(?=@)"),
    re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE),
)
# An origin as browsers write it: https://shop.example, http://127.0.0.1:8000, http://[::1]:8000.
_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::([1-9][0-9]*))?")
DEFAULT_PORTS = {"http": "80", "https": "443"}
# What no comment of a TOML file may hold.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Origins(Rule):
    """Where web pages come from: scheme, host and port, as a browser sends them."""

    def describe(self) -> str:
        return "origins of web pages, such as https://shop.example"

    def check(self, owner: str, name: str, value: Any) -> tuple[str, ...]:
        given = [value] if isinstance(value, str) or not hasattr(value, "__iter__") else list(value)
        for origin in given:
            if not (isinstance(origin, str) and _is_origin(origin)):
                hint = _right_form(origin) if isinstance(origin, str) else ""
                raise InvalidInput(f"must be {self.describe()}, got {quoted(origin)}{hint}", name, owner)
        return tuple(given)

    def parse(self, text: str) -> list[str]:
        return text.replace(",", " ").split()


@dataclass(frozen=True)
class Wait(Rule):
    """A time to wait for the outcome of a slate: 90s, 30m, 2h, or a number of seconds."""

    def describe(self) -> str:
        return "a time such as 90s, 30m or 2h"

    def check(self, owner: str, name: str, value: Any) -> float:
        return check_wait(value, name, owner)

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class Columns(Rule):
    """Columns of a catalog by name."""

    def describe(self) -> str:
        return "names of columns"

    def check(self, owner: str, name: str, value: Any) -> tuple[str, ...]:
        given = [value] if isinstance(value, str) or not hasattr(value, "__iter__") else list(value)
        for column in given:
            if not (isinstance(column, str) and column.strip()):
                raise InvalidInput(f"must be {self.describe()}, got {quoted(column)}", name, owner)
        return tuple(given)

    def parse(self, text: str) -> list[str]:
        return [name.strip() for name in text.split(",")]


def columns(help: str) -> Any:
    """A setting that names columns of the catalog."""
    return field(default=(), metadata={"rule": Columns(help, tuple)})


def _is_origin(text: str) -> bool:
    """Whether a browser would send this: it has one way to write each origin, and is compared as text."""
    found = _ORIGIN.fullmatch(text)
    if not found:
        return False
    scheme, host, port = found.groups()
    if port and (port == DEFAULT_PORTS[scheme] or int(port[:6]) > 65535):
        return False
    # A host that ends in a number is an address.
    if host.startswith("[") or host.rpartition(".")[2].isdigit():
        try:
            return str(ipaddress.ip_address(host.strip("[]"))) == host.strip("[]")
        except ValueError:
            return False
    return True


def _right_form(text: str) -> str:
    """What to do about an origin that no browser sends, if that is plain."""
    scheme, _, rest = text.partition("://")
    bare = text.removesuffix(f":{DEFAULT_PORTS.get(scheme)}")
    found = [
        ("*" in text, "list each origin, as there are no wildcards"),
        (bool(re.search(r"[\s,;]", text)), "give each origin by itself"),
        (not text.isascii(), "write the host in punycode, https://xn--..."),
        (text != text.lower(), "write it in lower case"),
        (scheme not in DEFAULT_PORTS, "begin with https:// or http://"),
        (bool(re.search("[/?#]", rest)), "leave out the path"),
        (bare != text, f"leave out the default port: {bare}"),
    ]
    return next((f"; {hint}" for wrong, hint in found if wrong), "")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server is started with."""

    catalog: Path | None = param(  # noqa: RUF009
        None,
        "items of the model that is created at the first start: CSV, TSV, Parquet or JSON lines",
        kind=Path,
    )
    id: str | None = param(None, "column of ids in the catalog, if none is called id", kind=str)
    ignore: tuple[str, ...] = columns("column of the catalog to leave out; repeatable")
    category: tuple[str, ...] = columns("column to read as a category, such as a year")
    number: tuple[str, ...] = columns("column to read as a number; other cells count as missing")
    embedding: tuple[str, ...] = columns("columns PREFIX0, PREFIX1, ... are one embedding")
    encoding: str | None = param(None, "encoding of the catalog, such as latin-1; UTF-8 by default", kind=str)
    policy: str = param(DEFAULT_POLICY, "policy of that model, NAME[:param=value,...]")
    k: int = param(6, "length of a slate of that model", at_least=1, at_most=255)
    seed: int | None = param(None, "random seed of that model; drawn by default", kind=int, at_least=0)
    explore: float = param(0.0, "share of slates drawn uniformly among all items", at_least=0, at_most=1)
    baseline: Path | None = param(  # noqa: RUF009
        None, "list that is shown today, one id per line, best first: the policy starts beside it", kind=Path
    )
    max_loss: float = param(
        0.05, "largest share of the baseline's clicks that may be lost; 1: no limit", above=0, at_most=1
    )
    warm_start: Path | None = param(  # noqa: RUF009
        None,
        "learn once, at the first start, from a log (JSON lines) or a fitted click model (.npz)",
        kind=Path,
    )
    no_click_after: float = field(
        default=0.0,
        metadata={
            "rule": Wait(
                "a slate without feedback after this time, such as 30m, counts as not clicked", float
            )
        },
    )
    name: str = param("default", "name of that model")
    # Not in a repr: it may hold a password.
    store: str = field(
        default="firstclick.db",
        metadata={"rule": Rule("SQLite file, or postgresql://...", str)},
        repr=False,
    )
    host: str = param("127.0.0.1", "address to listen on; any but loopback needs API keys")
    port: int = param(8000, "port to listen on; 0 for a free one", at_least=0, at_most=65535)
    demo: bool = param(False, "serve a café's catalog to simulated users who click")
    token_days: float = param(7.0, "days for which feedback for a slate is accepted", above=0, at_most=36500)
    max_batch: int = param(512, "largest number of events per commit", at_least=1)
    max_queue: int = param(10_000, "events that may wait for a commit; more are refused", at_least=1)
    max_body: int = param(1_000_000, "largest request body, in bytes", at_least=1000)
    max_bulk_body: int = param(64_000_000, "largest body of bulk requests, in bytes", at_least=1000)
    max_import: int = param(8_000_000_000, "largest file to import, in bytes", at_least=1000)
    max_requests: int = param(1000, "requests handled at one time; more are refused", at_least=1)
    requests_per_second: float = param(
        0.0, "requests per second per API key, or per address; 0 for no limit", at_least=0
    )
    page_requests_per_second: float = param(
        20.0, "requests per second per address with a page key; 0 for no limit", at_least=0
    )
    behind_proxy: bool = param(
        False, "tell callers apart by the last X-Forwarded-For address, set by your proxy; needs API keys"
    )
    snapshot_events: int = param(10_000, "write a snapshot after this many events", at_least=1)
    snapshot_seconds: float = param(
        60.0, "write a snapshot after this many seconds, if there were events", above=0
    )
    max_lag: float = param(1.0, "seconds that a replica may lag behind and still be ready", above=0)
    poll_seconds: float = param(0.2, "seconds between polls for events of other replicas", above=0)
    durability: str = param(
        "full", "full, or relaxed: a power cut may lose clicks of the last moments",
        words=("full", "relaxed"),
    )  # fmt: skip
    allow_origin: tuple[str, ...] = field(
        default=(), metadata={"rule": Origins("origins of web pages that may call from a browser", tuple)}
    )
    log_level: str = param(
        "info", "how much to log to stderr", words=("debug", "info", "warning", "error")
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name, rule in self.rules().items():
            object.__setattr__(self, name, rule.check("serve", name, getattr(self, name)))
        make_policy(self.policy)
        if self.demo and self.catalog is not None:
            raise InvalidInput(
                f"demo brings its own catalog; leave out demo, or catalog {str(self.catalog)!r}"
            )
        if self.max_bulk_body < self.max_body:
            raise InvalidInput(
                f"max_bulk_body must be at least max_body ({self.max_body}), got {self.max_bulk_body}"
            )
        if any(found[2] == HIDDEN for pattern in PASSWORDS for found in pattern.finditer(self.store)):
            raise InvalidInput(
                f"store has {HIDDEN} in place of its password; write the password, or give the store by "
                f"{variable('store')}"
            )

    @classmethod
    def rules(cls) -> dict[str, Rule]:
        """The settings in the order they are declared; a rule has `help`, `check` and `parse`."""
        return {one.name: one.metadata["rule"] for one in fields(cls)}


def flag(name: str) -> str:
    """The option of the command line that sets this."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """The environment variable that sets this."""
    return PREFIX + name.upper()


def load_settings(
    flags: Mapping[str, Any], env: Mapping[str, str], file: Path | None = None
) -> tuple[Settings, dict[str, str]]:
    """The settings, and where each came from: "flag", a variable, the file's name or "default".

    A flag that is None or empty was not given, nor was an empty variable. Variables that belong to no
    setting are left alone, as others have that prefix too; in the file they are refused.
    """
    rules = Settings.rules()
    for name in flags:
        check_name("setting", name, rules)
    values: dict[str, Any] = {}
    origins = dict.fromkeys(rules, DEFAULT)

    def take(name: str, value: Any, owner: str, shown: str, origin: str) -> None:
        values[name] = rules[name].check(owner, shown, value)
        origins[name] = origin

    # Later ones win. All are checked, or a mistake would come to light when the flag above it is left out.
    content = _in_file(file) if file else {}
    for name in rules:
        if file and name in content:
            take(name, content[name], file.name, name, file.name)
    for name, rule in rules.items():
        if text := env.get(variable(name), ""):
            take(name, rule.parse(text), "environment", variable(name), variable(name))
    for name, rule in rules.items():
        if (value := flags.get(name)) not in (None, (), []):
            parsed = rule.parse(value) if isinstance(value, str) else value
            take(name, parsed, "serve", flag(name), "flag")
    return Settings(**values), origins


def as_toml(settings: Settings, origins: Mapping[str, str]) -> str:
    """A file that `load_settings` reads, each line with where its value came from; no password is shown."""
    lines = ["# Settings of firstclick serve. Flags come first, then FIRSTCLICK_<NAME>, then this file."]
    for name, rule in Settings.rules().items():
        value = getattr(settings, name)
        line = f"# {name} is not set" if value is None else f"{name} = {_in_toml(name, value)}"
        origin = _UNSEEN.sub("?", origins.get(name, DEFAULT))
        lines.append(f"{line:36}  # ({origin}) {rule.help}")
    return "\n".join(lines) + "\n"


def shown_store(store: str) -> str:
    """The store as people may see it: *** for its password."""
    for pattern in PASSWORDS:
        store = pattern.sub(lambda found: found[1] + HIDDEN, store)
    return store


def _in_file(path: Path) -> dict[str, Any]:
    content = read_toml(path)
    for key in content:
        try:
            check_name("setting", key, Settings.rules())
        except UnknownName as error:
            raise error.within(path.name) from None
    return content


def _in_toml(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_in_toml(name, part) for part in value) + "]"
    if isinstance(value, str | Path):
        text = shown_store(str(value)) if name == "store" else str(value)
        # JSON's texts are TOML's, but for this one character.
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
