"""The tree of branch and price, and its translation into the steps of a certificate.

The dual variables of a leaf prove its bound: the verifier recomputes the least value of each server's contents
(docs/certificates.md). The tree itself is a tree of splits by the home of a client.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from relocbench.formulations.branch_price.master import MasterSolution
from relocbench.formulations.branch_price.pricing_problem import BoolArray
from relocbench.formulations.certificates.certificate import Contents, SplitClient, Step
from relocbench.formulations.certificates.packed_arrays import Int64Array, packed
from relocbench.instances.kernels.ragged import FloatArray

# The cost of the incumbent is about this many bits long, in the unit of the prices.
COST_BITS = 34
# Prices are cut off at this many bits. The verifier refuses larger ones.
MOST_PRICE_BITS = 45


@dataclass(eq=False)
class Node:
    """A node of the branch-and-bound tree: the assignments with its allowed homes.

    Attributes
    ----------
    allowed
        The homes each client may have (``M×L``).
    bound
        A lower bound on them, in units of the scaled model.
    duals
        The dual variables that prove the bound; those of the parent node until the node has better ones.
    least
        The least value of each server's pricing problem with these dual variables, or less.
    pricing_nodes
        The number of nodes of these pricing searches.
    client, server
        The node is split by whether the server is the home of the client.
    children
        The two parts; none for a leaf.
    """

    allowed: BoolArray
    bound: float
    duals: MasterSolution
    least: FloatArray
    pricing_nodes: int = 0
    client: int = -1
    server: int = -1
    children: tuple["Node", ...] = field(default=())

    def split(self, client: int, server: int) -> tuple["Node", ...]:
        """Split the node.

        Parameters
        ----------
        client, server
            The client, and the server that is its home in the first part only.

        Returns
        -------
        tuple of Node
            The two parts.
        """
        there, elsewhere = self.allowed.copy(), self.allowed.copy()
        there[client] = False
        there[client, server] = True
        elsewhere[client, server] = False
        self.client, self.server = client, server
        self.children = tuple(
            Node(each, self.bound, self.duals, self.least, self.pricing_nodes) for each in (there, elsewhere)
        )
        return self.children


@dataclass(frozen=True, eq=False)
class Tree:
    """The tree of a search.

    Attributes
    ----------
    root
        The root node.
    unit
        The cost of 1 in the scaled model, in the unit of the instance: a power of two.
    cost
        The cost of the incumbent, above 0.
    """

    root: Node
    unit: float
    cost: float

    @property
    def leaves(self) -> list[Node]:
        """The leaves in the order of the certificate."""
        return [node for node in self._nodes() if not node.children]

    @property
    def bound(self) -> float:
        """The lower bound that the leaves prove, in the unit of the instance."""
        return min(leaf.bound for leaf in self.leaves) * self.unit

    @property
    def pricing_nodes(self) -> int:
        """The number of nodes of the pricing searches that a certificate repeats."""
        return sum(leaf.pricing_nodes for leaf in self.leaves)

    def steps(self, claim: float) -> list[Step]:
        """List the steps that prove a claim.

        Parameters
        ----------
        claim
            The claim, above 0 and below the bound of the tree.

        Returns
        -------
        list of Step
            The steps in the order of the certificate.
        """
        count: dict[Node, int] = {}
        for node in reversed(self._nodes()):
            count[node] = 1 + sum(count[child] for child in node.children)
        return [self._step(node, count, claim) for node in self._nodes()]

    def _nodes(self) -> list[Node]:
        """Return all nodes; each before its children, the first child with all its descendants before the second."""
        found, waiting = [], [self.root]
        while waiting:
            found.append(node := waiting.pop())
            waiting += reversed(node.children)
        return found

    def _step(self, node: Node, count: dict[Node, int], claim: float) -> Step:
        if node.children:
            return SplitClient(node.client, (node.server,), count[node.children[0]])
        bits = COST_BITS - math.frexp(self.cost)[1]
        exponent = bits + math.frexp(self.unit)[1] - 1

        def whole(values: FloatArray) -> Int64Array:
            most = 2.0**MOST_PRICE_BITS
            numbers: Int64Array = np.floor(np.ldexp(values, exponent).clip(-most, most)).astype(np.int64)
            return numbers

        client_prices = whole(node.duals.client_dual)
        # What the bound has above the claim lowers the limits, which shortens the search of the verifier.
        needed = math.ceil(Fraction(claim) * Fraction(2) ** bits) - int(client_prices.sum())
        least = whole(node.least)
        spare, servers = int(least.sum()) - needed, len(least)
        least -= spare // servers
        least[0] -= spare % servers
        return Contents(
            bits=bits,
            client_prices=packed(client_prices),
            pair_prices=packed(whole(-node.duals.receiver_dual)),
            least=packed(least),
        )
