"""An extension of griffe: what the reference shows of the code, on the site and in the pages for programs."""

import re
from typing import Any

from griffe import (
    Class,
    Docstring,
    Extension,
    Function,
    Module,
    Object,
    Parameter,
    ParameterKind,
    Parameters,
)

# A line with >>>, and whatever follows it up to an empty line. Markdown takes >>> for quotations.
EXAMPLE = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)
FENCES = r"```pycon\n\1\n```"

# Members without an underscore that the rest of firstclick uses, and users do not. They are not public: see
# docs/stability.md.
INTERNAL = {
    "catalog.catalog.Catalog": (
        "arrays", "change", "completed", "features_as_given", "is_shown", "kernel_rows", "known_rows",
        "numbered_groups", "regroup", "restored", "rows_of", "show_as", "values_with",
    ),
    "catalog.catalog.Subset": ("rows_in",),
    "errors.FirstclickError": ("within",),
    "serve.service.Service": (
        "append", "count", "forget", "note_build", "send_feedback", "stop_if_worse", "write_with_copies",
    ),
    "wire.feedback.ClickReport": ("token",),
}  # fmt: skip


class Reference(Extension):
    """Put fences around examples, leave out what is internal, and find the methods of `Client`."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None and "```pycon" not in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(FENCES, obj.docstring.value)

    def on_class(self, *, cls: Class, **_: Any) -> None:
        if "NamedTuple" in map(str, cls.bases):
            add_constructor(cls)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        if pkg.path != "firstclick":
            return
        for path, names in INTERNAL.items():
            for name in names:
                del pkg[path].members[name]
        add_methods(pkg["client.client.Client"], pkg["client.flow.Flow"])


def add_constructor(cls: Class) -> None:
    """Griffe knows the arguments of dataclasses, and not those of NamedTuples."""
    fields = [one for one in cls.attributes.values() if one.annotation is not None]
    kind = ParameterKind.positional_or_keyword
    parameters = Parameters(
        *(Parameter(one.name, annotation=one.annotation, kind=kind, default=one.value) for one in fields)
    )
    cls.set_member("__init__", Function("__init__", parameters=parameters))


def add_methods(client: Class, flow: Class) -> None:
    """In the source they are `recommend = _waiting(Flow.recommend)`, which returns what its steps come to."""
    for name, member in list(client.members.items()):
        if not str(getattr(member, "value", "")).startswith("_waiting("):
            continue
        written = flow.members[name]
        method = Function(
            name,
            lineno=member.lineno,
            endlineno=member.endlineno,
            parameters=Parameters(*written.parameters),
            returns=written.returns.slice,  # T of Steps[T]
        )
        if written.docstring is not None:
            method.docstring = Docstring(written.docstring.value, parent=method)
        client.set_member(name, method)
