import csv
import re

import pytest

from relocbench.reports.pages import print_files
from relocbench.reports.pages.chromium import find_chromium
from relocbench.reports.pages.figures import figure, line
from relocbench.reports.pages.latex import escaped, label_of
from relocbench.reports.pages.method_style import Style
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.print_files import write_print_files
from relocbench.reports.pages.tables import Cell, Column, Table


@pytest.fixture
def page(tmp_path):
    made = Page("A page")
    made.section("Excess against σ")
    columns = [Column("method"), Column("mean", ".1%"), Column("won"), Column("n", "d")]
    rows = [["a_b & c", 0.12345, Cell("3 : 2", 1.0), 7], [Cell.of_method("reloc"), None, "", 1]]
    made.table(Table(columns, rows, "Mean **excess**, `x_y` ≤ 5 %. Click a heading to sort."))
    plot = figure(x="x", y="y")
    plot.add_trace(line("RELOC", Style("#d9455f"), x=[1, 2], y=[3, 4]))
    plot.add_trace(line("NS", Style("#3b8bd0"), x=[1, 2], y=[5, 6]))
    made.subsection("`paper`")
    made.figure(plot, "A plot.")
    return made.write(tmp_path / "page.html")


def test_tables_become_booktabs_with_the_numbers_of_the_page(page, tmp_path, monkeypatch):
    monkeypatch.setattr(print_files, "find_chromium", lambda: None)
    files = write_print_files(page, tmp_path / "print")
    assert [file.name for file in files] == [
        "table-01-excess-against-sigma.tex",
        "table-01-excess-against-sigma.csv",
        "all.tex",
    ]
    text = files[0].read_text()
    assert r"\caption{Mean \textbf{excess}, \texttt{x\_y} $\le$ 5 \%.}" in text
    assert r"\begin{tabular}{lrlr}" in text
    assert r"a\_b \& c & 12.3\% & 3 : 2 & 7 \\" in text
    assert r"RELOC & -- &  & 1 \\" in text
    assert text.index("toprule") < text.index("midrule") < text.index("bottomrule")


def test_csv_has_the_exact_numbers_behind_the_rounded_ones(page, tmp_path, monkeypatch):
    monkeypatch.setattr(print_files, "find_chromium", lambda: None)
    file = write_print_files(page, tmp_path)[1]
    with file.open(newline="") as lines:
        assert list(csv.reader(lines)) == [
            ["method", "mean", "won", "n"],
            ["a_b & c", "0.12345", "3 : 2", "7"],
            ["RELOC", "–", "", "1"],
        ]


def test_figures_become_svg_and_pdf_with_a_legend(page, tmp_path):
    if find_chromium() is None:
        pytest.skip("no Chromium is installed")
    files = {file.name: file for file in write_print_files(page, tmp_path / "print")}
    svg = files["figure-01-excess-against-sigma-paper.svg"].read_text()
    assert svg.startswith("<svg")
    assert {"RELOC", "NS"} <= set(re.findall(r">([^<>]+)</text>", svg))
    pdf = files["figure-01-excess-against-sigma-paper.pdf"].read_bytes()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    assert r"\includegraphics[width=\linewidth]{figure-01-excess-against-sigma-paper}" in files["all.tex"].read_text()


def test_special_characters_and_powers_are_escaped():
    assert escaped("50 % of #1_a & {x} ~ \\") == r"50 \% of \#1\_a \& \{x\} \textasciitilde{} \textbackslash{}"
    assert escaped("σ = 10⁻⁶ … θ") == r"$\sigma$ = 10$^{-6}$ \ldots{} $\theta$"


def test_labels_are_short_and_never_empty():
    assert label_of("Excess against σ, `paper`") == "excess-against-sigma-paper"
    assert label_of("…") == "part"
    assert len(label_of("word " * 40)) <= 48
