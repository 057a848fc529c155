"""The site: it builds without a warning, finds words offline, asks no other server, and stays short."""

import re
from pathlib import Path

import pytest
from words import count_words

ROOT = Path(__file__).parents[2]
MOST_WORDS = 15_000
# What a newcomer types, and the page that must come first.
SEARCHES = {
    "docker": "service/deploy", "backup": "service/operate", "browser": "service/page_client",
    "cors": "service/security", "csv": "quickstart", "slow": "troubleshooting", "brand": "guide/diversity",
    "no click": "guide/clicks", "weekly": "guide/drift", "which policy": "guide/which_policy",
    "evaluate log": "guide/evaluating",
}  # fmt: skip


def test_the_site_is_short():
    assert sum(count_words().values()) <= MOST_WORDS


def test_no_page_promises_a_package_in_a_registry():
    # With an extra, pip takes what is installed and adds what the extra needs.
    promised = re.compile(r"pip install (?:-\S+ )*['\"]?firstclick(?!\[)")
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/tutorials/*.py")]:
        assert not promised.search(page.read_text(encoding="utf-8")), f"{page}: it is not in a registry"


@pytest.mark.long
def test_programs_find_every_page_as_markdown(site):
    links = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    assert len(links) > 50
    for link in links:
        assert (site / link).read_text(encoding="utf-8").strip(), link
    text = (site / "reference" / "python" / "firstclick.md").read_text(encoding="utf-8")
    assert ">>> " in text  # docstrings, not the directives that stand for them
    assert ":::" not in text


@pytest.mark.long
def test_search_works_from_a_folder_and_no_other_server_is_asked(site):
    from playwright.sync_api import sync_playwright
    from screenshot import ARGUMENTS, chromium

    asked = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "quickstart.html").as_uri())
        first = {words: Path(first_found(page, words)).relative_to(site) for words in SEARCHES}
        browser.close()
    assert first == {words: Path(f"{name}.html") for words, name in SEARCHES.items()}
    assert [url for url in asked if not url.startswith("file:")] == []


def first_found(page, words):
    """The file of the page that the search puts first."""
    page.reload()
    page.click(".md-search__input")
    page.keyboard.type(words)
    link = page.wait_for_selector(".md-search-result__item a")
    return str(page.evaluate("link => new URL(link.href).pathname", link))
