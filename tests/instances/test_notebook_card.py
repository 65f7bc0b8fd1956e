import pytest

from relocbench.instances.errors import plural
from relocbench.instances.notebook_card import MOST_ROWS, card, percent


def test_every_text_of_a_card_is_escaped():
    html = card("<b>title</b>", {"<i>": "a & b"}, ["<th>"], [["<script>alert(1)</script>"]])
    assert "&lt;b&gt;title&lt;/b&gt;" in html
    assert "&lt;i&gt;" in html
    assert "a &amp; b" in html
    assert "<script" not in html


def test_a_value_that_is_not_known_is_left_out_and_a_cell_shows_a_dash():
    assert "bound" not in card("Result", {"bound": None})
    assert ">–</td>" in card("Result", {}, ["gap"], [[None]])


def test_a_long_table_is_cut_and_says_so():
    rows = [[f"row {number};"] for number in range(MOST_ROWS + 5)]
    html = card("Library", {}, ["name"], rows)
    assert f"row {MOST_ROWS - 1};" in html
    assert f"row {MOST_ROWS};" not in html
    assert f"{MOST_ROWS} of {MOST_ROWS + 5} rows" in html
    assert "rows" not in card("Library", {}, ["name"], rows[:MOST_ROWS])


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, None), (0.0, "0%"), (5e-7, "0%"), (0.00123456, "0.123%"), (0.535, "53.5%"), (12.341, "1234%")],
)
def test_shares_are_shown_in_percent(share, text):
    assert percent(share) == text


def test_one_is_singular():
    assert [plural(number, "run") for number in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
