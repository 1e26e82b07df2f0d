"""Makes surrogate.json: F of hulls and maxima, and slopes of F, in plain Python.

F is min over q of -1/n sum_i log(sum_k q_k exp(-out_k(x_i)/tau) + 1/n). "F" is
after 10 rounds of expectation and maximisation from equal weights; "slopes" are
central differences, extrapolated once, of F with q found again to 1e-13.
Usage: python3 surrogate.py > surrogate.json
"""
import json, math, random


def chords(points, witnesses):
    """Ranges below an upper hull: triples of planes (nx, ny, c), positive outside."""
    w = sorted(witnesses, key=lambda i: points[i])
    h = len(w)
    if h <= 12:
        pairs = [(i, j) for i in range(h) for j in range(i + 1, h)]
    else:
        pairs = {(0, h - 1)}
        step = 1
        while step < h:
            pairs |= {(i, i + step) for i in range(h - step)}
            step *= 2
    ranges = []
    for i, j in sorted(pairs):
        (ax, ay), (bx, by) = points[w[i]], points[w[j]]
        length = math.hypot(bx - ax, by - ay)
        nx, ny = (ay - by) / length, (bx - ax) / length
        ranges.append([(-1, 0, ax), (1, 0, -bx), (nx, ny, -nx * ax - ny * ay)])
    return ranges


def boxes(points, witnesses):
    return [[(1, 0, -points[i][0]), (0, 1, -points[i][1])] for i in witnesses]


def members(ranges, points, tau):
    return [[math.exp(-max(0, *(a * x + b * y + c for a, b, c in r)) / tau) for r in ranges] for x, y in points]


def value(m, steps):
    n, k = len(m), len(m[0])
    q, last = [1 / k] * k, math.inf
    for _ in range(steps):
        a = [sum(p * v for p, v in zip(q, row)) + 1 / n for row in m]
        rho = [q[j] * sum(row[j] / s for row, s in zip(m, a)) for j in range(k)]
        q = [r / sum(rho) for r in rho]
        f = -sum(map(math.log, a)) / n
        if steps > 10 and last - f < 1e-15:
            break
        last = f
    a = [sum(p * v for p, v in zip(q, row)) + 1 / n for row in m]
    return -sum(map(math.log, a)) / n


def slope(ranges, points, tau, i, axis):
    m = members(ranges, points, tau)

    def at(h):
        p = list(points[i])
        p[axis] += h
        m[i] = members(ranges, [p], tau)[0]
        return value(m, 20000)

    def diff(h):
        return (at(h) - at(-h)) / (2 * h)

    h = 1e-3 * tau
    return (4 * diff(h / 2) - diff(h)) / 3


def hull(points, k):
    """Some corners of the upper hull: the ends and the farthest above them."""
    order = sorted(range(len(points)), key=lambda i: points[i])
    chain = []
    for i in order:
        while len(chain) > 1:
            (ax, ay), (bx, by), (cx, cy) = (points[j] for j in (chain[-2], chain[-1], i))
            if (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) < 0:
                break
            chain.pop()
        chain.append(i)
    if len(chain) <= k:
        return chain
    return [chain[j * (len(chain) - 1) // (k - 1)] for j in range(k)]


def stairs(points, k):
    best, top = [], -math.inf
    for i in sorted(range(len(points)), key=lambda i: points[i], reverse=True):
        if points[i][1] > top:
            best.append(i)
            top = points[i][1]
    return best[:: max(1, len(best) // k)][:k]


def main():
    rng = random.Random(17)
    rows = []
    for problem, n, k, tau in (("upperhull", 20, 5, 0.02), ("upperhull", 60, 9, 0.05), ("upperhull", 400, 14, 0.01), ("maxima2d", 25, 3, 0.03)):
        points = []
        while len(points) < n:
            x, y = rng.random(), rng.random()
            if problem == "maxima2d" or math.hypot(x - 0.5, y) < (0.5 if n > 200 else 1):
                if n > 200:
                    y = 1 - (x - 0.5) ** 2 - 0.02 * y
                if problem == "maxima2d":
                    y *= 1 - x
                points.append((x, y))
        witnesses = (hull if problem == "upperhull" else stairs)(points, k)
        ranges = (chords if problem == "upperhull" else boxes)(points, witnesses)
        slopes = []
        for i in range(n if n < 100 else 0):
            if i not in witnesses:
                for axis in (0, 1):
                    slopes.append({"point": i, "axis": axis, "slope": slope(ranges, points, tau, i, axis)})
        slopes.sort(key=lambda s: -abs(s["slope"]))
        rows.append({"problem": problem, "tau": tau, "points": points, "witnesses": witnesses,
                     "F": value(members(ranges, points, tau), 10), "slopes": slopes[:16]})
    print(json.dumps(rows, indent=None, separators=(",", ":")).replace('{"problem"', '\n{"problem"'))


main()
