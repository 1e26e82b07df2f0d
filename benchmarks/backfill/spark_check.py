"""Compares the tables of a backfill with those of spark_udf.py, scan by scan.

    python spark_check.py ARCHIVE OUT UDF_OUT...

Vertices of hulls and maxima are compared as sets of coordinates: of equal points, libraries
name different ones. Prints one line of JSON, or ends with an error that names the scan.
"""
import json
import os
import sys

import numpy as np
import pyarrow.dataset as ds


def rows_of(folder, columns):
    rows = ds.dataset(folder, format="parquet").to_table(columns=["sequence", "frame_id", *columns]).to_pylist()
    found = {(row["sequence"], row["frame_id"]): row for row in rows}
    if len(found) != len(rows):
        sys.exit(f"{folder}: {len(rows)} rows of {len(found)} scans")
    return found


def vertices(row, points):
    """The vertices of a hull: by indices, else by coordinates."""
    if row["hull_idx"] is not None:
        return {tuple(p) for p in points[row["hull_idx"], :2].tolist()}
    import shapely

    return {tuple(p) for p in shapely.get_coordinates(shapely.from_wkb(row["hull"])).tolist()}


def main(archive, out, *others):
    hulls = rows_of(os.path.join(out, "hulls"), ["hull_idx"])
    maxima = rows_of(os.path.join(out, "maxima"), ["idx"])
    corners = best = 0
    for other in others:
        theirs = rows_of(other, ["hull_idx", "hull", "maxima_idx"])
        if not theirs or theirs.keys() != hulls.keys() or theirs.keys() != maxima.keys():
            sys.exit(f"{other}: {len(theirs)} scans, {len(hulls)} hulls, {len(maxima)} maxima, or other keys")
        corners = best = 0
        for key, row in sorted(theirs.items()):
            path = os.path.join(archive, key[0], f"{key[1]:010d}.bin")
            points = np.fromfile(path, dtype="<f4").reshape(-1, 4)[:, :3].astype("f8")
            ours = vertices(hulls[key], points)
            if ours != vertices(row, points):
                sys.exit(f"{other}: scan {key}: {len(ours)} vertices, or others than {len(vertices(row, points))}")
            top = {tuple(p) for p in points[maxima[key]["idx"]].tolist()}
            if top != {tuple(p) for p in points[row["maxima_idx"]].tolist()}:
                sys.exit(f"{other}: scan {key}: {len(top)} maxima, or others")
            corners, best = corners + len(ours), best + len(top)
    print(json.dumps({"scans": len(hulls), "vertices": corners, "maxima": best}))


main(*sys.argv[1:])
