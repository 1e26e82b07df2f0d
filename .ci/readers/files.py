#!/usr/bin/env python3
"""Runs what `entropipe info OUT --files` prints, and counts the rows of each table.

    files.py duckdb|polars|spark FILE TABLE=ROWS...
    files.py folder OUT TABLE=ROWS...

The second form has pyarrow, DuckDB and Polars read the folders of the tables of an output.
With DuckDB the statements that FILE names in a comment are run first, where it names any: they make a
secret for buckets, with extensions of the package index in place of those of DuckDB's server.
"""
import importlib.util
import pathlib
import re
import sys

kind, file = sys.argv[1:3]
want = {name: int(n) for name, n in (a.split("=") for a in sys.argv[3:])}
text = pathlib.Path(file).read_text() if kind != "folder" else ""
if kind == "folder":
    import duckdb
    import polars
    import pyarrow.dataset
    import pyarrow.parquet

    got = {}
    for table in want:
        rows = {
            pyarrow.dataset.dataset(f"{file}/{table}", partitioning="hive").count_rows(),
            duckdb.sql(f"select count(*) from read_parquet('{file}/{table}/**/*.parquet', hive_partitioning=true, union_by_name=true)").fetchone()[0],
            polars.scan_parquet(f"{file}/{table}/**/*.parquet", hive_partitioning=True).select(polars.len()).collect().item(),
        }
        for part in pathlib.Path(file, table).rglob("*.parquet"):  # each column can be decoded
            assert pyarrow.parquet.ParquetFile(part).read().num_rows == polars.read_parquet(part, glob=False).height, part
        got[table] = rows.pop() if len(rows) == 1 else rows
elif kind == "duckdb":
    import duckdb

    db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    before = re.search(r"^-- Before: (.*)$", text, re.M)
    if before:
        statements = before[1]
        for name in ("httpfs", "aws"):
            root = pathlib.Path(importlib.util.find_spec(f"duckdb_extension_{name}").origin).parent
            found, = root.glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension")
            statements = statements.replace(f"INSTALL {name};", "").replace(f"LOAD {name};", f"LOAD '{found}';")
        db.execute(statements)
    db.execute(text)
    views = [name for name, in db.sql("select view_name from duckdb_views() where not internal").fetchall()]
    got = {name: db.sql(f"select count(*) from {name}").fetchone()[0] for name in views}
else:
    scope = {}
    exec(compile(text, file, "exec"), scope)
    if kind == "polars":
        import polars

        got = {n: f.select(polars.len()).collect().item() for n, f in scope.items() if isinstance(f, polars.LazyFrame)}
        whole = {n: f.collect().height for n, f in scope.items() if isinstance(f, polars.LazyFrame)}
        assert whole == got, (whole, got)
    else:
        got = {n: f.count() for n, f in scope.items() if hasattr(f, "createOrReplaceTempView")}
        for name in got:  # each column can be decoded
            scope[name].foreach(lambda row: None)
assert got == want, (got, want)
print(kind, "reads", *(f"{n} rows of {t}," for t, n in got.items()))
