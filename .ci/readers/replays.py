#!/usr/bin/env python3
"""Counts, in DuckDB, what the views of an output with a replay hold.

    replays.py VIEWS.sql VIEW=ROWS...
"""
import pathlib
import sys

import duckdb

db = duckdb.connect()
db.execute(pathlib.Path(sys.argv[1]).read_text())
for want in sys.argv[2:]:
    view, rows = want.split("=")
    got, = db.sql(f"select count(*) from {view}").fetchone()
    assert got == int(rows), f"view {view} has {got} rows, want {rows}"
print("views of a replay:", *sys.argv[2:])
