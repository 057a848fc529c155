"""Parameters declared once: constructor, bounds check, command line syntax, docs and labels.

class CascadeUCB1(Policy):
    name = "cascade-ucb1"
    radius: float = param(1.5, "weight of the confidence radius", above=0)

>>> from firstclick.policies.cascade_ucb1 import CascadeUCB1
>>> CascadeUCB1(radius=0.5).label
'cascade-ucb1:radius=0.5'
>>> CascadeUCB1.from_text({"radius": "0.5"}).radius  # what the command line gives
0.5
"""

import dataclasses
import difflib
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Self, dataclass_transform

from firstclick.errors import InvalidInput, UnknownName
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import in_powers

# Kernels compute with 64 bits.
LARGEST_INT = 2**64 - 1

YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

# What a paper may assume known. A comparison knows it of its worlds, and fills it in.
FACTS = ("horizon", "1/horizon", "examination", "topics", "segments")


@dataclass(frozen=True)
class Rule:
    """What a parameter's value must satisfy, and its sentence in the docs."""

    help: str
    # float, int, bool, str (one of `words`, or any text without them), Path, or tuple (several floats)
    kind: type
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    words: tuple[str, ...] = ()
    optional: bool = False
    told: str = ""  # which of FACTS this is; a comparison fills it in unless it was given

    def __post_init__(self) -> None:
        if self.told and self.told not in FACTS:
            raise TypeError(f"told must be one of {', '.join(FACTS)}, got {self.told!r}")

    def describe(self) -> str:
        """The rule in words: 'above 0', 'one of a, b'."""
        if self.kind is str:
            return "one of " + ", ".join(self.words) if self.words else "text"
        if self.kind in (bool, Path):
            return "true or false" if self.kind is bool else "the path of a file"
        limits = [("above", self.above), ("at least", self.at_least)]
        limits += [("below", self.below), ("at most", self.at_most)]
        text = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
        if self.kind is int:
            text = ("a whole number " + text).rstrip()
        elif not text:
            text = "a number"
        return text + "".join(f" or '{word}'" for word in self.words)

    def check(self, owner: str, name: str, value: Any) -> Any:
        """The value in its one normal form, or InvalidInput."""
        if value is None and self.optional:
            return None
        if isinstance(value, str) and value in self.words:
            return value
        try:
            if self.kind in (str, bool, Path):
                taken: Any = (str, Path) if self.kind is Path else self.kind
                if self.words or not isinstance(value, taken) or value == "":
                    raise ValueError
                return Path(value) if self.kind is Path else value
            if self.kind is tuple:
                return tuple(self._number(float, part) for part in value)
            return self._number(self.kind, value)
        except (TypeError, ValueError, OverflowError):
            shown = quoted(value)
            if isinstance(value, float) and not math.isfinite(value):
                shown += ", which is not finite"
            elif self.kind is not bool and isinstance(value, int) and abs(value) > LARGEST_INT:
                shown += f", which is beyond {in_powers(LARGEST_INT)}"
            problem = f"must be {self.describe()}, got {shown}"
            raise InvalidInput(problem, name, owner) from None

    def _number(self, kind: type, value: Any) -> Any:
        # Text is for `parse`; NumPy's numbers are Real, its bool is not.
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError
        number = kind(value)
        within = (
            math.isfinite(number)
            and (kind is float or (number == value and abs(number) <= LARGEST_INT))
            and (self.above is None or number > self.above)
            and (self.at_least is None or number >= self.at_least)
            and (self.below is None or number < self.below)
            and (self.at_most is None or number <= self.at_most)
        )
        if not within:
            raise ValueError
        return number

    def parse(self, text: str) -> Any:
        """What the command line wrote, ready for `check`; several numbers are separated by '/'."""
        if self.kind is tuple:
            return tuple(_number_in(part) for part in text.split("/"))
        if self.kind is bool:
            word = text.strip().lower()
            return True if word in YES else False if word in NO else text
        return text if text in self.words or self.kind in (str, Path) else _number_in(text)


def _number_in(text: str) -> float | str:
    """The number that the text writes, or the text itself, for `check` to refuse."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def param(default: Any, help: str, *, kind: type | None = None, **rule: Any) -> Any:
    """Declare a parameter of a policy or world: its default, its description and its rule.

    >>> from firstclick import make_policy
    >>> make_policy("cascade-lin-ts:sigma=0.5").sigma
    0.5

    Args:
        default: The default; None makes the parameter optional.
        help: One line for the docs.
        kind: The type; by default that of `default`.
        **rule: Bounds (`above`, `at_least`, `below`, `at_most`), the allowed `words`, or `told` for a value
            that a paper assumes known and `firstclick compare` fills in.
    """
    optional = default is None
    kind = kind or type(default)
    return dataclasses.field(
        default=default, metadata={"rule": Rule(help=help, kind=kind, optional=optional, **rule)}
    )


_definitions = itertools.count(1)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(param,))
class Declared:
    """Something with a name and declared parameters: a policy, or a world that can be built."""

    name: ClassVar[str] = ""
    # Counts up with every class: of two with one name the registry takes the later.
    defined: ClassVar[int] = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        cls.defined = next(_definitions)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            if "rule" not in field.metadata:
                raise TypeError(
                    f"{cls.__name__}.{field.name} must be declared with param(...), or as a ClassVar"
                )

    def __post_init__(self) -> None:
        for name, rule in self.rules().items():
            object.__setattr__(self, name, rule.check(self.name, name, getattr(self, name)))

    @classmethod
    def rules(cls) -> dict[str, Rule]:
        """The parameters in the order they were declared."""
        return {field.name: field.metadata["rule"] for field in dataclasses.fields(cls)}  # type: ignore[arg-type]

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        return {field.name: field.default for field in dataclasses.fields(cls)}  # type: ignore[arg-type]

    @classmethod
    def from_text(cls, texts: Mapping[str, str]) -> Self:
        """Made from `name=value` pairs as the command line has them."""
        rules = cls.rules()
        for name in texts:
            if name not in rules:
                known = ", ".join(rules) or "none"
                raise UnknownName(
                    f"{cls.name} has no parameter {name!r}{did_you_mean(name, rules)} (parameters: {known})"
                )
        return cls(**{name: rules[name].parse(text) for name, text in texts.items()})

    @property
    def settings(self) -> dict[str, Any]:
        """Every parameter and its value."""
        return {name: getattr(self, name) for name in self.rules()}

    @property
    def label(self) -> str:
        """The name and what differs from the defaults, as the command line would write it."""
        defaults = self.defaults()
        changed = [
            f"{name}={_text(value)}"
            for name, value in self.settings.items()
            if name in defaults and value != defaults[name]
        ]
        return self.name + (":" + ",".join(changed) if changed else "")


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(_text(part) for part in value)
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for the end of an error message, empty when nothing is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_distinct(kind: str, names: Sequence[str]) -> None:
    """Refuse a name that comes twice."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidInput(f"{kind} {name!r} is given twice")


def check_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The name, if it is one of those known; else UnknownName with the nearest, or all of them."""
    names = list(known)
    if name not in names:
        raise UnknownName(
            f"{quoted(name)} is unknown{did_you_mean(name, names) or f'; known are {shorten(names)}'}", kind
        )
    return name


def shorten(names: Sequence[str], most: int = 14) -> str:
    """The names for a sentence; of many the first and the number of the others.

    >>> shorten(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def split_bare(spec: str, names: Iterable[str], bare: str) -> dict[str, str]:
    """The pairs of `name:TEXT,param=value,...`, where TEXT is the value of `bare`.

    Only a comma before a known parameter and its '=' ends a value, so that a path may have commas.

    >>> split_bare("fitted:my,fits/a=b.npz,segment=tea, cups", ["file", "segment"], "file")
    {'file': 'my,fits/a=b.npz', 'segment': 'tea, cups'}
    """
    text = spec.partition(":")[2]
    first, *others = re.split(rf"(?:^|,)({'|'.join(map(re.escape, names))})=", text)
    pairs = [(bare, first)] if first else []
    pairs += zip(others[::2], others[1::2], strict=True)
    check_distinct(f"{spec!r}: parameter", [name for name, _ in pairs])
    for name, value in pairs:
        if not value:
            raise InvalidInput(f"{spec!r}: expected NAME:param=value,..., got {name!r} without a value")
    return dict(pairs)


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """`name:a=1,b=2` as its name and its pairs."""
    name, _, rest = spec.partition(":")
    pairs: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise InvalidInput(f"{spec!r}: expected NAME:param=value,..., got {part!r} without a value")
        if key.strip() in pairs:
            raise InvalidInput(f"{spec!r}: {key.strip()} is given twice")
        pairs[key.strip()] = value.strip()
    return name.strip(), pairs
