"""Points, hulls and maxima of a record's value: what the UDFs of Flink and Spark call.

A value is an Arrow stream of one cloud. pyarrow reads it, shapely makes the hull, moocore the
maxima: of Python's libraries the fastest for each, as benchmarks/peers and benchmarks/backfill
have measured them.
"""
import moocore
import numpy as np
import pyarrow as pa
import shapely

COLUMNS = ("x", "y", "z", "intensity")


def batches_of(value):
    """The record batches of a value: their buffers are the value's."""
    return pa.ipc.open_stream(value)


def shapes_of(value):
    """Number of points, area, hull as WKB, and indices of the maxima in x, y and z."""
    table = batches_of(value).read_all()
    points = np.column_stack([table.column(name).to_numpy() for name in COLUMNS[:3]])
    hull = shapely.convex_hull(shapely.linestrings(points[:, :2]))  # of a line: a tenth of a MultiPoint's time
    maxima = np.flatnonzero(moocore.is_nondominated(-points))  # it minimises
    return len(points), float(shapely.area(hull)), shapely.to_wkb(hull), maxima.astype(np.int32)
