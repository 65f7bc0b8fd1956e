"""A second verifier of certificates, written from docs/certificates.md alone: exact rationals, standard library only.
It is slow and rounds nothing. Without this project installed: ``python second_verifier.py inst.json cert.json``.
"""

import base64
import gzip
import hashlib
import json
import lzma
import math
import re
import struct
import sys
import zlib
from collections import Counter
from fractions import Fraction

KINDS = {"split-client": "client servers", "split-topic": "topic server", "split-share": "server share"}
OPTIONAL = ("made", "delay_cap", "cloud_cap")
RANGES = dict.fromkeys(("claim", "alpha", "beta"), (1 - 2**200, 2**200 - 1))
RANGES |= dict.fromkeys(("bits", "multiplier_bits"), (-2200, 2200)) | dict.fromkeys(OPTIONAL[1:], (-1074, 1023))
ARRAYS = {"dual": ("active", "messages", "shares"), "contents": ("client_prices", "pair_prices", "least")}
ARRAYS["home-prices"] = ("messages", "prices", "pair_prices", "least", "ends", "beta")
OTHERS = {"dual": "bits multiplier_bits fix alpha beta hard", "contents": "bits"} | KINDS
OTHERS |= {"home-prices": "bits multiplier_bits ranges"}
NOT_WHOLE = {"format", "instance", "made", "proof", "step", "fix"}
HALF = Fraction(1, 2)
BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class Rejected(Exception):  # noqa: N818 - it is an answer, not an error
    """The certificate proves nothing; the message says why."""


def demand(condition, reason):
    if not condition:
        raise Rejected(reason)


def read(path):
    def once(pairs):
        demand(len(dict(pairs)) == len(pairs), "a name is given twice")
        return dict(pairs)

    try:
        with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as file:
            return json.loads(file.read().decode("utf-8-sig"), object_pairs_hook=once)
    except (EOFError, RecursionError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise Rejected(f"not a JSON file: {error}") from error


def content_hash(data):  # as docs/files.md defines it
    arrays = {name: [((), [float(data[name])])] for name in ("cloud_delay", "delay_per_km")}
    servers, clients = ({f"{group}_{axis}": data[f"{group}s"][axis] for axis in "xy"} for group in ("server", "client"))
    servers |= {name: data["servers"][name] for name in ("storage", "compute")}
    columns = servers | clients | {"spool": [topic["spool"] for topic in data["topics"]]}
    arrays |= {name: [((len(column),), [float(x) for x in column])] for name, column in columns.items()}
    for role in ("publishers", "subscribers"):
        start = [sum(len(topic[role]) for topic in data["topics"][:n]) for n in range(len(data["topics"]) + 1)]
        item = [m for topic in data["topics"] for m in topic[role]]
        arrays[role] = [((len(start),), start), ((len(item),), item)]
    for name in ("client_server_delay", "server_server_delay"):
        rows = data.get(name)
        arrays[name] = [] if rows is None else [((len(rows), len(rows[0])), [float(x) for row in rows for x in row])]
    digest = hashlib.sha256(b"relocbench-instance/1")
    for name, parts in arrays.items():
        digest.update(f"|{name}:{len(parts)}".encode())
        for shape, values in parts:
            form = f"<{len(values)}{'q' if name in ('publishers', 'subscribers') else 'd'}"
            digest.update(f"|{shape}|".encode() + struct.pack(form, *(x + 0 for x in values)))  # -0.0 becomes 0.0
    return digest.hexdigest()


class Problem:  # an instance as exact numbers, in the notation of docs/model.md and docs/formulations.md
    def __init__(self, data, delay_cap=None, cloud_cap=None):
        self.cap, most = (math.inf if cap is None else Fraction(2) ** cap for cap in (delay_cap, cloud_cap))
        servers, clients, topics = data["servers"], data["clients"], data["topics"]
        self.L, self.M, self.N = len(servers["x"]), len(clients["x"]), len(topics)
        self.A, self.B = ([Fraction(float(x)) for x in servers[name]] for name in ("storage", "compute"))
        self.dC, self.u = min(Fraction(float(data["cloud_delay"])), most), [Fraction(float(n["spool"])) for n in topics]
        self.dH, self.dS = (self.delays(data, f"{group}_server_delay", f"{group}s") for group in ("client", "server"))
        self.P, self.S = ([set(topic[role]) for topic in topics] for role in ("publishers", "subscribers"))
        self.topics = [[n for n in range(self.N) if m in self.P[n] and self.u[n] > 0] for m in range(self.M)]  # loading
        self.U = [sum(self.u[n] for n in own) for own in self.topics]
        self.publications = [(m, self.S[n] - {m}) for n in range(self.N) for m in self.P[n] if self.S[n] - {m}]
        self.f, self.W = Counter(m for m, _ in self.publications), [Counter() for _ in range(self.M)]
        for m, receivers in self.publications:
            for r in receivers:
                self.W[m][r] += Fraction(1, len(receivers))
        self.w = [self.f[m] + sum(W[m] for W in self.W) for m in range(self.M)]
        self.pair, self.added = {}, Counter()  # what the potentials of a timeline add to each (client, server)
        for i, j in sorted({(min(m, r), max(m, r)) for m in range(self.M) for r in self.W[m]}):
            there, back, d, every = self.W[i][j], self.W[j][i], self.dS, range(self.L)
            self.pair[i, j] = [[there * d[l][k] + back * d[k][l] for k in every] for l in every]

    def delays(self, data, name, group):
        if data.get(name) is not None:
            return [[min(Fraction(float(x)), self.cap) for x in row] for row in data[name]]
        (x, y), (s, t) = ([[float(v) for v in data[g][axis]] for axis in "xy"] for g in (group, "servers"))
        away = [[(x[m] - s[l], y[m] - t[l]) for l in range(self.L)] for m in range(len(x))]
        far = [[float(data["delay_per_km"]) * math.sqrt(a * a + b * b) for a, b in row] for row in away]
        return [[min(Fraction(delay), self.cap) for delay in row] for row in far]

    def theta(self, l, clients, opened=()):
        storage = sum(self.u[n] for n in {n for m in clients for n in self.topics[m]} | set(opened))
        return min([1] + [c / x for c, x in ((self.A[l], storage), (self.B[l], sum(self.U[m] for m in clients))) if x])

    def cost(self, home):
        theta, total = [self.theta(l, [m for m in range(self.M) if home[m] == l]) for l in range(self.L)], 0
        for m, h, receivers in ((m, home[m], receivers) for m, receivers in self.publications):
            mean = sum(theta[h] * self.dS[h][home[r]] + self.dH[r][home[r]] for r in receivers) / len(receivers)
            total += self.dH[m][h] + 2 * self.dC * (1 - theta[h]) + mean
        return total


class Region:  # the assignments with these allowed homes, a publisher at each open pair, and θ from low to high
    def __init__(self, allowed, opened, low, high):
        self.allowed, self.open, self.low, self.high = [set(a) for a in allowed], set(opened), list(low), list(high)

    def least(self, p, l):
        return max(self.low[l], p.theta(l, [m for m in range(p.M) if l in self.allowed[m]]))

    def most(self, p, l, m):
        certain = {m, *(c for c in range(p.M) if self.allowed[c] == {l})}
        return min(self.high[l], p.theta(l, certain, [n for n, k in self.open if k == l]))

    def propagate(self, p):  # apply both rules until nothing changes; return whether there may be an assignment
        before = None
        while before != self.allowed:
            before = [set(homes) for homes in self.allowed]
            for n, l in self.open:
                candidates = [m for m in p.P[n] if l in self.allowed[m]]
                if not candidates:
                    return False
                if len(candidates) == 1:
                    self.allowed[candidates[0]] = {l}
            for l in range(p.L):
                least = self.least(p, l)
                for m in [m for m in range(p.M) if l in self.allowed[m] and self.most(p, l, m) < least]:
                    self.allowed[m].discard(l)
        return all(self.allowed)

    def split(self, p, step):
        one, two = (Region(self.allowed, self.open, self.low, self.high) for _ in range(2))
        if step["step"] == "split-client":
            m, servers = number(step, "client", p.M - 1), {*numbers(step, "servers", len(step["servers"]), p.L - 1)}
            one.allowed[m], two.allowed[m] = one.allowed[m] & servers, two.allowed[m] - servers
        elif step["step"] == "split-topic":
            n, l = number(step, "topic", p.N - 1), number(step, "server", p.L - 1)
            one.allowed = [homes - {l} if m in p.P[n] else homes for m, homes in enumerate(one.allowed)]
            two.open.add((n, l))
        else:
            l, share = number(step, "server", p.L - 1), Fraction(number(step, "share", 1023, 1), 1024)
            one.high[l], two.low[l] = min(one.high[l], share), max(two.low[l], share)
        return one, two


class Dual:  # the dual variables of a step, and the bound that they give
    def __init__(self, p, step):
        unit, price = (Fraction(2) ** -step[key] for key in ("bits", "multiplier_bits"))
        self.alpha, self.beta = ([x * price for x in numbers(step, k, p.L, 2**200 - 1)] for k in ("alpha", "beta"))
        self.hard = numbers(step, "hard", p.L, 1)
        flags = unpacked(step, "active", [(m, l) for m in range(p.M) for l in range(p.L)], 1)
        demand(set(flags.values()) <= {0, 1}, "active: entries are not 0 or 1")
        self.active = [[l for l in range(p.L) if flags[m, l]] for m in range(p.M)]
        self.message = unpacked(step, "messages", [(i, j, l) for i, j in p.pair for l in self.active[i]], unit)
        places = [(m, n, l) for m in range(p.M) for n in p.topics[m] for l in self.active[m]]
        self.share = unpacked(step, "shares", places, unit)
        demand(all(x >= 0 for x in self.share.values()), "shares: one is negative")
        for n, l in {(n, l) for _, n, l in places}:
            paid = sum(self.share.get((m, n, l), 0) for m in p.P[n])
            demand(paid <= self.alpha[l] * p.u[n], f"shares: topic {n} has more than its price at server {l}")

    def charge(self, p, region, m, l, least):
        c0 = 2 * p.dC * p.f[m] - sum(W * max(p.dS[l][k] for k in region.allowed[r]) for r, W in p.W[m].items())
        opened = [n for n in p.topics[m] if (n, l) in region.open]
        c1 = self.beta[l] * p.U[m] + sum(self.share.get((m, n, l), 0) for n in p.topics[m] if n not in opened)
        ends = least, region.most(p, l, m)
        if self.hard[l]:
            return min(c1 + (1 - theta) * c0 for theta in ends)
        return min(theta * c1 + (1 - theta) * (c0 - self.alpha[l] * sum(p.u[n] for n in opened)) for theta in ends)

    def messages(self, p, region, i, j):  # to all allowed homes of both clients
        pair, homes, others = p.pair[i, j], region.allowed[i], region.allowed[j]
        to_i = {a: self.message[i, j, a] for a in self.active[i] if a in homes} or dict.fromkeys(homes, 0)
        known = [b for b in self.active[j] if b in others] or others
        t = {b: min(pair[a][b] - to_i[a] for a in to_i) for b in known}
        to_i |= {a: min(pair[a][b] - t[b] for b in known) for a in homes - set(to_i)}
        return to_i, {b: min(pair[a][b] - to_i[a] for a in homes) for b in others}

    def bound(self, p, region):  # and a function that returns the homes that reduced-cost fixing forbids for a claim
        least = [region.least(p, l) for l in range(p.L)]
        bound = sum(self.alpha[l] * p.u[n] for n, l in region.open)
        for l in range(p.L):
            demand(not self.hard[l] or least[l] > 0, f"hard: θ of server {l} may be 0")
            bound -= (self.alpha[l] * p.A[l] + self.beta[l] * p.B[l]) / (least[l] if self.hard[l] else 1)
        own = {(m, l): p.w[m] * p.dH[m][l] + p.added[m, l] for m in range(p.M) for l in region.allowed[m]}
        cost = [{l: own[m, l] + self.charge(p, region, m, l, least[l]) for l in region.allowed[m]}
                for m in range(p.M)]  # fmt: skip
        messages = {(i, j): self.messages(p, region, i, j) for i, j in p.pair}
        for edge, both in messages.items():
            for m, message in zip(edge, both, strict=True):
                cost[m] = {l: cost[m][l] + message[l] for l in message}
        reduced = [{l: homes[l] - min(homes.values()) for l in homes} for homes in cost]
        bound += sum(min(homes.values()) for homes in cost)

        def fixed(claim):
            total = {(m, l): bound + reduced[m][l] for m in range(p.M) for l in reduced[m]}
            for (i, j), (to_i, to_j) in messages.items():
                slack = {(a, b): p.pair[i, j][a][b] - to_i[a] - to_j[b] for a in to_i for b in to_j}
                total |= {(i, a): total[i, a] + min(slack[a, b] + reduced[j][b] for b in to_j) for a in to_i}
                total |= {(j, b): total[j, b] + min(slack[a, b] + reduced[i][a] for a in to_i) for b in to_j}
            return [home for home in total if total[home] >= claim]

        return bound, fixed


class Contents:  # the prices of a step, and the values that they give to the contents of the servers
    def __init__(self, p, step):
        unit, limit = Fraction(2) ** -step["bits"], Fraction(2) ** (46 - step["bits"])
        self.pi = unpacked(step, "client_prices", list(range(p.M)), unit)
        places = [(m, r, l) for m in range(p.M) for r in sorted(p.W[m]) for l in range(p.L)]
        self.h = unpacked(step, "pair_prices", places, unit)
        self.least = unpacked(step, "least", list(range(p.L)), unit)
        demand(all(abs(x) < limit for x in self.pi.values()), "client_prices: a number is too large")
        demand(all(0 <= x < limit for x in self.h.values()), "pair_prices: a number is negative or too large")

    def bound(self, p, region):
        return sum(self.pi.values()) + sum(self.least.values())

    def check(self, p, region):
        for l in range(p.L):
            order = sorted((m for m in range(p.M) if l in region.allowed[m]), key=lambda m: len(region.allowed[m]) > 1)
            values = self.values(p, region, l)
            demand(self.proved(p, region, l, values, (), order), f"least: a content of server {l} is below it")

    def values(self, p, region, l):  # (fixed, local) of each client, and of each pair of clients
        value = {m: [p.w[m] * p.dH[m][l] - self.pi[m] + 2 * p.dC * p.f[m], -2 * p.dC * p.f[m]] for m in range(p.M)}
        for m, r in [(i, j) for i in range(p.M) for j in p.W[i]]:
            g = min([p.W[m][r] * p.dS[l][k] + self.h[m, r, k] for k in region.allowed[r] if k != l], default=0)
            value[m][1] += g
            value[r][0] -= self.h[m, r, l]
            fixed, local = value.get((min(m, r), max(m, r)), (0, 0))
            value[min(m, r), max(m, r)] = [fixed + self.h[m, r, l], local - g]
        return value

    def proved(self, p, region, l, value, content, undecided):  # no content with these clients is below the limit
        totals = []
        for theta in {p.theta(l, content), p.theta(l, [*content, *undecided])}:  # between them, the bound is concave
            at = {key: fixed + theta * local for key, (fixed, local) in value.items()}
            pairs = {j: [at.get((min(i, j), max(i, j)), 0) for i in content] for j in (*content, *undecided)}
            half = {
                j: [min(0, at.get((min(i, j), max(i, j)), 0)) * HALF for i in undecided if i != j] for j in undecided
            }
            total = sum(at[m] + sum(pairs[m]) * HALF for m in content)
            totals.append(total + sum(min(0, at[j] + sum(pairs[j]) + sum(half[j])) for j in undecided))
        if min(totals) >= self.least[l]:
            return True
        if not undecided:
            return False
        m, rest = undecided[0], undecided[1:]
        without = region.allowed[m] == {l} or self.proved(p, region, l, value, content, rest)
        return without and self.proved(p, region, l, value, (*content, m), rest)


class HomePrices:  # labels are (server, 1 if processed there or 0 if delegated by it)
    def __init__(self, p, step):
        unit, limit = Fraction(2) ** -step["bits"], Fraction(2) ** (40 - step["bits"])
        self.labels = [(l, s) for s in (1, 0) for l in range(p.L)]
        ranges = number(step, "ranges", 256)
        places = [(edge, label) for edge in sorted(p.pair) for label in self.labels]
        self.message = unpacked(step, "messages", places, unit)
        self.nu = unpacked(step, "prices", [(m, *label) for m in range(p.M) for label in self.labels], unit)
        self.eta = unpacked(step, "pair_prices", places, unit) if "pair_prices" in step else dict.fromkeys(places, 0)
        demand(all(0 <= x <= limit for x in self.eta.values()), "pair_prices: wrong numbers")
        self.least = unpacked(step, "least", list(range(p.L)), unit)
        numbers = [*self.message.values(), *self.nu.values(), *self.least.values()]
        demand(all(abs(x) <= limit for x in numbers), "prices: a number is too large")
        ends = unpacked(step, "ends", [(l, k) for l in range(p.L) for k in range(ranges)], 1)
        falling = all(ends[l, k] >= ends[l, k + 1] for l in range(p.L) for k in range(ranges - 1))
        demand(falling and all(0 <= end <= 2**20 for end in ends.values()), "ends: wrong numbers")
        beta = unpacked(step, "beta", [(l, k) for l in range(p.L) for k in range(ranges + 2)], 1)
        demand(all(x >= 0 for x in beta.values()), "beta: a number is negative")

    def bound(self, p, region):
        cost = [{(l, s): p.w[m] * p.dH[m][l] + (1 - s) * 2 * p.dC * p.f[m] + self.nu[m, l, s]
                 for l, s in self.labels if l in region.allowed[m]} for m in range(p.M)]  # fmt: skip
        for i, j in p.pair:
            to_i = {label: self.message[(i, j), label] for label in cost[i]}
            sent, received = p.W[i].get(j, 0), p.W[j].get(i, 0)
            both = {label: self.eta[(i, j), label] for label in to_i}  # no two clients of a server have different s
            to_j = {(k, t): min(s * sent * p.dS[l][k] + t * received * p.dS[k][l] - to_i[l, s]
                                + (both[l, s] if l == k else 0) for l, s in to_i if l != k or s == t)
                    for k, t in cost[j]}  # fmt: skip
            for m, message in ((i, to_i), (j, to_j)):
                cost[m] = {label: cost[m][label] + message[label] for label in message}
        return sum(min(labels.values()) for labels in cost) + sum(self.least.values())

    def check(self, p, region):
        for l in range(p.L):
            allowed = [m for m in range(p.M) if l in region.allowed[m]]
            for bits in range(2 ** len(allowed)):
                content = [m for k, m in enumerate(allowed) if bits >> k & 1]
                theta = p.theta(l, content)
                price = {m: self.nu[m, l, 0] + theta * (self.nu[m, l, 1] - self.nu[m, l, 0]) for m in content}
                pairs = [(i, j) for i, j in p.pair if i in price and j in price]
                profit = sum(price.values()) + sum(
                    theta * self.eta[edge, (l, 1)] + (1 - theta) * self.eta[edge, (l, 0)] for edge in pairs
                )
                demand(-profit >= self.least[l], f"least: a content of server {l} is below it")


def number(container, key, most, least=0):
    demand(least <= container[key] <= most, f"{key}: not from {least} to {most}")
    return container[key]


def numbers(container, key, count, most):
    demand(len(container[key]) == count and all(0 <= x <= most for x in container[key]), f"{key}: wrong numbers")
    return container[key]


def unpacked(step, name, places, unit):  # the numbers of a packed array by their places
    n, bits = len(places), step[name]["bits"]
    if bits == 0:
        return dict.fromkeys(places, 0)
    size = (n * bits + 7) // 8
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": max(size, 4096)}])
    try:
        raw = decoder.decompress(base64.b64decode(step[name]["data"]), size + 1)
    except lzma.LZMAError as error:
        raise Rejected(f"{name}: {error}") from error
    demand(decoder.eof and not decoder.unused_data and len(raw) == size, f"{name}: not {size} bytes")
    if bits == 1:
        return {place: raw[k // 8] >> (7 - k % 8) & 1 for k, place in enumerate(places)}
    coded = [sum(raw[byte * n + k] << 8 * byte for byte in range(bits // 8)) for k in range(n)]
    return {place: unit * (-(x + 1) // 2 if x % 2 else x // 2) for place, x in zip(places, coded, strict=True)}


def check_format(certificate):  # the fields and types of the whole file, also of steps that are ignored later
    known = {"format", "instance", "home", "claim", "bits", "proof", *OPTIONAL}
    demand(isinstance(certificate, dict) and {*certificate, *OPTIONAL} == known, "certificate: wrong fields")
    version = str(certificate["format"]).removeprefix("relocbench-certificate/")
    demand(version in ("1", "2", "3"), "format: unknown")
    kinds = ["dual", *KINDS] + ["contents", "home-prices"] * (version > "1")
    demand(isinstance(certificate["proof"], list) and len(certificate["proof"]) <= 100_000, "proof: no list of steps")
    made = {} if certificate.get("made") is None else certificate["made"]
    entries = made.values() if isinstance(made, dict) else [None]
    demand(all(isinstance(x, str | int | float) and repr(x) not in ("nan", "inf", "-inf") for x in entries), "made")
    for step in certificate["proof"]:
        demand(isinstance(step, dict) and step.get("step") in kinds, "proof: unknown step")
        arrays = ARRAYS.get(step["step"], ("first",))
        if step["step"] == "home-prices" and version < "3":
            arrays = [name for name in arrays if name != "pair_prices"]
        known = {"step", *OTHERS[step["step"]].split(), *arrays}
        demand(set(step) == known and type(step.get("fix", True)) is bool, "proof: a step has wrong fields")
        for array in [step[name] for name in ARRAYS.get(step["step"], ()) if name in arrays]:
            demand(isinstance(array, dict) and set(array) == {"bits", "data"}, "an array has wrong fields")
            demand(type(array["bits"]) is int and array["bits"] in (0, 1, *range(8, 65, 8)), "an array has wrong bits")
            demand(isinstance(array["data"], str) and BASE64.fullmatch(array["data"]), "an array is not in base64")
    for key, value in [
        (key, value)
        for part in (certificate, *certificate["proof"])
        for key, value in part.items()
        if key not in ARRAYS.get(part.get("step"), ())
    ]:
        values = value if key in ("home", "servers", "alpha", "beta", "hard") else [value]
        least, most = RANGES.get(key, (-(2**63), 2**63 - 1))
        right = isinstance(values, list) and all(type(x) is int and least <= x <= most for x in values)
        demand(key in NOT_WHOLE or right, f"{key}: no whole number from {least} to {most}")


def prove(p, proof, claim):  # or raise Rejected
    waiting = [(Region([range(p.L)] * p.M, (), [0] * p.L, [1] * p.L), proof)]
    while waiting:
        region, steps = waiting.pop()
        while region.propagate(p):
            demand(steps, "claim: not proved, no step is left for a region")
            step, steps = steps[0], steps[1:]
            if step["step"] in ("contents", "home-prices"):
                prices = (Contents if step["step"] == "contents" else HomePrices)(p, step)
                if prices.bound(p, region) >= claim:
                    prices.check(p, region)
                    break
                continue
            if step["step"] != "dual":
                first = number(step, "first", len(steps))
                waiting += zip(region.split(p, step), (steps[:first], steps[first:]), strict=True)
                break
            bound, fixed = Dual(p, step).bound(p, region)
            if bound >= claim:
                break
            for m, l in fixed(claim) if step["fix"] else ():
                region.allowed[m].discard(l)


def verify(instance, certificate):
    """Return (cost of the homes, bound) as rationals, or raise Rejected; both arguments are parsed JSON."""
    p = Problem(instance)
    check_format(certificate)
    demand(certificate["instance"] == content_hash(instance), "instance: the certificate was made for another one")
    cost = p.cost(numbers(certificate, "home", p.M, p.L - 1))
    claim = certificate["claim"] * Fraction(2) ** -certificate["bits"]
    demand(claim <= cost, "claim: above the cost of the homes")
    if claim > 0:  # no cost is below 0
        prove(Problem(instance, *map(certificate.get, OPTIONAL[1:])), certificate["proof"], claim)
    return cost, max(claim, Fraction(0))


if __name__ == "__main__":
    try:
        cost, bound = verify(read(sys.argv[1]), read(sys.argv[2]))
    except Rejected as reason:
        sys.exit(f"not proved: {reason}")
    print(f"proved: the homes cost {float(cost)} = {cost}, and no assignment costs less than {float(bound)} = {bound}")
