#!/usr/bin/env python3
"""Reads an output in a bucket with DuckDB, pyarrow, Polars and GeoPandas.

    buckets.py HOST:PORT BUCKET/PREFIX FOLDER VIEWS.sql PAGE.md TABLE=ROWS...

FOLDER is the same output on a local disk, VIEWS.sql what `entropipe info --sql` prints, PAGE.md the
page whose snippets must run with the server's address in place of theirs. Each table has ROWS rows in
every reader; area and corners of the hulls are those of the folder. Credentials come from variables.
"""
import contextlib
import importlib.util
import io
import math
import pathlib
import re
import sys

import duckdb
import geopandas
import polars
import pyarrow.dataset
import pyarrow.fs

server, at, folder, views, page = sys.argv[1:6]
rows = {name: int(n) for name, n in (a.split("=") for a in sys.argv[6:])}
views, page = pathlib.Path(views).read_text(), pathlib.Path(page).read_text()


def extensions(text):
    """The statements with extensions of the package index in place of those of DuckDB's server."""
    for name in ("httpfs", "aws"):
        root = pathlib.Path(importlib.util.find_spec(f"duckdb_extension_{name}").origin).parent
        file, = root.glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension")
        text = text.replace(f"INSTALL {name};", "").replace(f"LOAD {name};", f"LOAD '{file}';")
    return text


def here(snippet):
    """A snippet of a page for this server and this output."""
    snippet = snippet.replace("https://minio.example.com:9000", f"http://{server}").replace("minio.example.com:9000", server)
    snippet = snippet.replace("archive/lidar", at)
    return snippet.replace("URL_STYLE 'path')", "URL_STYLE 'path', USE_SSL false)").replace('"us-east-1"}', '"us-east-1", "aws_allow_http": "true"}')


def snippets(language):
    found = [s for s in re.findall(rf"```{language}\n(.*?)```", page, re.S) if "minio.example.com" in s]
    assert found, f"no snippets of {language}"
    return [here(s) for s in found]


def rounded(text):
    return [round(float(n), 6) for n in re.findall(r"\d+\.\d+", text)]


fs = pyarrow.fs.S3FileSystem(endpoint_override=f"http://{server}", region="us-east-1")
options = {"aws_endpoint_url": f"http://{server}", "aws_region": "us-east-1", "aws_allow_http": "true"}
duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
duck.execute(extensions("LOAD httpfs; LOAD aws;"))
duck.execute(f"CREATE SECRET (TYPE s3, PROVIDER credential_chain, REGION 'us-east-1', ENDPOINT '{server}', URL_STYLE 'path', USE_SSL false)")
duck.execute(views)
there = sorted(name for name, in duck.sql("select view_name from duckdb_views() where not internal").fetchall() if name not in ("rejects_not_mended", "replayed"))
assert there == sorted(rows), (there, rows)
for table, want in rows.items():
    found = {
        "pyarrow": pyarrow.dataset.dataset(f"{at}/{table}", filesystem=fs, partitioning="hive").count_rows(),
        "Polars": polars.scan_parquet(f"s3://{at}/{table}/**/*.parquet", hive_partitioning=True, storage_options=options).select(polars.len()).collect().item(),
        "DuckDB": duck.sql(f"select count(*) from {table}").fetchone()[0],
    }
    assert set(found.values()) == {want}, (table, want, found)

local = pyarrow.dataset.dataset(f"{folder}/hulls", partitioning="hive").to_table(["area", "n_hull"])
areas = lambda values: math.fsum(v for v in values if v is not None)
want = areas(local["area"].to_pylist())
assert want > 0
hulls = pyarrow.dataset.dataset(f"{at}/hulls", filesystem=fs, partitioning="hive").to_table(["area", "n_hull"])
lazy = polars.scan_parquet(f"s3://{at}/hulls/**/*.parquet", hive_partitioning=True, storage_options=options).select("area", "n_hull").collect()
rest = duck.sql("select area, n_hull from hulls").fetchall()
for name, values, corners in (("pyarrow", hulls["area"].to_pylist(), hulls["n_hull"].to_pylist()), ("Polars", lazy["area"].to_list(), lazy["n_hull"].to_list()), ("DuckDB", *zip(*rest))):
    assert areas(values) == want, (name, areas(values), want)
    assert sum(corners) == sum(local["n_hull"].to_pylist()), name
shapes = geopandas.read_parquet(f"{at}/hulls", filesystem=fs)
assert len(shapes) == rows["hulls"] and math.isclose(shapes.area.sum(), want, rel_tol=1e-9)

for snippet in snippets("sql"):
    n, area = duckdb.connect(config={"allow_unsigned_extensions": "true"}).execute(extensions(snippet)).fetchall()[0]
    assert n == rows["hulls"] and math.isclose(area, want, rel_tol=1e-9), (n, area)
for snippet in snippets("python"):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(snippet, "the page", "exec"), {})
    numbers = [n for n in rounded(said.getvalue()) if math.isclose(n, want, rel_tol=1e-6)]
    assert len(numbers) >= 2, (said.getvalue(), want)
print("DuckDB, pyarrow, Polars and GeoPandas read", *(f"{n} rows of {t}," for t, n in rows.items()), "total area", want)
