"""The dual with the largest bound, by linear programming: a second implementation of docs/certificates.md."""

import itertools
from collections import defaultdict

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.region import Region
from relocbench.formulations.linearisation import linearise


class Program:
    """A linear program whose columns have names."""

    def __init__(self):
        self.columns, self.low = {}, []
        self.rows, self.limits = [], []
        self.gain = defaultdict(float)

    def column(self, *name, low=0.0):
        if name not in self.columns:
            self.columns[name] = len(self.low)
            self.low.append(low)
        return self.columns[name]

    def at_most(self, limit, terms):
        self.rows.append(terms)
        self.limits.append(limit)

    def solve(self):
        entries = [(r, c, value) for r, terms in enumerate(self.rows) for c, value in terms]
        row, column, value = zip(*entries, strict=True)
        matrix = csr_array((value, (row, column)), shape=(len(self.rows), len(self.low)))
        gain = np.zeros(len(self.low))
        for c, amount in self.gain.items():
            gain[c] = amount
        # Upper bounds are needed, because variables that cost nothing would be unbounded.
        bounds = [(low, 1e3) for low in self.low]
        found = linprog(-gain, matrix, self.limits, bounds=bounds, method="highs")
        assert found.status == 0, found.message
        values = dict(zip(self.columns, found.x[list(self.columns.values())], strict=True))
        return -found.fun, lambda *name: values.get(name, 0.0)


class BestDual:
    """The dual with the largest bound for given hard servers; all homes are active.

    Attributes
    ----------
    value
        The bound, as computed by the linear program.
    alpha, beta, messages, shares
        The dual variables as floats, in the order of the certificate.
    """

    def __init__(self, problem: IntegerProblem, region: Region, hard: np.ndarray) -> None:
        model = linearise(problem.instance)
        clients, servers = range(model.n_clients), range(model.n_servers)
        loading = [n for n in range(problem.n_topics) if problem.spool[n] > 0]
        topics = [[loading[n] for n in own] for own in model.client_topics]
        u = dict(zip(loading, model.spool, strict=True))
        edges = list(zip(problem.first.tolist(), problem.second.tolist(), strict=True))
        weight = defaultdict(float)
        for m, r, w in zip(model.sender.tolist(), model.receiver.tolist(), model.pair_weight, strict=True):
            weight[m, r] = w
        homes = [np.flatnonzero(row).tolist() for row in region.allowed]
        opened = {(n, l) for n, l in np.argwhere(region.open).tolist() if n in u}
        least, most = float_thetas(model, region, homes, topics, u, opened)

        program = Program()
        for l in servers:
            scale = least[l] if hard[l] else 1.0
            program.gain[program.column("alpha", l)] -= model.storage_capacity[l] / scale
            program.gain[program.column("beta", l)] -= model.compute_capacity[l] / scale
        for n, l in opened:
            program.gain[program.column("alpha", l)] += u[n]
        shared = defaultdict(list)
        for m, l in itertools.product(clients, servers):
            for n in topics[m] if l in homes[m] else []:
                if (n, l) not in opened:
                    shared[n, l].append(program.column("share", m, n, l))
        for (n, l), columns in shared.items():
            program.at_most(0.0, [(column, 1.0) for column in columns] + [(program.column("alpha", l), -u[n])])

        messages = defaultdict(list)
        for i, j in edges:
            for l, k in itertools.product(homes[i], homes[j]):
                cost = weight[i, j] * model.server_delay[l, k] + weight[j, i] * model.server_delay[k, l]
                ends = [program.column("to", i, j, i, l, low=-1e3), program.column("to", i, j, j, k, low=-1e3)]
                program.at_most(cost, [(end, 1.0) for end in ends])
            for m, l in [(i, l) for l in homes[i]] + [(j, l) for l in homes[j]]:
                messages[m, l].append((program.column("to", i, j, m, l, low=-1e3), -1.0))
        for m in clients:
            best = program.column("least", m, low=-1e3)
            program.gain[best] = 1.0
            for l in homes[m]:
                far = sum(weight[m, r] * max(model.server_delay[l, k] for k in homes[r]) for r in clients if r != m)
                remote = model.detour * model.publications[m] - far
                local = [(program.column("share", m, n, l), 1.0) for n in topics[m] if (n, l) not in opened]
                local.append((program.column("beta", l), model.demand[m]))
                lost = [] if hard[l] else [(program.column("alpha", l), u[n]) for n in topics[m] if (n, l) in opened]
                for theta in {least[l], most(m, l)}:
                    cost = model.weight[m] * model.client_delay[m, l] + (1 - theta) * remote
                    terms = [(column, -(1.0 if hard[l] else theta) * value) for column, value in local]
                    terms += [(column, (1 - theta) * value) for column, value in lost]
                    program.at_most(cost, [(best, 1.0), *messages[m, l], *terms])
        self.value, x = program.solve()
        self.alpha, self.beta = (np.array([x(name, l) for l in servers]) for name in ("alpha", "beta"))
        self.messages = np.array([x("to", i, j, i, l) for i, j in edges for l in servers])
        self.shares = np.array([x("share", m, n, l) for m in clients for n in topics[m] for l in servers])


def float_thetas(model, region, homes, topics, u, opened):
    """The least θ of each server, and a function that returns the largest θ with a given client there."""

    def theta(l, there, more=()):
        stored = sum(u[n] for n in {n for m in there for n in topics[m]} | set(more))
        computed = sum(model.demand[m] for m in there)
        loads = (model.storage_capacity[l], stored), (model.compute_capacity[l], computed)
        return min([1.0] + [capacity / load for capacity, load in loads if load > 0])

    servers = range(model.n_servers)
    least = [theta(l, {m for m, home in enumerate(homes) if l in home}) for l in servers]
    fixed = [{m for m, home in enumerate(homes) if home == [l]} for l in servers]
    certain = [[n for n, k in opened if k == l] for l in servers]

    def most(m, l):
        return 1.0 if least[l] == 1 else min(region.high[l] / 1024, theta(l, fixed[l] | {m}, certain[l]))

    least = [max(least[l], region.low[l] / 1024) for l in servers]
    return least, most
