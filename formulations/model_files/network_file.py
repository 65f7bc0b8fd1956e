"""Cost function networks as files of toulbar2: its JSON format (``.cfn``) and the older ``.wcsp``.

The first variables are the clients. Variable ``home_m`` has the values ``s0_level0``, ``s0_level1``, …: a server and
the level of its ``θ``. The other variables, ``v8``, ``v9``, …, are the levels and the open topics of the servers. A
``.wcsp`` file has no names; the order is the same.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from relocbench.formulations.cfn.network import FORBIDDEN, Labels, Network


def value_names(labels: Labels) -> list[str]:
    """Return the names of the values of a client.

    Parameters
    ----------
    labels
        The labels of the network.

    Returns
    -------
    list of str
        One name per label.
    """
    pairs = zip(labels.server.tolist(), labels.level.tolist(), strict=True)
    return [f"s{server}_level{level}" for server, level in pairs]


def cfn_lines(network: Network, labels: Labels, clients: int, limit: int) -> Iterator[str]:
    """Write a network in toulbar2's JSON format.

    Parameters
    ----------
    network, labels
        The network, and the labels of its clients.
    clients
        The number of clients.
    limit
        The upper limit: only solutions of a smaller cost count.

    Yields
    ------
    str
        The lines, without line breaks.
    """
    names = [f"home_{i}" if i < clients else f"v{i}" for i in range(len(network.domains))]
    values = value_names(labels)
    yield json.dumps({"problem": {"name": "relocbench", "mustbe": f"<{limit}"}})[:-1] + ","
    yield '"variables": {'
    for i, (name, size) in enumerate(zip(names, network.domains, strict=True)):
        domain = json.dumps(values) if i < clients else str(size)
        yield f'"{name}": {domain}' + ("," if i + 1 < len(names) else "")
    yield '},\n"functions": {'
    pieces: list[tuple[str, dict[str, Any]]] = []
    for i, (variables, costs) in enumerate(network.functions):
        table = [limit if cost == FORBIDDEN else cost for cost in costs.ravel().tolist()]
        pieces.append((f"f{i}", {"scope": [names[v] for v in variables], "costs": table}))
    for i, (scope, right, weights) in enumerate(_at_least(network)):
        # toulbar2 reads the first number as the index of the variable in the network, not in the scope.
        triples = [[v, value, weight] for v, part in zip(scope, weights, strict=True) for value, weight in part]
        parameters = {"capacity": right, "weightedvalues": triples}
        pieces.append((f"r{i}", {"scope": [names[v] for v in scope], "type": "knapsackv", "params": parameters}))
    for i, (name, piece) in enumerate(pieces):
        yield f'"{name}": {json.dumps(piece)}' + ("," if i + 1 < len(pieces) else "")
    yield "}}"


def wcsp_lines(network: Network, limit: int) -> Iterator[str]:
    """Write a network in toulbar2's format ``.wcsp``.

    Parameters
    ----------
    network, limit
        As for :func:`cfn_lines`.

    Yields
    ------
    str
        The lines, without line breaks.
    """
    rows = _at_least(network)
    count = len(network.functions) + len(rows)
    yield f"relocbench {len(network.domains)} {max(network.domains)} {count} {limit}"
    yield " ".join(map(str, network.domains))
    for variables, costs in network.functions:
        entries = [(index, cost) for index, cost in np.ndenumerate(costs) if cost]
        yield " ".join(map(str, (len(variables), *variables, 0, len(entries))))
        for index, cost in entries:
            yield " ".join(map(str, (*index, limit if cost == FORBIDDEN else cost)))
    for scope, right, weights in rows:
        words = [len(scope), *scope, -1, "knapsackp", right]
        for part in weights:
            words += [len(part), *(number for pair in part for number in pair)]
        yield " ".join(map(str, words))


def _at_least(network: Network) -> list[tuple[list[int], int, list[list[tuple[int, int]]]]]:
    """Return each row as ``Σ weight ≥ right``: its variables, ``right``, and (value, weight) of each variable."""
    rows = []
    for terms, sense, right in network.rows:
        sign = 1 if sense == ">=" else -1
        weights: dict[int, list[tuple[int, int]]] = {}
        for variable, value, weight in terms:
            weights.setdefault(variable, []).append((value, sign * weight))
        if weights:
            rows.append((list(weights), sign * right, list(weights.values())))
    return rows
