"""Reads what the engines have committed, as their readers do.

    python judge.py count ENGINE WORK OUT           files, file_bytes and rows, from the footers
    python judge.py equal WORK ENGINE=OUT...        the rows of all outputs must be equal
    python judge.py offsets ENGINE WORK OUT COUNTS  rows, missing and doubled offsets of messages or
                                                    shapes, and what a reader of all files finds doubled
                                                    or torn; COUNTS is a JSON object of the partitions'
                                                    records

Prints one line of JSON. Of entropipe a table's Parquet files count, of Flink the files whose
names do not begin with a dot or an underscore, of Spark the files that `_spark_metadata` names,
of Iceberg those of the newest snapshot.
"""
import glob
import json
import os
import sys
import urllib.parse

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

TABLE = {"messages": "messages", "records": "messages", "points": "points", "shapes": "hulls"}
POINT = "partition::INT, \"offset\"::BIGINT, point_idx::INT, x::FLOAT, y::FLOAT, z::FLOAT, intensity::FLOAT"
PASSED = {"partition": "INT", "offset": "BIGINT", "key": "BLOB", "value": "BLOB"}


def spark_files(out):
    """The files of the newest state of Spark's log of an output."""
    log = os.path.join(out, "_spark_metadata")
    batches = {}
    for name in os.listdir(log) if os.path.isdir(log) else []:
        number, _, kind = name.partition(".")
        if number.isdigit() and kind in ("", "compact"):
            batches[int(number)] = name  # a compacted batch also holds all before it
    begin = max((n for n, name in batches.items() if name.endswith(".compact")), default=0)
    found = []
    for number in sorted(n for n in batches if n >= begin):
        with open(os.path.join(log, batches[number])) as lines:
            next(lines)  # version
            found += [json.loads(line) for line in lines if line.strip()]
    return [urllib.parse.unquote(urllib.parse.urlparse(f["path"]).path) for f in found if f["action"] == "add"]


def all_files(out):
    """What a reader takes that knows nothing but the names of files."""
    return sorted(path for path in glob.glob(os.path.join(out, "**", "*"), recursive=True)
                  if os.path.isfile(path) and not any(part.startswith(("_", "."))
                                                      for part in os.path.relpath(path, out).split(os.sep)))


def iceberg_files(out):
    """The files of the newest snapshot of the table in a folder."""
    from pyiceberg.table import StaticTable

    metadata = os.path.join(out, "lake", "written", "metadata")
    if not os.path.exists(os.path.join(metadata, "version-hint.text")):
        return []  # before the first commit
    with open(os.path.join(metadata, "version-hint.text")) as hint:
        table = StaticTable.from_metadata(os.path.join(metadata, f"v{hint.read().strip()}.metadata.json"))
    return [urllib.parse.unquote(urllib.parse.urlparse(task.file.file_path).path) for task in table.scan().plan_files()]


def committed(engine, out, table):
    if engine == "iceberg":
        return iceberg_files(out)
    if engine == "entropipe":
        return sorted(glob.glob(os.path.join(out, table, "**", "*.parquet"), recursive=True))
    return spark_files(out) if engine == "spark" else all_files(out)


def count(engine, work, out):
    files = committed(engine, out, TABLE[work])
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return {"files": len(files), "file_bytes": sum(map(os.path.getsize, files)), "rows": rows}


def checksum(rows, columns):
    """Number of rows, and a sum over them that does not depend on their order."""
    return rows.aggregate(f"count(*), sum(hash({columns})::HUGEINT)").fetchone()


def parquet(files):
    return duckdb.read_parquet(files, hive_partitioning=False)


def passed(engine, files):
    """Rows that passed through: partition, offset, key (of an engine that writes it) and value."""
    names = [name for name in PASSED if name != "key" or engine != "iceberg"]
    found = {}
    columns = ", ".join(f'"{name}"::{PASSED[name]}' for name in names)
    for row in parquet(files).project(columns).fetchall():
        row = dict(zip(names, row))
        place = row["partition"], row["offset"]
        if place in found:
            sys.exit(f"{engine}: partition {place[0]}, offset {place[1]} is there twice")
        found[place] = row
    return found


def same_passed(one, other):
    """Rows of two engines must have the same bytes in the columns that both have."""
    if one[1].keys() != other[1].keys():
        sys.exit(f"{one[0]} has {len(one[1])} rows, {other[0]} {len(other[1])}, or others")
    for place, row in one[1].items():
        for name in row.keys() & other[1][place].keys():
            if row[name] != other[1][place][name]:
                sys.exit(f"partition {place[0]}, offset {place[1]}: {name} of {one[0]} is not that of {other[0]}")


def shapes_of(engine, out):
    """Number of points, area, vertices and maxima of each frame."""
    import shapely

    if engine == "entropipe":
        # By pyarrow: DuckDB makes geometries of WKB, which it does not give away as bytes.
        hulls, maxima = (pa.concat_tables(pq.ParquetFile(file).read(["partition", "offset", "index", *columns])
                                          for file in committed(engine, out, table))
                         for table, columns in (("hulls", ["n_points", "area", "geometry"]), ("maxima", ["idx"])))
        rows = duckdb.sql('SELECT partition, "offset", n_points, area, geometry, idx FROM hulls '
                          'JOIN maxima USING (partition, "offset", "index")').fetchall()
    else:
        rows = parquet(committed(engine, out, None)).project(
            'partition, "offset", n_points, area, hull, maxima').fetchall()
    found = {}
    for partition, offset, points, area, hull, best in rows:
        if (partition, offset) in found:
            sys.exit(f"{engine}: partition {partition}, offset {offset} is there twice")
        corners = frozenset(map(tuple, shapely.get_coordinates(shapely.from_wkb(bytes(hull))).tolist()))
        found[partition, offset] = points, area, corners, frozenset(best)
    return found


def equal(work, *outs):
    outs = dict(item.split("=", 1) for item in outs)
    found = {}
    for engine, out in outs.items():
        files = committed(engine, out, TABLE[work])
        if work == "shapes":
            found[engine] = shapes_of(engine, out)
        elif work == "points":
            found[engine] = checksum(parquet(files), POINT)
        else:
            found[engine] = passed(engine, files)
    first, *others = sorted(found.items(), key=lambda item: item[0] == "iceberg")  # which has no keys
    for other in others:
        if work == "shapes":
            same_shapes(first, other)
        elif work != "points":
            same_passed(first, other)
        elif other[1] != first[1]:
            sys.exit(f"{work}: {first[0]} has rows and checksum {first[1]}, {other[0]} {other[1]}")
    rows = first[1][0] if work == "points" else len(first[1])
    if not rows:
        sys.exit(f"{work}: nothing was compared")
    return {"rows": rows, "compared": len(outs)}


def same_shapes(one, other):
    """Areas may differ by rounding; vertices and maxima may not."""
    if one[1].keys() != other[1].keys():
        sys.exit(f"{one[0]} has {len(one[1])} frames, {other[0]} {len(other[1])}, or others")
    for key, (points, area, corners, best) in one[1].items():
        points2, area2, corners2, best2 = other[1][key]
        if (points, corners, best) != (points2, corners2, best2) or abs(area - area2) > 1e-9 * abs(area):
            sys.exit(f"frame {key}: {one[0]} has {points} points, {len(corners)} vertices, {len(best)} maxima, area {area}, "
                     f"{other[0]} {points2}, {len(corners2)}, {len(best2)}, {area2}, or others")


def offsets(engine, work, out, records):
    """Offsets of rows beside the number of records in each partition."""
    want = json.loads(records)
    result = {"rows": 0, "missing": 0, "doubled": 0}
    files = committed(engine, out, TABLE[work])
    found = seen(files)
    result["rows"] = sum(found.values())
    result["doubled"] = sum(n - 1 for n in found.values())
    result["missing"] = sum((int(p), o) not in found for p, n in want.items() for o in range(n))
    if engine != "entropipe":
        written = [file for file in all_files(out) if engine != "iceberg" or file.endswith(".parquet")]
        whole = [file for file in written if complete(file)]
        result["torn"] = len(written) - len(whole)
        result["unguarded"] = sum(n - 1 for n in seen(whole).values())
    return result


def complete(file):
    """Whether a file has a footer: a killed writer may leave one without."""
    try:
        return pq.read_metadata(file) is not None
    except pa.ArrowInvalid:
        return False


def seen(files):
    if not files:
        return {}
    return {(p, o): n for p, o, n in parquet(files).aggregate('partition, "offset", count(*)').fetchall()}


print(json.dumps({"count": count, "equal": equal, "offsets": offsets}[sys.argv[1]](*sys.argv[2:])))
