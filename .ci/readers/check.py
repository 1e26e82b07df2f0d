#!/usr/bin/env python3
"""Reads an output folder of entropipe as users do, and checks what they would rely on.

    check.py OUT TABLE...

Every file of every table is opened with pyarrow, DuckDB, Polars and (hulls) GeoPandas; types and
counts must be those of the documentation and agree between readers and tables; embeddings too must
be the same in every reader, and of the length that the footer says. Where table points was written, hulls are compared with shapely and SciPy, hulls in space with SciPy and their
definition, maxima with theirs, and triangulations with Euler's formula, the hull's area and the
empty-circle property. Where table messages was written, keys, headers and values must be the same in every
reader, values those of the SHA-256 in header sha256 where one has it, and each message of the other tables there.

One line a check, then 'N passed, N failed'; exit status 1 when a check failed.
"""
import collections
import datetime
import hashlib
import json
import pathlib
import sys

import duckdb
import duckdb_extension_spatial
import geopandas
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import scipy.spatial
import shapely

TEXT, I32, I64, F32, F64 = pa.string(), pa.int32(), pa.int64(), pa.float32(), pa.float64()
TIME, BYTES, INDICES = pa.timestamp("us", "UTC"), pa.binary(), pa.list_(I32)
FLOATS = pa.list_(F32)
SHORT = [("frame_id", I64), ("partition", I32), ("offset", I64), ("index", I32)]
KEYS = [("sequence", TEXT), ("frame_id", I64), ("sensor", TEXT), ("ts", TIME), ("ts_ns", I64), ("partition", I32), ("offset", I64), ("index", I32)]
OPS = ["hull2d", "hull3d", "maxima2d", "maxima3d", "delaunay2d"]
BOX = pa.struct([(n, F64) for n in ("xmin", "ymin", "xmax", "ymax")])
TABLES = {
    "frames": KEYS + [("n_points", I32), ("n_dropped", I32)]
    + [c for op in OPS for c in ((f"status_{op}", TEXT), (f"n_{op}", I32), (f"{op}_ns", I64))]
    + [("drawing_id", I64), ("label", TEXT), ("stage", TEXT), ("model_sha256", TEXT), ("latency_ns", I64), ("pose", pa.list_(F64))],
    "hulls": KEYS + [("n_points", I32), ("n_hull", I32), ("area", F64), ("perimeter", F64), ("geometry", BYTES), ("bbox", BOX), ("hull_idx", INDICES), ("error_bound", F64), ("status", TEXT)],
    "hulls3d": KEYS + [("n_points", I32), ("n_hull", I32), ("hull_idx", INDICES), ("faces", INDICES), ("area", F64), ("volume", F64), ("error_bound", F64), ("status", TEXT)],
    "maxima": KEYS + [("directions", TEXT), ("idx", INDICES), ("error_bound", F64)],
    "triangles": SHORT + [("tri_id", I32), ("v0", I32), ("v1", I32), ("v2", I32)],
    "points": SHORT + [("point_idx", I32), ("x", (F32, F64)), ("y", (F32, F64)), ("z", (F32, F64)), ("intensity", F32)]
    + [("ring", I32), ("return", I32), ("laser", I32), ("label", I32), ("elongation", F32), ("t_offset_ns", I64), ("red", I32), ("green", I32), ("blue", I32)],
    "entropy": KEYS + [("op", TEXT), ("n_hull_or_maxima", I32), ("lower", F64), ("upper", F64), ("kind", TEXT), ("f", F64), ("n_survivors", I32), ("stage", TEXT)],
    "tokens": KEYS + [("id", TEXT), ("model", TEXT), ("model_sha256", TEXT), ("weights", TEXT), ("mask_sha256", TEXT), ("task", TEXT), ("pooling", TEXT), ("normalized", pa.bool_()), ("n_tokens", I32), ("truncated", pa.bool_()), ("embedding", FLOATS), ("next_ids", INDICES), ("top_ids", INDICES), ("top_logprobs", FLOATS), ("tokenizer_sha256", TEXT), ("text", TEXT), ("scores", FLOATS)],
    "attention_stats": KEYS + [("id", TEXT), ("layer", pa.int16()), ("head", pa.int16()), ("kept_mass", F32), ("delta", F32), ("bound", F32), ("error", F32), ("n_extended", I32), ("n_dense", I32)],
    "rejects": [("partition", I32), ("offset", I64), ("index", I32), ("ts", TIME), ("ts_ns", I64), ("stage", TEXT), ("reason", TEXT), ("message", TEXT), ("key", BYTES), ("headers", TEXT), ("value", BYTES), ("value_size", I64), ("value_sha256", TEXT), ("retriable", pa.bool_())],
    "messages": [("partition", I32), ("offset", I64), ("timestamp", TIME), ("key", BYTES), ("headers", pa.list_(pa.struct([("key", TEXT), ("value", BYTES)]))), ("value_size", I64), ("value", BYTES)],
}
FRAME = ["topic", "partition", "offset", "index"]  # joins all tables

counts = collections.Counter()


def check(name, bad, detail=""):
    """One check; bad is a list of faults, or a text, empty when there is none."""
    bad = [bad] if isinstance(bad, str) and bad else list(bad)
    counts["failed" if bad else "passed"] += 1
    more = f" … and {len(bad) - 5} more" if len(bad) > 5 else ""
    print("FAIL" if bad else "ok  ", name, ("; ".join(map(str, bad[:5])) + more) if bad else detail, flush=True)


def differ(what, got, want):
    return [] if got == want else [f"{what}: {got}, want {want}"]


class Output:
    """An output folder. rows(table) are all rows of it, topic included, as pandas."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        self.duck.execute("SET timezone = 'UTC'")
        found = list(pathlib.Path(duckdb_extension_spatial.__file__).parent.glob(f"extensions/v{duckdb.__version__}/spatial.duckdb_extension"))
        self.duck.execute(f"LOAD '{found[0]}'")
        self.cache = {}

    def files(self, table):
        return sorted((self.root / table).rglob("*.parquet"))

    def glob(self, table):
        return str(self.root / table / "**" / "*.parquet").replace("'", "''")

    def rows(self, table):
        if table not in self.cache:
            self.cache[table] = pa.dataset.dataset(self.root / table, partitioning="hive").to_table().to_pandas()
        return self.cache[table]

    def frames(self, table):
        """The rows of a table by the frame that they belong to."""
        return {k: v for k, v in self.rows(table).groupby(FRAME, sort=False, observed=True)}


def check_files(out, table):
    for f in out.files(table):
        name = "/".join(f.relative_to(out.root).parts[-2:])
        t = pq.ParquetFile(f).read()
        t.validate(full=True)
        check(f"{table} {name}: columns", wrong_columns(t.schema, TABLES[table]), f"{t.num_columns}")
        found = {
            "DuckDB": out.duck.execute("SELECT count(*) FROM (SELECT * FROM read_parquet(?, hive_partitioning=false))", [str(f)]).fetchone()[0],
            "Polars": polars.read_parquet(f, hive_partitioning=False).height,
        }
        if table == "hulls":
            found["GeoPandas"] = len(geopandas.read_parquet(f))
        check(f"{table} {name}: rows", [w for reader, n in found.items() for w in differ(reader, n, t.num_rows)], f"{t.num_rows}")


def wrong_columns(schema, want):
    bad = differ("names", schema.names, [n for n, _ in want])
    for name, types in want:
        if name in schema.names and plain(schema.field(name).type) not in (types if isinstance(types, tuple) else (types,)):
            bad.append(f"{name} is {schema.field(name).type}")
    return bad


def plain(t):
    """The type with every part nullable: required elements of lists and structs are none of the contract."""
    if pa.types.is_list(t):
        return pa.list_(plain(t.value_type))
    if pa.types.is_struct(t):
        return pa.struct([(f.name, plain(f.type)) for f in t])
    return t


def check_folder(out, table):
    """All files as one table: the same rows in every reader, folder keys as strings."""
    want = sum(pq.read_metadata(f).num_rows for f in out.files(table))
    arrow = pa.dataset.dataset(out.root / table, partitioning="hive")
    duck = out.duck.execute(f"SELECT count(*), count(DISTINCT topic), any_value(typeof(topic)) FROM read_parquet('{out.glob(table)}', hive_partitioning=true)").fetchone()
    lazy = polars.scan_parquet(out.root / table / "**" / "*.parquet", hive_partitioning=True)
    bad = differ("pyarrow", arrow.count_rows(), want) + differ("pyarrow read_table", pq.read_table(out.root / table, columns=["offset"]).num_rows, want)
    bad += differ("DuckDB", duck[0], want) + differ("DuckDB's topic", duck[2], "VARCHAR")
    bad += differ("Polars", lazy.select(polars.len()).collect().item(), want) + differ("Polars' topic", lazy.collect_schema()["topic"], polars.String)
    if table == "hulls":
        bad += differ("GeoPandas", len(geopandas.read_parquet(out.root / table)), want)
    check(f"{table}: one table in every reader", bad, f"{want} rows")
    unique = FRAME[:3] if table == "messages" else FRAME + {"triangles": ["tri_id"], "points": ["point_idx"], "maxima": ["directions"], "entropy": ["op", "stage"], "attention_stats": ["layer", "head"]}.get(table, [])
    repeated = out.duck.execute(f"SELECT count(*) FROM (SELECT 1 FROM read_parquet('{out.glob(table)}', hive_partitioning=true) GROUP BY {', '.join(map(quoted, unique))} HAVING count(*) > 1)").fetchone()[0]
    check(f"{table}: no row twice", differ("repeated", repeated, 0))


def quoted(column):
    return f'"{column}"'


def check_counts(out, tables):
    """What frames says of a frame is what the other tables hold of it."""
    frames = out.rows("frames").set_index(FRAME)
    held = {
        ("hulls", "n_hull2d"): lambda t: t.set_index(FRAME)["hull_idx"].map(len),
        ("hulls3d", "n_hull3d"): lambda t: t.set_index(FRAME)["hull_idx"].map(len),
        ("triangles", "n_delaunay2d"): lambda t: t.groupby(FRAME, observed=True).size(),
        ("points", "n_points"): lambda t: t.groupby(FRAME, observed=True).size(),
    }
    for (table, column), count in held.items():
        if table in tables:
            want = frames[column].dropna()
            got = count(out.rows(table)).reindex(want.index, fill_value=0)
            strangers = set(out.rows(table).set_index(FRAME).index) - set(frames.index)
            check(f"{table}: counts of frames.{column}", [f"{k}: {got[k]}, want {want[k]}" for k in want.index[(got != want).to_numpy()]] + [f"{k} is no frame" for k in strangers], f"{int(want.sum())}")


def check_geo(out):
    for f in out.files("hulls"):
        geo = json.loads((pq.read_metadata(f).metadata or {})[b"geo"])
        column = geo["columns"]["geometry"]
        bad = differ("version", geo["version"], "1.1.0") + differ("primary_column", geo["primary_column"], "geometry") + differ("encoding", column["encoding"], "WKB")
        if column.get("crs", "missing") is not None:
            bad.append("crs must be null: a missing one means longitude and latitude")
        bad += differ("covering", column["covering"]["bbox"], {n: ["bbox", n] for n in ("xmin", "ymin", "xmax", "ymax")})
        rows = geopandas.read_parquet(f)
        there = rows.geometry.dropna()
        bad += [f"geometry type {t} is not declared" for t in set(there.geom_type) - set(column["geometry_types"])]
        if len(there):
            bad += differ("bbox", [float(v) for v in column["bbox"]], [float(v) for v in there.total_bounds])
            own = np.array([list(b.values()) for b in pq.ParquetFile(f).read(["bbox"])["bbox"].to_pylist() if b])
            bad += [] if np.array_equal(own, there.bounds.to_numpy()) else ["column bbox is not the geometries'"]
        bad += [f"row {i}: {shapely.is_valid_reason(g)}" for i, g in there.items() if not g.is_valid]
        bad += [f"row {i} is clockwise" for i, g in there.items() if g.geom_type == "Polygon" and not g.exterior.is_ccw]
        check(f"hulls {f.parent.name}: GeoParquet", bad, f"{len(there)} geometries")
    off = out.duck.execute(f"SELECT count(*) FROM read_parquet('{out.glob('hulls')}') WHERE status = 'ok' AND NOT (ST_IsValid(geometry) AND abs(ST_Area(geometry) - area) <= 1e-9 * area AND abs(ST_Perimeter(geometry) - perimeter) <= 1e-9 * perimeter)").fetchone()[0]
    check("hulls: area and perimeter are DuckDB's", differ("rows that differ", off, 0))


def check_messages(out, tables):
    names = [n for n, _ in TABLES["messages"]]
    kept = set()
    columns = ", ".join(map(quoted, names)).replace('"timestamp"', 'epoch_us("timestamp")')  # times of DuckDB need a further package
    for f in out.files("messages"):
        want = pq.ParquetFile(f).read().to_pylist()
        duck = [dict(zip(names, r)) for r in out.duck.execute(f"SELECT {columns} FROM read_parquet(?, hive_partitioning=false)", [str(f)]).fetchall()]
        lazy = polars.read_parquet(f, hive_partitioning=False).to_dicts()
        bad = [f"{reader} has other rows" for reader, rows in (("DuckDB", duck), ("Polars", lazy)) if [comparable(r) for r in rows] != [comparable(r) for r in want]]
        topic = f.parent.name.partition("=")[2]
        said = 0
        for r in want:
            kept.add((topic, r["partition"], r["offset"]))
            if r["value"] is not None and len(r["value"]) != r["value_size"]:
                bad.append(f"offset {r['offset']}: {len(r['value'])} bytes, value_size {r['value_size']}")
            for h in r["headers"]:
                if h["key"] == "sha256":
                    said += 1
                    bad += differ(f"offset {r['offset']}", hashlib.sha256(r["value"]).digest(), h["value"])
        column = pq.read_metadata(f).row_group(0).column(names.index("value_size") + 2)  # headers are two
        bad += differ("the last column", column.path_in_schema, "value") + (["values have bounds"] if column.statistics and column.statistics.has_min_max else [])
        check(f"messages {f.name}: the same bytes in every reader", bad, f"{len(want)} rows, {said} of known values")
    read = {tuple(k) for t in ("frames", "tokens", "rejects") if t in tables for k in out.rows(t)[FRAME[:3]].itertuples(index=False)}
    check("messages: one for each offset that has rows", [f"{k} is not in both" for k in sorted(kept ^ read)], f"{len(kept)}")


def comparable(row):
    """A row of messages without what readers have of types of their own."""
    headers = [(h["key"], None if h["value"] is None else bytes(h["value"])) for h in row["headers"]]
    at = row["timestamp"]
    if isinstance(at, datetime.datetime):
        at = (at - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)
    return {**row, "headers": headers, "timestamp": at}


def check_tokens(out, tables):
    """Lists are the same numbers in every reader, null where they are not those of the task."""
    for f in out.files("tokens"):
        rows = pq.ParquetFile(f).read()
        bad = []
        for name in ("embedding", "next_ids", "top_ids", "top_logprobs"):
            want = rows[name].to_pylist()
            bad += differ(f"DuckDB's {name}", [r[0] and list(r[0]) for r in out.duck.execute(f"SELECT {name} FROM read_parquet(?, hive_partitioning=false)", [str(f)]).fetchall()] == want, True)
            bad += differ(f"Polars' {name}", polars.read_parquet(f, hive_partitioning=False)[name].to_list() == want, True)
        given = [e for e in rows["embedding"].to_pylist() if e is not None]
        lengths = {len(e) for e in given}
        said = (pq.read_metadata(f).metadata or {}).get(b"embedding.dim")
        bad += differ("embedding.dim", said and int(said), lengths.pop() if len(lengths) == 1 else None)
        norms = [np.linalg.norm(e) for e, n in zip(rows["embedding"].to_pylist(), rows["normalized"].to_pylist()) if n and e is not None]
        bad += [f"normalized, but of length {n}" for n in norms if abs(n - 1) > 1e-5]
        bad += [f"model_sha256 {s}" for s in set(rows["model_sha256"].to_pylist()) if len(s) != 64]
        for task, columns in {"embed": {"embedding"}, "logits": {"top_ids", "top_logprobs"}, "generate": {"next_ids"}}.items():
            held = [{c for c in ("embedding", "next_ids", "top_ids", "top_logprobs") if r[c] is not None} for r in rows.to_pylist() if r["task"] == task]
            bad += [f"{task} without {sorted(columns - h)}" for h in held if columns - h][:1]
        check(f"tokens {f.name}: lists", bad, f"{len(given)} embeddings of {rows.num_rows} rows")
    if "attention_stats" in tables:
        rows, tokens = out.rows("attention_stats"), out.rows("tokens").set_index(FRAME)
        at = pd.MultiIndex.from_frame(rows[FRAME])
        check("attention_stats: of sequences in tokens", differ("strangers", int((~at.isin(tokens.index)).sum()), 0) or differ("ids", (tokens["id"].reindex(at).to_numpy() == rows["id"].to_numpy()).all(), True), f"{len(rows)} rows")


def cloud(points):
    """Coordinates by point index, and which of them are finite."""
    points = points.sort_values("point_idx")
    axes = ["x", "y"] + ([] if points["z"].isna().all() else ["z"])
    xyz = points[axes].to_numpy(np.float64)
    return xyz, np.isfinite(xyz).all(axis=1)


def hull_faults(row, xyz, finite):
    vertices = xyz[row.hull_idx][:, :2]
    want = shapely.convex_hull(shapely.multipoints(xyz[finite][:, :2]))
    bad = [] if {tuple(v) for v in vertices} == {tuple(v) for v in shapely.get_coordinates(want)} else ["vertices differ from shapely's"]
    if row.status == "ok":
        bad += [] if np.array_equal(np.vstack([vertices, vertices[:1]]), shapely.get_coordinates(shapely.from_wkb(row.geometry))) else ["geometry is not that of hull_idx"]
        qhull = scipy.spatial.ConvexHull(xyz[finite][:, :2], qhull_options="Qt QJ" if len(vertices) < 3 else "Qt").volume
        bad += [] if np.isclose(qhull, row.area, rtol=1e-9) else [f"area {row.area}, SciPy's is {qhull}"]
    return bad


def solid_faults(row, xyz, finite):
    """Faults of a hull in space, which must be a closed surface around all points."""
    bad = differ("n_hull", row.n_hull, len(row.hull_idx)) + ([] if (np.diff(row.hull_idx) > 0).all() else ["hull_idx does not ascend"])
    if row.status != "ok":
        return bad + differ("faces", len(row.faces), 0)
    faces = np.asarray(row.faces, np.int64).reshape(-1, 3)
    bad += [] if (faces[:, 0] == faces.min(axis=1)).all() and (np.lexsort(faces.T[::-1]) == np.arange(len(faces))).all() else ["faces not in canonical order"]
    bad += differ("corners of the faces", sorted(set(faces.ravel())), list(row.hull_idx)) + differ("faces by Euler", len(faces), 2 * len(row.hull_idx) - 4)
    edges = {(a, b) for f in faces for a, b in zip(f, np.roll(f, -1))}
    bad += differ("edges", len(edges), 3 * len(faces)) + differ("edges without a twin", sum((b, a) not in edges for a, b in edges), 0)
    points = xyz[finite]
    center, size = points.mean(axis=0), np.ptp(points, axis=0).max()
    a, b, c = (xyz[faces[:, i]] - center for i in range(3))
    normal = np.cross(b - a, c - a)
    bad += [] if np.isclose(np.linalg.norm(normal, axis=1).sum() / 2, row.area, rtol=1e-9) else [f"area {row.area}, of the faces {np.linalg.norm(normal, axis=1).sum() / 2}"]
    outside = max(((points - center) @ n - n @ p).max() / np.linalg.norm(n) for n, p in zip(normal, a))
    bad += [] if outside <= 1e-12 * size else [f"a point is {outside} outside of a face"]
    qhull = scipy.spatial.ConvexHull(points).volume
    return bad + ([] if np.isclose(qhull, row.volume, rtol=1e-9) else [f"volume {row.volume}, SciPy's is {qhull}"])


def maxima_faults(row, xyz, finite):
    axes = ["xyz".index(d[0]) for d in row.directions.split(",")]
    if any(not d.endswith(":max") for d in row.directions.split(",")):
        return [f"directions {row.directions}"]
    # Of equal points the lowest index stays; sorted from the largest, only what came before can beat a point.
    q = xyz[:, axes]
    left, found = np.flatnonzero(finite), []
    left = left[np.lexsort((left, *(-q[left]).T[::-1]))]
    while len(left):
        found.append(int(left[0]))
        left = left[~(q[left] <= q[left[0]]).all(axis=1)]
    return [] if sorted(found) == list(row.idx) else [f"{len(row.idx)} maxima, by definition {len(found)}"]


def mesh_faults(rows, xyz, finite, area):
    t = rows.sort_values("tri_id")[["v0", "v1", "v2"]].to_numpy(np.int64)
    p = xyz[:, :2]
    bad = [] if (t[:, 0] == t.min(axis=1)).all() and (np.lexsort(t.T[::-1]) == np.arange(len(t))).all() else ["not in canonical order"]
    halves = np.concatenate([t[:, [0, 1, 2]], t[:, [1, 2, 0]], t[:, [2, 0, 1]]])  # from, to, opposite
    code = halves[:, 0] * len(p) + halves[:, 1]
    if len(np.unique(code)) != len(code):
        return bad + ["an edge twice in the same direction"]
    order = np.argsort(code)
    place = np.minimum(np.searchsorted(code[order], halves[:, 1] * len(p) + halves[:, 0]), len(code) - 1)
    twin = order[place]
    inner = code[twin] == halves[:, 1] * len(p) + halves[:, 0]
    n, border = len(np.unique(t)), int((~inner).sum())
    bad += differ("triangles by Euler", len(t), 2 * n - 2 - border) + differ("vertices", n, len(np.unique(p[finite], axis=0)))
    det, _ = orientation(p, t)
    bad += [] if np.isclose(det.sum() / 2, area, rtol=1e-9) else [f"area {det.sum() / 2}, the hull's is {area}"]
    inside, size = in_circle(p, halves[inner], halves[twin[inner], 2])
    broken = int((inside > 1e-13 * size).sum())
    return bad + differ("edges that are certainly not Delaunay", broken, 0)


def orientation(p, t):
    a, b, c = p[t[:, 0]], p[t[:, 1]], p[t[:, 2]]
    left, right = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]), (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    return left - right, np.abs(left) + np.abs(right)


def in_circle(p, t, d):
    """Positive where d is inside the circle of t, and the size of the terms, for the error."""
    a, b, c = (p[t[:, i]] - p[d] for i in range(3))
    value, size = 0.0, 0.0
    for u, v, w in ((a, b, c), (b, c, a), (c, a, b)):
        lift = (u * u).sum(axis=1)
        value = value + lift * (v[:, 0] * w[:, 1] - w[:, 0] * v[:, 1])
        size = size + lift * (np.abs(v[:, 0] * w[:, 1]) + np.abs(w[:, 0] * v[:, 1]))
    return value, size


def check_geometry(out, tables):
    """The operators' tables against the points they were made of."""
    clouds = {k: cloud(v) for k, v in out.frames("points").items()}
    hulls = {k: v.iloc[0] for k, v in out.frames("hulls").items()}
    meshes = out.frames("triangles")
    check("hulls: as shapely's and SciPy's", [f"{k}: {w}" for k, row in hulls.items() if k in clouds for w in hull_faults(row, *clouds[k])], f"{len(hulls)} frames")
    if "hulls3d" in tables:
        solids = {k: v.iloc[0] for k, v in out.frames("hulls3d").items()}
        check("hulls3d: closed, convex, SciPy's volume", [f"{k}: {w}" for k, row in solids.items() if k in clouds for w in solid_faults(row, *clouds[k])], f"{len(solids)} frames")
    maxima = [(k, row) for k, rows in out.frames("maxima").items() for _, row in rows.iterrows()]
    check("maxima: as defined", [f"{k}: {w}" for k, row in maxima if k in clouds for w in maxima_faults(row, *clouds[k])], f"{len(maxima)} frames")
    check("triangles: Delaunay", [f"{k}: {w}" for k, rows in meshes.items() for w in mesh_faults(rows, *clouds[k], hulls[k].area)], f"{len(meshes)} frames, {sum(map(len, meshes.values()))} triangles")


def main(root, tables):
    out = Output(root)
    there = sorted(p.name for p in out.root.iterdir() if p.is_dir() and p.name[0] not in "_.")
    check("tables", differ("found", there, sorted(tables)), " ".join(there))
    hidden = [str(p) for p in out.root.rglob("*.parquet") if any(part[0] in "_." for part in p.relative_to(out.root).parts)]
    check("no table file in a hidden place, where globs find it", hidden)
    for table in there:
        if table not in TABLES:
            check(f"{table}: known", "is no table of the documentation")
            continue
        check_files(out, table)
        check_folder(out, table)
    if "frames" in there:
        check_counts(out, there)
    if "hulls" in there:
        check_geo(out)
    if "tokens" in there:
        check_tokens(out, there)
    if "messages" in there:
        check_messages(out, there)
    if "points" in there:
        check_geometry(out, there)
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
