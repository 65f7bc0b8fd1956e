import numpy as np
import pytest

from relocbench.instances.files.edge_list import parse_edges


def pairs(text):
    return list(zip(text.follower.tolist(), text.followee.tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        (b"1\t2\n3\t4\n", [(1, 2), (3, 4)]),
        (b"1 2\r\n3 4", [(1, 2), (3, 4)]),
        (b"# a\n% b\n\n1,2\n3,4\n", [(1, 2), (3, 4)]),
        (b"\xef\xbb\xbffrom,to\n1,2\n# c\n3,4\n", [(1, 2), (3, 4)]),
        (b"", []),
        (b"# nothing\n", []),
    ],
)
def test_edges_are_read_in_every_style(text, edges):
    found = parse_edges(text, beginning=True)
    assert pairs(found) == edges
    assert (found.bad, found.follower.dtype) == (0, np.int64)


def test_invalid_lines_are_counted_and_the_first_is_kept():
    found = parse_edges(b"1\t2\nx\ty\n3\n4\t5\t6\n7\t99999999999999999999\n8\t9\n\xff\t1\n", beginning=True)
    assert pairs(found) == [(1, 2), (8, 9)]
    assert (found.bad, found.example) == (5, "'x\\ty'")


def test_a_header_is_accepted_only_at_the_beginning():
    assert parse_edges(b"from\tto\n1\t2\n", beginning=True).bad == 0
    assert parse_edges(b"from\tto\n1\t2\n", beginning=False).bad == 1
    assert parse_edges(b"from\tto\na\tb\n1\t2\n", beginning=True).bad == 1


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        (b"1\t2\tpublish\n3\t4\tSubscriber\n", [1, 2]),
        (b"1,2,both\r\n3,4,pub", [3, 1]),
        (b"# a\nfrom to role\n1 2 sub\n3 4\n", [2, 3]),
    ],
)
def test_roles_have_the_names_that_convert_reads_and_a_line_without_one_means_both(text, roles):
    found = parse_edges(text, beginning=True, roles=True)
    assert (pairs(found), found.role.tolist(), found.bad) == ([(1, 2), (3, 4)], roles, 0)
    assert parse_edges(text, beginning=True).bad > 0


def test_a_wrong_role_is_a_bad_line():
    found = parse_edges(b"1\t2\tboth\n1\t3\t0.5\n1\t4\tboth\tboth\n", beginning=True, roles=True)
    assert (pairs(found), found.role.tolist(), found.bad) == ([(1, 2)], [3], 2)
    assert parse_edges(b"1\t2\n", beginning=True, roles=True).role is None
