"""Frames from Kafka to Parquet by Flink SQL and its file sink, exactly once.

    python flink_job.py WORK --brokers HOST:PORT --topic NAME --out DIR --checkpoints DIR
        --every SECONDS --cores N --jars DIR [--follow]

WORK is what is written: values (a row a record), points (a row a point, by PointsOf.java),
shapes (a row a frame: its hull and maxima, by Python's libraries). Without --follow the job
ends where the topic ended when it began. Files are committed by checkpoints. Started again
after a kill it continues from the newest checkpoint.
"""
import argparse
import glob
import os
import sys

from pyflink.common import Configuration
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udtf

SOURCE = """CREATE TABLE frames (
  `partition` INT METADATA VIRTUAL,
  `offset` BIGINT METADATA VIRTUAL,
  `key` BYTES,
  `value` BYTES
) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{brokers}',
  'properties.max.partition.fetch.bytes' = '16777216', 'properties.fetch.max.bytes' = '16777216',
  'scan.startup.mode' = 'earliest-offset', {bounded}
  'key.format' = 'raw', 'key.fields' = 'key', 'value.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY'
)"""

SINK = """CREATE TABLE written ({columns}) WITH (
  'connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'parquet',
  'parquet.compression' = 'ZSTD', 'parquet.compression.codec.zstd.level' = '1',
  'parquet.block.size' = '67108864', 'parquet.enable.dictionary' = 'false'
)"""

COLUMNS = {
    "values": "`partition` INT, `offset` BIGINT, `key` BYTES, `value` BYTES",
    "points": "`partition` INT, `offset` BIGINT, point_idx INT, x FLOAT, y FLOAT, z FLOAT, intensity FLOAT",
    "shapes": "`partition` INT, `offset` BIGINT, n_points INT, area DOUBLE, hull BYTES, maxima ARRAY<INT>",
}

INSERT = {
    "values": "INSERT INTO written SELECT `partition`, `offset`, `key`, `value` FROM frames",
    "points": "INSERT INTO written SELECT `partition`, `offset`, p.* FROM frames, "
              "LATERAL TABLE(points_of(`value`)) AS p(point_idx, x, y, z, intensity)",
    "shapes": "INSERT INTO written SELECT `partition`, `offset`, s.* FROM frames, "
              "LATERAL TABLE(shapes_of(`value`)) AS s(n_points, area, hull, maxima)",
}


def shapes(value):
    """The function of SQL: one row a value."""
    from shapes import shapes_of

    points, area, hull, maxima = shapes_of(value)
    yield points, area, hull, maxima.tolist()


def newest_checkpoint(folder):
    """The newest complete checkpoint of any earlier job, or None."""
    complete = glob.glob(os.path.join(folder, "*", "chk-*", "_metadata"))
    return os.path.dirname(max(complete, key=os.path.getmtime)) if complete else None


def settings(options):
    values = {
        "parallelism.default": str(options.cores),
        "pipeline.jars": ";".join("file://" + jar for jar in sorted(glob.glob(os.path.join(options.jars, "*.jar")))),
        "pipeline.object-reuse": "true",
        "execution.checkpointing.interval": f"{options.every} s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "restart-strategy.type": "none",  # a fault ends the job and is seen
        "execution.checkpointing.dir": "file://" + options.checkpoints,
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "python.executable": sys.executable,
        "python.fn-execution.bundle.size": "16",  # values are large
    }
    checkpoint = newest_checkpoint(options.checkpoints)
    if checkpoint:
        values["execution.state-recovery.path"] = "file://" + checkpoint
    configuration = Configuration()
    for key, value in values.items():
        configuration.set_string(key, value)
    return EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=sorted(INSERT))
    for name in ("brokers", "topic", "out", "checkpoints", "jars"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--every", type=int, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--follow", action="store_true")
    options = parser.parse_args()
    tables = TableEnvironment.create(settings(options))
    bounded = "" if options.follow else "'scan.bounded.mode' = 'latest-offset',"
    tables.execute_sql(SOURCE.format(topic=options.topic, brokers=options.brokers, bounded=bounded))
    tables.execute_sql(SINK.format(columns=COLUMNS[options.work], out=options.out))
    if options.work == "points":
        tables.execute_sql("CREATE TEMPORARY FUNCTION points_of AS 'entropipe.peers.PointsOf' LANGUAGE JAVA")
    elif options.work == "shapes":
        tables.add_python_file(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.py"))
        tables.create_temporary_function("shapes_of", udtf(shapes, result_types=[
            DataTypes.INT(), DataTypes.DOUBLE(), DataTypes.BYTES(), DataTypes.ARRAY(DataTypes.INT())]))
    tables.execute_sql(INSERT[options.work]).wait()


if __name__ == "__main__":
    sys.exit(main())
