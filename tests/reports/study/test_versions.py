from relocbench.reports.study.page import write_page
from relocbench.reports.study.versions import versions_of
from tests.reports.study.samples import library_instance, measurement, row

INSTANCE = library_instance()


def made_with(count, selector="reloc", code="", **versions):
    return [row(INSTANCE, selector, 11.0, seed=seed, versions=versions, code=code) for seed in range(count)]


def page_of(rows, tmp_path):
    path = write_page(
        [measurement("a", "reloc", 0.1)],
        tmp_path / "report.html",
        command="",
        facts={},
        warnings=[],
        versions=versions_of(rows),
    )
    return path.read_text(encoding="utf-8")


def test_the_page_names_the_versions_of_the_runs_and_not_of_the_moment(tmp_path):
    rows = made_with(3, relocbench="0.0.1", python="2.7", numpy="0.9")
    found = versions_of(rows)
    assert found.common == {"relocbench": "0.0.1", "python": "2.7", "numpy": "0.9"}
    assert found.warning is None
    text = page_of(rows, tmp_path)
    assert "<dt>relocbench</dt><dd>0.0.1</dd>" in text
    assert "numpy 0.9" in text
    assert "Versions of the runs" not in text


def test_a_study_that_mixes_versions_counts_them_and_warns(tmp_path):
    rows = [*made_with(2, relocbench="0.1", numpy="1.0"), *made_with(1, relocbench="0.2", numpy="1.0")]
    found = versions_of(rows)
    assert found.differing == {"relocbench": {"0.1": 2, "0.2": 1}}
    assert str(found.warning).startswith("**This study mixes versions.** relocbench: 0.1 (2 runs), 0.2 (1 run). ")
    text = page_of(rows, tmp_path)
    assert "Versions of the runs" in text
    assert "<dt>relocbench</dt>" not in text


def test_other_machines_are_listed_without_a_warning():
    found = versions_of([*made_with(1, cores="2"), *made_with(1, cores="4"), *made_with(1)])
    assert found.differing == {"cores": {"2": 1, "4": 1, "not known": 1}}
    assert found.warning is None


def test_the_code_of_each_method_is_listed_and_a_mix_of_it_warns(tmp_path):
    rows = [*made_with(2, "mine.py:f", "mine.py 8c1d"), *made_with(1, "reloc", "relocbench 0.2.0 5f3a")]
    found = versions_of(rows)
    assert found.code == {"mine.py:f": {"mine.py 8c1d": 2}, "reloc": {"relocbench 0.2.0 5f3a": 1}}
    assert found.warning is None
    assert "mine.py 8c1d" in page_of(rows, tmp_path)
    assert "mine.py:f: mine.py 8c1d (2 runs), mine.py ffff (1 run)" in str(
        versions_of([*rows, *made_with(1, "mine.py:f", "mine.py ffff")]).warning
    )
