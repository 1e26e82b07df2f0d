"""Clusters of keys for freeze.py: the selectors affinity and entropy of entropipe freeze.

Lots are hashes of the seed and anchors have rounded coordinates, so that last
bits of keys do not show: both programs take the same anchors. Here all numbers
but the model's are float64.
"""

import math

import numpy as np
import torch

TRIES = 4  # sets of anchors of which the selector entropy takes the best
SAMPLE = 2048  # keys of a head that anchors are fitted to
LLOYD = 8  # steps of k-means
SHARPNESS = 3  # of soft assignments, in the median distance between nearest and second
GRID = 4  # steps of an anchor's coordinates in the size of the keys' own
BALANCE = 0.5  # weight of the clusters' balance in the objective
MARGIN = 1e-3  # by which a set's objective has to be less than an earlier one's


def mix(h, n):
    """Takes numbers into hashes: a round of splitmix64, of arrays of uint64."""
    with np.errstate(over="ignore"):
        h = np.uint64(h) + np.asarray(n).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return h ^ (h >> np.uint64(31))


def lot(*numbers):
    """A hash of numbers."""
    h = np.uint64(0)
    for n in numbers:
        h = mix(h, np.uint64(n))
    return h


def nearness(keys, anchors):
    """Minus the squared distances, [keys][anchors], but for a number of each key's own."""
    center = anchors.mean(0)
    return keys @ (2 * (anchors - center)).T - ((anchors - center) * (anchors + center)).sum(1)


def sharp(near):
    """The inverse temperature of soft assignments: by the median over keys of how much nearer the nearest is."""
    top = np.sort(near, axis=1)
    gaps = np.sort(top[:, -1] - top[:, -2])
    return SHARPNESS / max(gaps[len(gaps) // 2], 1e-12)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def start(keys, k, lots):
    """k-means++: the next key is the winner of a race whose times are exponential, over squared distances."""
    far, a = np.ones(len(keys)), np.zeros((k, keys.shape[1]))
    for i in range(k):
        u = ((mix(mix(lots, i), np.arange(len(keys))) >> np.uint64(11)).astype(float) + 0.5) / (1 << 53)
        with np.errstate(divide="ignore"):
            a[i] = keys[np.argmin(-np.log(u) / far)]
        d = ((keys - a[i]) ** 2).sum(1)
        far = d if i == 0 else np.minimum(far, d)
    return a


def k_means(keys, k, lots):
    """Anchors, and the inverse temperature of assignments to them."""
    center = keys.mean(0)
    x = keys - center
    a = start(x, k, lots)
    for step in range(LLOYD):
        near = nearness(x, a)
        p = softmax(sharp(near) * 2.0 ** (step - LLOYD // 2) * near)
        mass = p.sum(0)
        a = np.where(mass[:, None] > 1e-9, p.T @ x / np.maximum(mass, 1e-300)[:, None], a)
    a += center
    size = math.sqrt((x**2).mean())
    if size > 0:
        step = math.ldexp(1, math.frexp(size)[1] - 1) / GRID
        a = np.rint(a / step) * step
    a = a.astype(np.float32)
    return a, sharp(nearness(keys, a.astype(float)))


def entropy_of(a):
    """The entropy of sizes along the last axis, in nats."""
    total = a.sum(-1)
    return torch.log(total) - torch.xlogy(a, a).sum(-1) / total


class Clusters:
    """What the calibration knows of every head's keys: two passes, sample and then take."""

    def __init__(self, f, buckets, block, entropy, seed, inputs):
        self.f, self.buckets, self.block, self.entropy, self.seed = f, buckets, block, entropy, seed
        self.k = max(2, math.isqrt(buckets[-1]))
        self.sets = TRIES if entropy else 1
        self.each = max(1, SAMPLE // inputs)
        self.heads = f["layers"] * f["kv_heads"]
        self.samples = [[] for _ in range(self.heads)]
        self.device = None

    def sample(self, layer, _query, key, _weights):
        """Takes some keys of an input, evenly."""
        n = key.shape[1]
        at = [i * n // min(self.each, n) for i in range(min(self.each, n))]
        some = key[:, at].cpu().numpy().astype(float)
        for kv in range(self.f["kv_heads"]):
            self.samples[layer * self.f["kv_heads"] + kv].extend(some[kv][: max(SAMPLE - self.count(layer, kv), 0)])

    def count(self, layer, kv):
        return len(self.samples[layer * self.f["kv_heads"] + kv])

    def fit(self):
        """Fits the sets of anchors to the samples."""
        fits = [[k_means(np.array(x), self.k, lot(self.seed, h, t)) for t in range(self.sets)] for h, x in enumerate(self.samples)]
        self.samples = None
        self.anchors = np.array([[a for a, _ in sets] for sets in fits])  # [heads][sets][k][dim]
        self.alpha = np.array([[alpha for _, alpha in sets] for sets in fits])
        shape = (self.heads, self.sets, self.k)
        self.member = [np.zeros((b, *shape)) for b in self.buckets]
        self.queries = [np.zeros((-(-b // self.block), *shape)) for b in self.buckets]
        self.sizes, self.spread, self.seen = np.zeros(shape), np.zeros(shape[:2]), 0
        self.rows = [np.zeros(b, dtype=int) for b in self.buckets]

    def take(self, layer, _query, key, weights):
        """Takes one input's keys, and its attention to clusters."""
        kv, n = self.f["kv_heads"], key.shape[1]
        b = next(i for i, length in enumerate(self.buckets) if length >= n)
        mine = slice(layer * kv, (layer + 1) * kv)
        a = torch.from_numpy(self.anchors[mine].astype(float)).to(key.device).flatten(1, 2)  # [kv][sets*k][dim]
        center = a.mean(1, keepdim=True)
        near = key.double() @ (2 * (a - center)).mT - ((a - center) * (a + center)).sum(2)[:, None]
        alpha = torch.from_numpy(self.alpha[mine]).to(key.device)
        p = torch.softmax(near.view(kv, n, self.sets, self.k) * alpha[:, None, :, None], -1)
        self.member[b][:n, mine] += p.transpose(0, 1).cpu().numpy()
        self.sizes[mine] += p.sum(1).cpu().numpy()
        if layer == 0:
            self.rows[b][:n] += 1
        if self.entropy:
            self.take_queries(b, mine, p, weights)

    def take_queries(self, b, mine, p, weights):
        kv, n, group = p.shape[0], p.shape[1], weights.shape[0] // p.shape[0]
        a = weights.double().view(kv, group, n, n) @ p.flatten(2)[:, None]
        a = a.view(kv, group, n, self.sets, self.k)
        self.spread[mine] += entropy_of(a).sum((1, 2)).cpu().numpy()
        if mine.start == 0:
            self.seen += group * n
        blocks = -(-n // self.block)
        a = torch.nn.functional.pad(a.sum(1), (0, 0, 0, 0, 0, blocks * self.block - n))
        a = a.view(kv, blocks, self.block, self.sets, self.k).sum(2)
        self.queries[b][:blocks, mine] += a.transpose(0, 1).cpu().numpy()

    def choose(self):
        """Takes the best set of every head: of sets that found the same clusters the first."""
        for length, rows in zip(self.buckets, self.rows):
            last = (length - 1) // self.block * self.block
            if rows[last] == 0:
                raise SystemExit(f"no input of the calibration reaches token {last + 1}, and a bucket has {length}")
        self.best = np.zeros(self.heads, dtype=int)
        if self.entropy:
            objective = self.spread / self.seen - BALANCE * entropy_of(torch.from_numpy(self.sizes)).numpy()
            for head in range(self.heads):
                for t in range(1, self.sets):
                    if objective[head, t] < objective[head, self.best[head]] - MARGIN:
                        self.best[head] = t

    def order(self, head):
        """Positions sorted by their mean assignment, stably."""
        return np.argsort(self.member[0][:, head, self.best[head]].argmax(1), kind="stable")

    def scores(self, b, head, order=None):
        """The score of every block of keys for every block of queries, [blocks][blocks]."""
        best, n, blocks = self.best[head], self.buckets[b], len(self.queries[b])
        member = self.member[b][:, head, best] / np.maximum(self.rows[b], 1)[:, None]
        cut = lambda x: np.add.reduceat(x, np.arange(0, n, self.block), axis=0)
        parts = cut(member if order is None else member[order])
        want = cut(member)
        if self.entropy:
            seen = np.cumsum(parts, axis=0) if self.f["causal"] else np.broadcast_to(parts.sum(0), (blocks, self.k))
            want = self.queries[b][:, head, best] / np.maximum(seen, 1e-12)
        return want @ parts.T

    def best_anchors(self):
        """The anchors of every head, [heads][k][dim]."""
        return self.anchors[np.arange(self.heads), self.best]
