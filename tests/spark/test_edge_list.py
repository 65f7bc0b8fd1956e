import gzip

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relocbench.instances.errors import InputError
from relocbench.spark.edge_list import find_edges, read_piece


def read(path, piece_bytes, monkeypatch):
    monkeypatch.setattr("relocbench.spark.edge_list.PIECE_BYTES", piece_bytes)
    edges, bad = [], 0
    for piece in find_edges(str(path)).pieces():
        for text in read_piece(*piece):
            edges += zip(text.follower.tolist(), text.followee.tolist(), strict=True)
            bad += text.bad
    return edges, bad


LINES = st.lists(st.sampled_from(["1\t2", "30\t4\r", "# comment", "", "bad line", "123456\t7890"]), max_size=12)


@given(LINES, st.integers(1, 40), st.booleans())
@example(["# comment", "bad line"], 1, False)
@example(["# comment", "bad line", "bad line", "1\t2"], 3, True)
def test_every_line_is_read_once_wherever_the_file_is_cut(tmp_path_factory, lines, piece_bytes, ends):
    path = tmp_path_factory.mktemp("edges") / "edges.txt"
    text = "\n".join(lines) + ("\n" if ends else "")
    path.write_bytes(text.encode())
    (path.parent / "edges.txt.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.MonkeyPatch.context() as patch:
        whole = read(path, 1 << 20, patch)
        assert whole[0] == [tuple(map(int, line.split())) for line in lines if line[:1].isdigit()]
        edges, bad = read(path, piece_bytes, patch)
        assert edges == whole[0]
        # The first line that is not a comment may be a header, which does not count as a bad line.
        assert bad == whole[1]
        assert read(path.parent / "edges.txt.gz", piece_bytes, patch) == whole


def test_a_folder_and_a_pattern_give_their_files(tmp_path):
    for name in ("b.txt", "a.txt", "_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("1\t2\n")
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    assert list(find_edges(str(tmp_path)).paths) == names
    assert list(find_edges(str(tmp_path / "*.txt")).paths) == names
    with pytest.raises(InputError, match="expected a file of edges, or a folder of them, found none"):
        find_edges(str(tmp_path / "missing"))


def test_the_error_names_a_damaged_compressed_file(tmp_path):
    path = tmp_path / "edges.gz"
    path.write_bytes(gzip.compress(b"1\t2\n" * 1000)[:-10])
    with pytest.raises(InputError, match=r"edges.gz: cannot be read \("):
        list(read_piece(str(path), 0, 1))
