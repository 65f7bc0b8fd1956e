"""Which features of an instance explain where a method loses.

For each method the mean excess of an instance is predicted from its features, in two ways: a forest, whose error is
measured on blocks of instances that it has not seen, and whose features are ranked by how much the error grows when
their values are exchanged between instances; and a shallow tree over all instances, whose rules can be read. All of it
describes this set of instances. It is not a proof of a cause, because features go together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relocbench.instances.features import FEATURES
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.reports.study.excess import Measurement, per_instance

# With fewer instances or blocks than this, nothing is explained.
FEWEST_INSTANCES, FEWEST_BLOCKS = 20, 5
# The tree has at most 2^DEPTH leaves, and each leaf at least this share of the instances.
DEPTH, LEAF = 3, 0.1
FOLDS, TREES, EXCHANGES = 5, 200, 10


@dataclass(frozen=True)
class Explanation:
    """What the features say about the excess of one method.

    Attributes
    ----------
    selector
        The method.
    instances, blocks
        The number of instances and of independent samples.
    predicted
        The share of the variance of the excess that the forest predicts for blocks it has not seen. At most 1; 0 or
        less means that it predicts no better than the mean.
    importance
        How much this share falls if the values of a feature are exchanged between instances, for each feature that
        varies, the largest first.
    rules
        The rules of the tree: the condition, the mean excess and the number of instances of each leaf, from the least
        excess to the largest.
    """

    selector: str
    instances: int
    blocks: int
    predicted: float
    importance: dict[str, float]
    rules: list[tuple[str, float, int]]


def explanations(measurements: Sequence[Measurement], features: Mapping[str, Mapping[str, float]]) -> list[Explanation]:
    """Explain the excess of each method by the features of the instances.

    Parameters
    ----------
    measurements
        The runs of a study.
    features
        The features of each instance, by hash.

    Returns
    -------
    list of Explanation
        One for each method with enough instances and blocks whose excess varies.
    """
    block_of = {one.hash: one.block for one in measurements}
    found = []
    for selector in dict.fromkeys(one.selector for one in measurements):
        means = per_instance(one for one in measurements if one.selector == selector)
        keys = sorted(key for key in means if key in features)
        blocks = [block_of[key] for key in keys]
        values = np.array([means[key] for key in keys])
        if len(keys) < FEWEST_INSTANCES or len(set(blocks)) < FEWEST_BLOCKS or np.ptp(values) < 1e-9:
            continue
        table = np.array([[features[key][name] for name in FEATURES] for key in keys])
        varies = [number for number in range(len(FEATURES)) if np.ptp(table[:, number]) > 0]
        if varies:
            names = [list(FEATURES)[number] for number in varies]
            found.append(_explained(selector, names, table[:, varies], values, blocks))
    return found


def _explained(
    selector: str, names: Sequence[str], table: FloatArray, values: FloatArray, blocks: Sequence[str]
) -> Explanation:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import GroupKFold

    known = list(dict.fromkeys(blocks))
    group = [known.index(block) for block in blocks]
    predicted, exchanged = np.zeros(len(values)), np.zeros((len(names), EXCHANGES, len(values)))
    rng = np.random.default_rng(0)
    for inside, outside in GroupKFold(min(FOLDS, len(known))).split(table, values, group):
        forest = RandomForestRegressor(TREES, min_samples_leaf=3, random_state=0).fit(table[inside], values[inside])
        predicted[outside] = forest.predict(table[outside])
        # All exchanged tables in one call: the forest's own overhead is larger than the work.
        several = np.tile(table[outside], (len(names) * EXCHANGES, 1, 1)).reshape(-1, len(outside), len(names))
        for number in range(len(several)):
            column = number // EXCHANGES
            several[number, :, column] = rng.permutation(several[number, :, column])
        answers = forest.predict(several.reshape(-1, len(names)))
        exchanged[:, :, outside] = answers.reshape(len(names), EXCHANGES, len(outside))
    variance = float(((values - values.mean()) ** 2).sum())
    score = 1 - float(((values - predicted) ** 2).sum()) / variance
    losses = ((exchanged - values) ** 2).sum(axis=2).mean(axis=1) / variance - (1 - score)
    order = np.argsort(-losses, kind="stable")
    return Explanation(
        selector=selector,
        instances=len(values),
        blocks=len(known),
        predicted=score,
        importance={names[number]: float(losses[number]) for number in order},
        rules=_rules(names, table, values),
    )


def _rules(names: Sequence[str], table: FloatArray, values: FloatArray) -> list[tuple[str, float, int]]:
    """Return the leaves of a shallow tree as conditions that can be read."""
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=max(3, round(LEAF * len(values))), random_state=0)
    nodes = tree.fit(table, values).tree_
    leaves: list[tuple[str, float, int]] = []

    def visit(node: int, limits: dict[str, tuple[float, float]]) -> None:
        if nodes.children_left[node] < 0:
            leaves.append((_condition(limits), float(nodes.value[node].ravel()[0]), int(nodes.n_node_samples[node])))
            return
        name, cut = names[nodes.feature[node]], float(nodes.threshold[node])
        low, high = limits.get(name, (-np.inf, np.inf))
        visit(nodes.children_left[node], limits | {name: (low, min(high, cut))})
        visit(nodes.children_right[node], limits | {name: (max(low, cut), high)})

    visit(0, {})
    return sorted(leaves, key=lambda leaf: leaf[1])


def _condition(limits: Mapping[str, tuple[float, float]]) -> str:
    parts = []
    for name, (low, high) in limits.items():
        if np.isinf(low):
            parts.append(f"`{name}` ≤ {high:.3g}")
        elif np.isinf(high):
            parts.append(f"`{name}` > {low:.3g}")
        else:
            parts.append(f"{low:.3g} < `{name}` ≤ {high:.3g}")
    return " and ".join(parts) or "all instances"
