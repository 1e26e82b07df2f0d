#!/usr/bin/env python3
"""Answers questions about a frame from its survivors alone, as a consumer in Python does.

    survivors.py WHOLE SURVIVORS

Both are values of messages (Arrow streams). SciPy's hulls of the survivors must have the vertices
of its hulls of the whole frame, once column index has named the points, and NumPy's maxima likewise.
Ends with an AssertionError where they have not.
"""
import sys

import numpy as np
import pyarrow as pa
import scipy.spatial


def read(path):
    table = pa.ipc.open_stream(pa.memory_map(path)).read_all()
    return np.stack([table[c].to_numpy().astype(np.float64) for c in "xyz"], axis=1), table


def maxima(points):
    """Points that no other is at least as large as on every axis and larger on one."""
    best = []
    for p in points[np.lexsort(-points.T)]:
        if not any((q >= p).all() for q in best):
            best.append(p)
    return {tuple(p) for p in best}


whole, table = read(sys.argv[1])
part, survivors = read(sys.argv[2])
index = survivors["index"].to_numpy()
assert np.array_equal(whole[index], part), "survivors are not the points that their numbers name"
for dims in (2, 3):
    want = scipy.spatial.ConvexHull(whole[:, :dims])
    got = scipy.spatial.ConvexHull(part[:, :dims])
    corners = lambda hull, points: {tuple(p) for p in points[hull.vertices][:, :dims]}
    assert corners(got, part) == corners(want, whole), f"the hulls in {dims} dimensions differ"
    assert np.isclose(got.volume, want.volume, rtol=1e-12), f"the sizes in {dims} dimensions differ: {got.volume}, {want.volume}"
assert maxima(part) == maxima(whole), "the maxima differ"
print(f"{len(whole)} points, {len(part)} survivors; {table.nbytes} bytes, {survivors.nbytes}")
