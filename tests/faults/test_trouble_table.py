"""docs/troubleshooting.md says what servers answer that are in trouble."""

import pytest

from tests.faults.trouble import COLUMNS, ON_SQLITE, PAGE, of_postgresql, of_sqlite

AGAIN = "run: python -m tests.faults.trouble"


@pytest.mark.parametrize("trouble", ON_SQLITE, ids=lambda trouble: trouble.__name__)
def test_the_table_says_what_a_server_answers(trouble, zygote, tmp_path):
    assert of_sqlite(trouble, zygote, tmp_path) in PAGE.read_text(encoding="utf-8").splitlines(), AGAIN


@pytest.mark.long
def test_the_table_says_what_is_answered_without_the_database(zygote, postgresql, tmp_path):
    assert of_postgresql(zygote, postgresql, tmp_path) in PAGE.read_text(encoding="utf-8").splitlines(), AGAIN


def test_the_table_has_no_other_lines():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = lines[lines.index("| " + " | ".join(COLUMNS) + " |") :]
    assert table.index("") == 2 + len(ON_SQLITE) + 1
