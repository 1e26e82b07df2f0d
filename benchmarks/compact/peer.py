"""Makes few Parquet files of many, for `go run ./benchmarks/compact`.

    peer.py FILE     FILE is JSON: way, tables (file names by table), out, target (bytes of a file)

Each way writes one table after the other, in files of about the target's size, and syncs them. Prints JSON: seconds,
and processor seconds, from the first file to the last sync, without imports and without the start of a JVM; version.
"""
import importlib.metadata
import json
import os
import pathlib
import sys
import time

request = json.loads(pathlib.Path(sys.argv[1]).read_text())
out, target = pathlib.Path(request["out"]), request["target"]


def sync(folder):
    for path in folder.rglob("*.parquet"):
        with open(path, "rb") as f:
            os.fsync(f.fileno())


def batches(names):
    """The files in runs of about the target's size."""
    run, size = [], 0
    for name in names:
        n = os.path.getsize(name)
        if run and size + n > target:
            yield run
            run, size = [], 0
        run.append(name)
        size += n
    if run:
        yield run


def ticks(pid):
    """The processor seconds of another process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def duckdb_way():
    """COPY (SELECT * FROM read_parquet(...)): each value is decoded and encoded."""
    import duckdb
    db = duckdb.connect(config={"threads": 1, "preserve_insertion_order": "true"})

    def work():
        for table, names in request["tables"].items():
            folder = out / table
            folder.mkdir(parents=True)
            for k, run in enumerate(batches(names)):
                db.execute(f"COPY (SELECT * FROM read_parquet({run!r}, hive_partitioning=false)) TO '{folder / f'{k}.parquet'}' (FORMAT parquet, COMPRESSION zstd)")
            sync(folder)
    return importlib.metadata.version("duckdb"), work, time.process_time


def pyarrow_way():
    """ParquetFile.read and ParquetWriter.write_table: each value is decoded and encoded."""
    import pyarrow
    import pyarrow.parquet as pq
    pyarrow.set_cpu_count(1)

    def work():
        for table, names in request["tables"].items():
            folder = out / table
            folder.mkdir(parents=True)
            for k, run in enumerate(batches(names)):
                with pq.ParquetWriter(folder / f"{k}.parquet", pq.read_schema(run[0]), compression="zstd") as writer:
                    for name in run:
                        writer.write_table(pq.ParquetFile(name).read(use_threads=False))
            sync(folder)
    return importlib.metadata.version("pyarrow"), work, time.process_time


def polars_way():
    """scan_parquet and sink_parquet: each value is decoded and encoded."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars

    def work():
        for table, names in request["tables"].items():
            folder = out / table
            folder.mkdir(parents=True)
            for k, run in enumerate(batches(names)):
                polars.scan_parquet(run, hive_partitioning=False, glob=False).sink_parquet(folder / f"{k}.parquet", compression="zstd")
            sync(folder)
    return importlib.metadata.version("polars"), work, time.process_time


def parquet_java_way():
    """ParquetFileWriter.appendFile of parquet-java, which copies row groups as they are, as parquet-cli's merge does."""
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    jars = pathlib.Path(pyspark.__file__).parent / "jars"
    port = launch_gateway(classpath=os.pathsep.join(map(str, jars.glob("*.jar"))), die_on_exit=True, javaopts=["-Xmx2g"],
                          jarpath=str(next(pathlib.Path(sys.prefix).glob("share/py4j/py4j*.jar"))), return_proc=True)
    port, process = port[0], port[-1]
    jvm = JavaGateway(gateway_parameters=GatewayParameters(port=port)).jvm
    hadoop = jvm.org.apache.parquet.hadoop
    conf = jvm.org.apache.hadoop.conf.Configuration()
    path = jvm.org.apache.hadoop.fs.Path
    from_path = hadoop.util.HadoopInputFile.fromPath

    def append(names, to):
        reader = hadoop.ParquetFileReader.open(from_path(path(names[0]), conf))
        meta = reader.getFileMetaData()
        writer = hadoop.ParquetFileWriter(conf, meta.getSchema(), path(str(to)))
        writer.start()
        for name in names:
            writer.appendFile(from_path(path(name), conf))
        writer.end(meta.getKeyValueMetaData())
        reader.close()

    for k in range(3):  # the JVM compiles what it runs often
        for table, names in request["tables"].items():
            append(names[:200], out / f"warm-{table}-{k}.parquet")

    def work():
        for table, names in request["tables"].items():
            folder = out / table
            folder.mkdir(parents=True)
            for k, run in enumerate(batches(names)):
                append(run, folder / f"{k}.parquet")
            sync(folder)
    version = next(pathlib.Path(pyspark.__file__).parent.glob("jars/parquet-hadoop-*.jar")).stem.rsplit("-", 1)[1]
    return version, work, lambda: ticks(process.pid) + time.process_time()


ways = {"DuckDB": duckdb_way, "pyarrow": pyarrow_way, "Polars": polars_way, "parquet-java": parquet_java_way}
version, work, processor = ways[request["way"]]()
begin, before = time.perf_counter(), processor()
work()
print(json.dumps({"seconds": time.perf_counter() - begin, "cpu": processor() - before,
                  "version": version}))
