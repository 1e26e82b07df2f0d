#!/usr/bin/env python3
"""A backfill as a Spark job: each task is a shard, and runs entropipe.

    spark-submit spark.py [--shards N] [--program PATH] -- ARCHIVE... --out OUT [FLAG...]

What follows -- are arguments of `entropipe backfill`. Exit status: 0 when every shard is
done, 2 or 78 when entropipe found a mistake in its arguments or configuration, else 1.
docs/schedulers/spark.md says what Spark tries again.
"""
import argparse
import collections
import ctypes
import os
import signal
import subprocess
import sys

from pyspark import TaskContext
from pyspark.sql import SparkSession

USAGE, CONFIGURATION = 2, 78  # mistakes: another try finds them again


def end_with_parent():
    """Asks Linux for a SIGTERM when the Python worker is gone, as when its task is killed."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def run_shard(command, shard, processors):
    """Runs a shard to its end. Returns its exit status and the last lines of its log."""
    environment = dict(os.environ, GOMAXPROCS=str(processors))
    process = subprocess.Popen(command + ["--shard", shard], env=environment, stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, preexec_fn=end_with_parent)
    last = collections.deque(maxlen=5)
    for line in process.stderr:
        text = line.decode(errors="replace").rstrip()
        print(f"shard {shard}: {text}", file=sys.stderr, flush=True)
        last.append(text)
    return process.wait(), "\n".join(last)


def shards_of(command, shards):
    """The function of mapPartitions: yields (shard, exit status, last lines) of each shard."""

    def run(indexes):
        context = TaskContext.get()
        for index in indexes:
            shard = f"{index}/{shards}"
            status, last = run_shard(command, shard, context.cpus() if context else 1)
            if status not in (0, USAGE, CONFIGURATION):
                raise RuntimeError(f"shard {shard}: exit status {status}\n{last}")
            yield shard, status, last

    return run


def main():
    parser = argparse.ArgumentParser(usage="spark.py [--shards N] [--program PATH] -- ARCHIVE... --out OUT [FLAG...]",
                                     description="Runs entropipe backfill as tasks of a Spark job, a shard each.")
    parser.add_argument("--shards", type=int, help="number of shards; else four times Spark's parallelism")
    parser.add_argument("--program", default="entropipe", help="the program on the executors (entropipe)")
    parser.add_argument("arguments", nargs="+", help="arguments of entropipe backfill")
    options = parser.parse_args()
    session = SparkSession.builder.appName("entropipe backfill").getOrCreate()
    context = session.sparkContext
    shards = options.shards or 4 * context.defaultParallelism
    command = [options.program, "backfill", *options.arguments]
    try:
        ended = context.parallelize(range(shards), shards).mapPartitions(shards_of(command, shards)).collect()
    except Exception as error:  # a shard that failed too often
        print(f"spark.py: {error}", file=sys.stderr)
        return 1
    finally:
        session.stop()
    mistakes = [(shard, status, last) for shard, status, last in ended if status != 0]
    for shard, status, last in mistakes[:1]:
        print(f"spark.py: shard {shard}: exit status {status}\n{last}", file=sys.stderr)
    print(f"{len(ended) - len(mistakes)} of {shards} shards are done")
    return mistakes[0][1] if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
