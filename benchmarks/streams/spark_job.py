"""Frames from Kafka to Parquet by Spark Structured Streaming, exactly once.

    spark-submit spark_job.py WORK --brokers HOST:PORT --topic NAME --out DIR --checkpoints DIR
        (--batch N | --every SECONDS)

WORK is what is written: values (a row a record), points (a row a point), shapes (a row a
frame: its hull and maxima). With --batch the job reads what the topic has, N records a
micro-batch, and ends; with --every it goes on, a micro-batch at each interval. Started again
after a kill it continues from the checkpoints; `_spark_metadata` says which files count.
"""
import argparse
import os
import sys

import pyarrow as pa
from pyspark.sql import SparkSession

POINT = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("point_idx", pa.int32()),
                   *((name, pa.float32()) for name in ("x", "y", "z", "intensity"))])
SHAPE = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("n_points", pa.int32()), ("area", pa.float64()),
                   ("hull", pa.binary()), ("maxima", pa.list_(pa.int32()))])


def records(batches):
    """Partition, offset and value of each record; a value is a view of its batch."""
    for batch in batches:
        for partition, offset, value in zip(batch["partition"], batch["offset"], batch["value"]):
            yield partition, offset, value.as_buffer()


def points(batches):
    """Batches of records to batches of points, whose coordinates are not copied."""
    import numpy as np
    from shapes import COLUMNS, batches_of

    for partition, offset, value in records(batches):
        begin = 0
        for cloud in batches_of(value):
            rows = len(cloud)
            numbers = pa.array(np.arange(begin, begin + rows, dtype=np.int32))
            yield pa.RecordBatch.from_arrays([pa.repeat(partition, rows), pa.repeat(offset, rows), numbers,
                                              *(cloud.column(name) for name in COLUMNS)], schema=POINT)
            begin += rows


def shapes(batches):
    """Batches of records to a batch of one frame each."""
    from shapes import shapes_of

    for partition, offset, value in records(batches):
        row = (partition.as_py(), offset.as_py(), *shapes_of(value))
        yield pa.RecordBatch.from_arrays([pa.array([item], field.type) for item, field in zip(row, SHAPE)],
                                         schema=SHAPE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["values", "points", "shapes"])
    for name in ("brokers", "topic", "out", "checkpoints"):
        parser.add_argument("--" + name, required=True)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--batch", type=int)
    how.add_argument("--every", type=float)
    options = parser.parse_args()
    session = SparkSession.builder.appName(options.work).getOrCreate()
    session.sparkContext.addPyFile(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.py"))
    source = (session.readStream.format("kafka")
              .option("kafka.bootstrap.servers", options.brokers).option("subscribe", options.topic)
              .option("startingOffsets", "earliest")
              .option("kafka.max.partition.fetch.bytes", 16 << 20).option("kafka.fetch.max.bytes", 64 << 20))
    if options.batch:
        source = source.option("maxOffsetsPerTrigger", options.batch)
    rows = source.load()
    if options.work == "values":
        rows = rows.select("partition", "offset", "key", "value")
    elif options.work == "points":
        rows = rows.select("partition", "offset", "value").mapInArrow(
            points, "partition int, offset bigint, point_idx int, x float, y float, z float, intensity float")
    else:
        rows = rows.select("partition", "offset", "value").mapInArrow(
            shapes, "partition int, offset bigint, n_points int, area double, hull binary, maxima array<int>")
    trigger = {"availableNow": True} if options.batch else {"processingTime": f"{options.every} seconds"}
    query = (rows.writeStream.format("parquet").option("path", options.out)
             .option("checkpointLocation", options.checkpoints).trigger(**trigger).start())
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    sys.exit(main())
