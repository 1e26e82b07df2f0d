#!/usr/bin/env python3
"""Opens an output as `entropipe info OUT --sql` says, and a hull as GIS programs do.

    views.py OUT VIEWS.sql HULL.geojson

Every view must hold one table, whole, with its columns. The output's own folder, and the hull as
GeoJSON, must be what the documentation warns of: where a reader mends that, so must the pages.
"""
import pathlib
import sys

import duckdb
import geopandas
import pyarrow.dataset

out, views, drawn = map(pathlib.Path, sys.argv[1:])
db = duckdb.connect()
db.execute(views.read_text())
names = [name for name, in db.sql("select view_name from duckdb_views() where not internal order by 1").fetchall()]
of_rejects = [name for name in names if name in ("rejects_not_mended", "replayed")]
names = [name for name in names if name not in of_rejects]
for name in of_rejects:
    db.sql(f"select count(*) from {name}").fetchone()
assert names == sorted(p.name for p in out.iterdir() if not p.name.startswith("_")), names
total = 0
for name in names:
    table = pyarrow.dataset.dataset(out / name, partitioning="hive")
    rows = table.count_rows()
    got, = db.sql(f"select count(*) from {name}").fetchone()
    assert got == rows > 0, (name, got, rows)
    columns = {c for c, in db.sql(f"select column_name from (describe {name})").fetchall()}
    assert columns == set(table.schema.names), (name, columns)
    total += rows
assert pyarrow.dataset.dataset(out, format="parquet").count_rows() == total, "pyarrow no longer mixes the tables of an output's folder"
hulls = geopandas.read_parquet(out / "hulls")
assert hulls.crs is None, hulls.crs
hull = geopandas.read_file(drawn)
assert str(hull.crs) == "EPSG:4326", f"GeoJSON is no longer taken for degrees, but for {hull.crs}"
assert any(hull.geometry[0].equals(h) for h in hulls.geometry), "the hull is not in table hulls"
print("views of", *names, "with", total, "rows")
