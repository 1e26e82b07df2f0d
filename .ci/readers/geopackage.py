#!/usr/bin/env python3
"""Compares a GeoPackage, as GDAL reads it, with the tables it was made of.

    geopackage.py FILE.gpkg OUT

Coordinates must be equal bit for bit, and the area of a hull's polygon that of its row. GDAL's
validator must find no fault, and GDAL must find the features of a window through their index.
"""
import pathlib
import subprocess
import sys

import numpy as np
import pyarrow.dataset
import pyogrio
import shapely

file, out = sys.argv[1], pathlib.Path(sys.argv[2])
KEY = ["offset", "index"]
values = 0


def table(name):
    return pyarrow.dataset.dataset(out / name, format="parquet").to_table().to_pandas()


def layer(name):
    meta, _, geometry, fields = pyogrio.raw.read(file, layer=name)
    assert "Undefined Cartesian" in meta["crs"], meta["crs"]
    columns = dict(zip(meta["fields"], fields))
    return columns, geometry


def same(what, got, want):
    global values
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (what, got.shape, want.shape)
    assert np.array_equal(got, want), (what, got[got != want][:5], want[got != want][:5])
    values += got.size


def compare_hulls():
    columns, geometry = layer("hulls")
    want = {tuple(row[k] for k in KEY): row for _, row in table("hulls").iterrows()}
    assert len(want) == len(geometry), (len(want), len(geometry))
    odd, odd_geometry = layer("hulls_degenerate")
    lesser = dict(zip(zip(odd["offset"], odd["index"]), odd_geometry))
    for i, wkb in enumerate(geometry):
        row = want[columns["offset"][i], columns["index"][i]]
        if wkb is None:
            wkb = lesser.pop((row.offset, row["index"]), None)
            assert (wkb is None) == (row.n_hull == 0), row
            if wkb is None:
                continue
        else:
            area = shapely.area(shapely.from_wkb(wkb))
            assert np.isclose(area, row.area, rtol=1e-9) or not np.isfinite(area), (area, row.area)
        drawn, kept = shapely.from_wkb(wkb), shapely.from_wkb(row.geometry)
        assert drawn.geom_type == kept.geom_type, (drawn, kept)
        same("hull", shapely.get_coordinates(drawn).view(np.uint64), shapely.get_coordinates(kept).view(np.uint64))
        if np.isfinite(row.area):
            same("area", columns["area"][i], row.area)
    assert not lesser, lesser


def coordinates_of_points():
    rows = table("points")
    keys = list(zip(rows.offset, rows["index"], rows.point_idx))
    return keys, dict(zip(keys, rows[["x", "y", "z"]].to_numpy(np.float64)))


def compare(geometry, want):
    """Coordinates of features; a cloud without z has NaN there."""
    for wkb, corners in zip(geometry, want, strict=True):
        got = shapely.get_coordinates(shapely.from_wkb(wkb), include_z=True)
        same("corners", np.nan_to_num(got, nan=-1.0), np.nan_to_num(np.array(corners), nan=-1.0))


def compare_windows(name, geometry):
    """GDAL asks the index for the features that a window touches."""
    shapes = shapely.from_wkb(geometry)
    bounds = shapely.bounds(shapes)
    x, y = np.nanmedian(bounds[:, [0, 2]]), np.nanmedian(bounds[:, [1, 3]])
    for wide in (0.5, 20.0):
        window = (x - wide, y - wide, x + wide, y + wide)
        _, fids, _, _ = pyogrio.raw.read(file, layer=name, bbox=window, return_fids=True)
        touched = np.flatnonzero(shapely.intersects(shapes, shapely.box(*window))) + 1
        assert 0 < len(touched) < len(shapes), (name, len(touched))
        same("window of " + name, np.sort(fids), touched)


def main():
    subprocess.run([sys.executable, "-m", "osgeo_utils.samples.validate_gpkg", file], check=True)
    for name, kind in pyogrio.list_layers(file):
        assert kind is None or pyogrio.read_info(file, layer=name)["capabilities"]["fast_spatial_filter"], name
    compare_hulls()
    keys, at = coordinates_of_points()
    columns, geometry = layer("points")
    compare_windows("points", geometry)
    got = list(zip(columns["offset"], columns["index"], columns["point_idx"]))
    assert sorted(got) == sorted(keys), (len(got), len(keys))
    compare(geometry, [[at[k]] for k in got])
    columns, geometry = layer("maxima")
    names = list(zip(columns["offset"], columns["index"], columns["point_idx"]))
    assert len(names) == table("maxima").idx.map(len).sum()
    compare(geometry, [[at[k]] for k in names])
    columns, geometry = layer("triangles")
    compare_windows("triangles", geometry)
    corners = list(zip(columns["offset"], columns["index"], columns["v0"], columns["v1"], columns["v2"]))
    want = table("triangles")
    assert sorted(corners) == sorted(zip(want.offset, want["index"], want.v0, want.v1, want.v2))
    compare(geometry, [[at[o, i, a], at[o, i, b], at[o, i, c], at[o, i, a]] for o, i, a, b, c in corners])
    print(f"GDAL {'.'.join(map(str, pyogrio.__gdal_version__))}: {values} values equal")


if __name__ == "__main__":
    main()
