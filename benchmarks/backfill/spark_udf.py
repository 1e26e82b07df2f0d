"""Hulls and maxima of KITTI scans by a UDF of Spark, as a user of Spark would write it.

    spark-submit spark_udf.py ARCHIVE OUT [--hull scipy|shapely] [--partitions N]

NumPy reads a scan, SciPy or shapely makes its hull, moocore its maxima, Spark writes Parquet:
a row a scan. shapely is the faster one, and knows no indices: its hulls have coordinates.
"""
import argparse
import os
import sys

import pyarrow as pa
from pyspark.sql import SparkSession

SCHEMA = "sequence string, frame_id bigint, n_points int, area double, hull_idx array<int>, hull binary, " \
         "maxima_idx array<int>"


def hull_of_scipy(points):
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    return hull.volume, hull.vertices, None


def hull_of_shapely(points):
    import shapely

    hull = shapely.convex_hull(shapely.linestrings(points))  # of a line: a tenth of a MultiPoint's time
    return shapely.area(hull), None, shapely.to_wkb(hull)


def tables(hull_of):
    """The function of mapInArrow: batches of files to batches of rows."""

    def run(batches):
        import moocore
        import numpy as np

        for batch in batches:
            rows = []
            for path in batch.column(0).to_pylist():
                points = np.fromfile(path, dtype="<f4").reshape(-1, 4)[:, :3]
                area, indices, shape = hull_of(points[:, :2])
                maxima = np.flatnonzero(moocore.is_nondominated(-points))  # it minimises
                rows.append({
                    "sequence": os.path.basename(os.path.dirname(path)),
                    "frame_id": int(os.path.basename(path).partition(".")[0]),
                    "n_points": len(points), "area": float(area), "hull_idx": indices, "hull": shape,
                    "maxima_idx": maxima.astype(np.int32),
                })
            yield pa.RecordBatch.from_pylist(rows, schema=pa.schema([
                ("sequence", pa.string()), ("frame_id", pa.int64()), ("n_points", pa.int32()), ("area", pa.float64()),
                ("hull_idx", pa.list_(pa.int32())), ("hull", pa.binary()), ("maxima_idx", pa.list_(pa.int32()))]))

    return run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive")
    parser.add_argument("out")
    parser.add_argument("--hull", choices=["scipy", "shapely"], default="scipy")
    parser.add_argument("--partitions", type=int, default=8)
    options = parser.parse_args()
    session = SparkSession.builder.appName("hulls and maxima").getOrCreate()
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(options.archive) for name in names
                   if name.endswith(".bin"))
    scans = session.createDataFrame([(file,) for file in files], "path string").repartition(options.partitions)
    hull_of = {"scipy": hull_of_scipy, "shapely": hull_of_shapely}[options.hull]
    scans.mapInArrow(tables(hull_of), SCHEMA).write.parquet(options.out)
    session.stop()


if __name__ == "__main__":
    sys.exit(main())
