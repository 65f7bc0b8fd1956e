from relocbench.reports.pages.method_style import COLOURS
from relocbench.reports.paper.curves import SPREADS


def test_the_lines_of_a_spread_do_not_look_like_a_method():
    assert not {style.colour for style in SPREADS} & set(COLOURS.values())
    assert len({(style.dash, style.symbol) for style in SPREADS}) == len(SPREADS)
