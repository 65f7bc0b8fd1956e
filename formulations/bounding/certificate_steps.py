"""Translation of the branch-and-bound tree into the steps of a certificate."""

from dataclasses import replace

import numpy as np

from relocbench.formulations.bounding.branch_and_bound import Node, Split
from relocbench.formulations.bounding.contents_relaxation import HomePricesDual
from relocbench.formulations.bounding.dual_bound import BITS, MOST_INTEGER_BITS, MULTIPLIER_BITS, Dual
from relocbench.formulations.certificates import certificate
from relocbench.formulations.certificates.certificate import (
    SHARE_UNITS,
    HomePrices,
    SplitClient,
    SplitShare,
    SplitTopic,
    Step,
    dual_step,
)
from relocbench.formulations.certificates.packed_arrays import packed
from relocbench.instances.kernels.ragged import IntArray


def certificate_steps(root: Node, loading: IntArray, delay_exponent: int = 0, load_exponent: int = 0) -> list[Step]:
    """List the steps that prove the bound of a node, including those of its descendants.

    Parameters
    ----------
    root
        The node.
    loading
        The index in the instance of each loading topic.
    delay_exponent, load_exponent
        How the instance was scaled, see :class:`formulations.bounding.scaling.Scaling`.

    Returns
    -------
    list of Step
        The steps in the order of the certificate.
    """
    count = _count_steps(root)
    found: list[Step] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found += [dual_to_step(dual, delay_exponent, load_exponent, fix=True) for dual in node.fixings]
        if node.split is not None:
            first, second = node.children
            found.append(_split_step(node.split, loading, 0 if first is None else count[first]))
            waiting += [child for child in (second, first) if child is not None]
        elif not node.region.empty:
            found.append(dual_to_step(node.dual, delay_exponent, load_exponent))
    return found


def _count_steps(root: Node) -> dict[Node, int]:
    """Return the number of steps of every node, including those of its descendants."""
    order, waiting = [], [root]
    while waiting:
        order.append(node := waiting.pop())
        waiting += [child for child in node.children if child is not None]
    count: dict[Node, int] = {}
    for node in reversed(order):
        below = sum(count[child] for child in node.children if child is not None)
        last = 1 if node.split is not None or not node.region.empty else 0
        count[node] = len(node.fixings) + last + below
    return count


def dual_to_step(dual: Dual, delay_exponent: int = 0, load_exponent: int = 0, *, fix: bool = False) -> certificate.Dual:
    """Translate a dual.

    Parameters
    ----------
    dual
        The dual.
    delay_exponent, load_exponent
        As in :func:`certificate_steps`.
    fix
        Whether reduced-cost fixing follows.

    Returns
    -------
    Dual
        The step of the certificate.
    """
    step = dual_step(
        dual.labels.servers,
        dual.messages,
        dual.shares,
        dual.alpha,
        dual.beta,
        dual.hard,
        bits=BITS,
        multiplier_bits=MULTIPLIER_BITS,
        fix=fix,
    )
    # Messages and shares are costs, and multipliers are costs per load. Scaling changes only the units of integers.
    return replace(step, bits=BITS - delay_exponent, multiplier_bits=MULTIPLIER_BITS - delay_exponent + load_exponent)


def home_prices_to_step(dual: HomePricesDual, delay_exponent: int = 0, load_exponent: int = 0) -> HomePrices:
    """Translate prices of homes.

    Parameters
    ----------
    dual
        The prices with what proves their bound.
    delay_exponent, load_exponent
        As in :func:`certificate_steps`.

    Returns
    -------
    HomePrices
        The step of the certificate.
    """
    servers, count = len(dual.ranges), max(len(ranges.ends) for ranges in dual.ranges)
    ends, beta = np.zeros((servers, count), np.int64), np.zeros((servers, count + 2), np.int64)
    for l, (ranges, price) in enumerate(zip(dual.ranges, dual.compute_price, strict=True)):
        ends[l, : len(ranges.ends)] = ranges.ends
        beta[l, : len(price)] = np.ldexp(price, MULTIPLIER_BITS).clip(max=2.0**MOST_INTEGER_BITS)
    messages, prices, pair_prices, least = (
        np.ldexp(values, BITS).astype(np.int64) for values in (dual.messages, dual.prices, dual.pair_prices, dual.least)
    )
    return HomePrices(
        bits=BITS - delay_exponent,
        multiplier_bits=MULTIPLIER_BITS - delay_exponent + load_exponent,
        ranges=count,
        messages=packed(messages),
        prices=packed(prices),
        pair_prices=packed(pair_prices),
        least=packed(least),
        ends=packed(ends),
        beta=packed(beta),
    )


def _split_step(split: Split, loading: IntArray, first: int) -> Step:
    if split.servers is not None:
        return SplitClient(split.client, tuple(np.flatnonzero(split.servers).tolist()), first)
    if split.theta:
        return SplitShare(split.server, round(split.theta * SHARE_UNITS), first)
    return SplitTopic(int(loading[split.topic]), split.server, first)
