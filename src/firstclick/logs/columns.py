"""Which column of a table is which: names that people use, and names that are given."""

from collections.abc import Mapping, Sequence

from firstclick.errors import InvalidInput, UnknownName

# What a column means, and what it is often called. The first word is ours.
SLATE_COLUMNS: dict[str, tuple[str, ...]] = {
    "items": ("items", "slate", "ranking", "item_ids", "shown"),
    "clicks": ("clicks", "clicked_positions"),
    "click": ("click", "clicked", "click_position", "clicked_position"),
    "reported": ("reported",),
    "examined": ("examined", "seen"),
    "segment": ("segment", "query", "query_id", "qid"),
    "candidates": ("candidates",),
    "propensity": ("propensity", "pscore", "propensity_score"),
    "propensities": ("propensities", "prefix_propensities"),
    "time": ("time", "timestamp", "received", "ts"),
}
IMPRESSION_COLUMNS: dict[str, tuple[str, ...]] = {
    "view": (
        "view", "view_id", "page_view", "slate_id", "impression_id", "request_id", "session_id", "session",
        "srch_id", "sessionid",
    ),
    "position": ("position", "pos", "rank", "slot"),
    "item": ("item", "item_id", "doc_id", "document", "url", "prop_id"),
    "clicked": ("clicked", "click", "click_bool"),
    "examined": ("examined", "seen"),
    "segment": ("segment", "query", "query_id", "qid"),
    "propensity": ("propensity", "pscore", "propensity_score", "pscore_cascade"),
    "time": ("time", "timestamp", "ts", "date_time"),
}  # fmt: skip
ROLES = tuple(dict.fromkeys([*SLATE_COLUMNS, *IMPRESSION_COLUMNS]))


def find_columns(
    table: str, names: Sequence[str], known: Mapping[str, tuple[str, ...]], given: Mapping[str, str]
) -> dict[str, str]:
    """The column of each role that the table has, as the table calls it; those given come first."""
    unknown = [role for role in given if role not in ROLES]
    if unknown:
        raise InvalidInput(f"no column is called {unknown[0]!r} here; there are: {', '.join(ROLES)}")
    plain = {name.strip().casefold(): name for name in reversed(names)}
    found = {}
    for role, words in known.items():
        if role in given:
            if given[role].strip().casefold() not in plain:
                raise UnknownName(
                    f"{table} has no column {given[role]!r} for {role!r}; it has: {', '.join(names)}"
                )
            found[role] = plain[given[role].strip().casefold()]
        elif (word := next((word for word in words if word in plain), None)) is not None:
            found[role] = plain[word]
    taken = {name: role for role, name in found.items() if role in given}
    return {role: name for role, name in found.items() if taken.get(name, role) == role}
