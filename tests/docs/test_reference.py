"""The Python reference: everything public is there, in an order for readers, with all arguments explained."""

import re

import pytest
from api_pages import PACKAGES, api_page, check_order, path_of
from http_page import SECTIONS, http_page

import firstclick
from firstclick.serve.http.routes import ROUTES

# It is in requirements/docs.txt, which make test-long installs.
needs_griffe = pytest.mark.long
# Kernels and states are explained on docs/research/add_a_policy.md.
FOR_AUTHORS = {"Policy", "LinearPolicy", "CountPolicy", "ConfidencePolicy"}


def shown():
    """Every class, function and method that the reference shows and users call."""
    from api_text import code, is_shown

    for package, (_, sections) in PACKAGES.items():
        for name in (name for names in sections.values() for name in names):
            found = code()[path_of(package, name).removeprefix("firstclick.")]
            found = found.final_target if found.is_alias else found
            yield found
            if found.is_class and name not in FOR_AUTHORS:
                yield from (one for word, one in found.members.items() if is_shown(word, one))


def explained(found):
    """The names under Args and Attributes."""
    parsed = found.docstring.parse("google")
    parts = [section.value for section in parsed if section.kind.value in ("parameters", "attributes")]
    return {one.name.lstrip("*") for part in parts for one in part}


@needs_griffe
def test_every_argument_is_explained():
    lacking = {}
    for found in shown():
        inherited = found.is_class and "__init__" not in found.members
        if found.is_attribute or found.name in FOR_AUTHORS or inherited:
            continue
        arguments = {one.name for one in found.parameters} - {"self", "cls"}
        if missing := arguments - explained(found):
            lacking[found.path] = missing
    assert lacking == {}


def test_a_public_name_without_a_place_is_noticed():
    check_order("firstclick", firstclick.__all__)
    with pytest.raises(AssertionError, match=r"api_pages.py and __all__ differ in \['"):
        check_order("firstclick", [*firstclick.__all__, "Novelty"])


@needs_griffe
def test_pages_for_programs_have_no_directive_and_no_internals():
    from api_text import api_text
    from site_hooks import DIRECTIVE

    for package in PACKAGES:
        assert ":::" not in DIRECTIVE.sub("", api_page(package)), package
    # In the source these are `recommend = _waiting(Flow.recommend)`.
    assert "Client.put_items(items: Iterable[Item]) -> int\n" in api_text("firstclick.client.Client")
    assert "kernel_rows" not in api_text("firstclick.Catalog")
    assert "write_with_copies" not in api_text("firstclick.serve.Service")


def test_every_route_has_a_title_of_its_own_under_a_heading():
    routes = [route for route in ROUTES if route.in_document]
    assert {route.section for route in routes} == set(SECTIONS)
    titles = [route.title for route in routes]
    assert len(set(titles)) == len(titles)
    headings = re.findall(r"^### (.*)$", http_page(), re.MULTILINE)
    assert [one for one in headings if "`" not in one] == [
        route.title for section in SECTIONS for route in routes if route.section == section
    ]
