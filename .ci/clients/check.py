#!/usr/bin/env python3
"""Talks to entropipe through foreign Kafka clients, in both directions.

    check.py PROGRAM BROKER FOLDER JARS

kcat sends a raw KITTI frame, an Arrow stream, an Arrow stream without any header, something
that is no frame, and a raw frame without any header; rows for them must come out of the program
PROGRAM, for the last one where --content-type says so. Then the program sends, and
kcat and pyarrow read. Last, kcat, confluent-kafka and Kafka's console producer send one cloud as
each content type, and the program sends it as Arrow: all have the same rows. BROKER is HOST:PORT of a Kafka that creates topics on demand; FOLDER, for
files, must not exist. JARS holds the jars of Kafka.

One line a check, then 'N passed, N failed'; exit status 1 when a check failed.
"""
import pathlib
import subprocess
import sys
import time

import confluent_kafka
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc
import shapely

import content_types

POINTS = 120_000  # 1.9 MB: more than a message of a default topic, client or fetch
counts = {True: 0, False: 0}


def check(name, got, want):
    counts[got == want] += 1
    print("ok  " if got == want else "FAIL", name if got == want else f"{name}: {got!r}, want {want!r}", flush=True)


def call(*command, timeout=200):
    """Runs a command, shows it, and returns what it wrote; its failure is ours."""
    print("+", *command, flush=True)
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=timeout)
    if done.returncode:
        sys.exit(f"{command[0]} ended with status {done.returncode}")
    return done.stdout


def send(broker, topic, value, key, **headers):
    given = [f for name, text in headers.items() for f in ("-H", f"{name.replace('_', '-')}={text}")]
    call("kcat", "-P", "-b", broker, "-t", topic, "-k", key, "-X", "message.max.bytes=16000000", *given, value)


def stream(path, cloud, compression):
    table = pa.table({n: cloud[:, i] for i, n in enumerate(("x", "y", "z"))})
    with pa.ipc.new_stream(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as w:
        w.write_table(table)


def send_all(broker, topic, folder):
    """Sends one message of each kind and returns the cloud of all frames."""
    cloud = np.random.default_rng(7).normal(scale=20, size=(POINTS, 4)).astype("<f4")
    cloud[:, 3] = np.abs(cloud[:, 3])  # reflectances
    cloud.tofile(folder / "raw.bin")
    stream(folder / "points.arrow", cloud[:, :3].astype("f8"), "lz4")
    stream(folder / "plain.arrow", cloud[:, :3], None)
    (folder / "text").write_text("no frame")
    send(broker, topic, folder / "raw.bin", "drive", content_type="application/vnd.kitti.velodyne", dataset="foreign", sequence="raw", frame_id=7, ts_ns=1317042737000000001)
    send(broker, topic, folder / "points.arrow", "drive", content_type="application/vnd.apache.arrow.stream", schema="points/1", dataset="foreign", sequence="arrow", sensor="top", frame_id=8, ts_ns=1317042737100000001)
    send(broker, topic, folder / "plain.arrow", "no-header")
    send(broker, topic, folder / "text", "drive")
    send(broker, topic, folder / "raw.bin", "bare")
    return cloud


def rows(out, table):
    return pa.dataset.dataset(out / table, partitioning="hive").to_table().sort_by("offset").to_pylist()


def receive(program, broker, topic, folder):
    """What kcat sent becomes rows."""
    cloud = send_all(broker, topic, folder)
    out = folder / "out"
    call(program, "run", "--brokers", broker, "--topic", topic, "--out", out, "--ops", "hull2d,maxima3d", "--until-end", "--log-level", "warn")
    call(program, "verify", out)
    frames = rows(out, "frames")
    check("frames", [(f["dataset"], f["sequence"], f["sensor"], f["frame_id"], f["n_points"], f["status_hull2d"]) for f in frames],
          [("foreign", "raw", "", 7, POINTS, "ok"), ("foreign", "arrow", "top", 8, POINTS, "ok"), (topic, "no-header", "", 2, POINTS, "ok")])
    check("event times", [f["ts_ns"] for f in frames[:2]], [1317042737000000001, 1317042737100000001])
    hull = shapely.convex_hull(shapely.multipoints(cloud[:, :2].astype("f8")))
    want = {tuple(p) for p in shapely.get_coordinates(hull)}
    for h in rows(out, "hulls"):
        check(f"hull of {h['sequence']} is shapely's", {tuple(p) for p in cloud[h["hull_idx"], :2].astype("f8")}, want)
    rejects = rows(out, "rejects")
    check("rejects", [(r["offset"], r["stage"], r["value_size"]) for r in rejects], [(3, "decode", 8), (4, "decode", 16 * POINTS)])
    check("the reject says what is missing", all(s in rejects[1]["message"] for s in ("content-type: application/vnd.kitti.velodyne", f"--content-type {topic}=kitti")), True)
    raw = folder / "raw"
    call(program, "run", "--brokers", broker, "--topic", topic, "--content-type", "kitti", "--out", raw, "--ops", "hull2d", "--until-end", "--log-level", "warn")
    call(program, "verify", raw)
    check("a raw frame without headers", [(f["offset"], f["sequence"], f["n_points"]) for f in rows(raw, "frames")][3:], [(4, "bare", POINTS)])
    check("rejects with --content-type", [r["offset"] for r in rows(raw, "rejects")], [3])


def give(program, broker, topic):
    """What the program sends, kcat and pyarrow read."""
    call(program, "produce", "synthetic", "--kind", "lidar", "--frames", 3, "--points", 5000, "--rate", "max", "--brokers", broker, "--topic", topic, "--partitions", 1, "--compression", "zstd")
    read = ("kcat", "-C", "-q", "-e", "-b", broker, "-t", topic, "-o", "beginning", "-f")
    headers = [dict(h.split("=", 1) for h in line.split(",")) for line in call(*read, r"%h\n").decode().splitlines()]
    check("messages", len(headers), 3)
    check("headers", [(h["content-type"], h["schema"], h["dataset"], h["frame-id"], h["ce_specversion"]) for h in headers],
          [("application/vnd.apache.arrow.stream", "points/1", "synthetic", str(i), "1.0") for i in range(3)])
    sizes = [int(n) for n in call(*read, r"%S\n").split()]
    values = call(*read, "%s")
    check("bytes", len(values), sum(sizes))
    for i, size in enumerate(sizes):
        table = pa.ipc.open_stream(values[sum(sizes[:i]):][:size]).read_all()
        table.validate(full=True)
        check(f"columns of message {i}", table.column_names[:3], ["x", "y", "z"])
        check(f"points of message {i}", table.num_rows > 1000 and np.isfinite(table["x"].to_numpy()).any(), True)


def by_kcat(broker, topic, value, key, headers, folder):
    (folder / "value").write_bytes(value)
    send(broker, topic, folder / "value", key, **headers)


def by_confluent(broker, topic, value, key, headers, folder):
    failed = []
    producer = confluent_kafka.Producer({"bootstrap.servers": broker, "message.max.bytes": 16_000_000})
    producer.produce(topic, value, key, headers={n.replace("_", "-"): str(v).encode() for n, v in headers.items()},
                     on_delivery=lambda err, _: failed.append(err) if err else None)
    if producer.flush(60) or failed:
        sys.exit(f"confluent-kafka sent nothing: {failed}")


def by_console(broker, topic, value, key, headers, jars):
    """The console producer sends lines of UTF-8: one content type, foxglove.PointCloud in JSON, is one."""
    line = ",".join(f"{n.replace('_', '-')}:{v}" for n, v in headers.items()).encode() + b"\t" + key.encode() + b"\t" + value + b"\n"
    command = ["java", "-cp", f"{jars}/*", "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", broker, "--topic", topic, "--reader-property", "parse.headers=true",
               "--reader-property", "parse.key=true"]
    print("+", *command, flush=True)
    done = subprocess.run(command, input=line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120)
    if done.returncode or b"ERROR" in done.stderr:
        sys.exit(f"the console producer ended with status {done.returncode}: {done.stderr.decode()[-2000:]}")


def same_rows(program, broker, run, folder, jars):
    """One cloud, as the program sends it and as each client sends each content type, has the same rows."""
    points, ns = content_types.cloud(2000), 1577836800_000000000  # when produce begins where scans have no times
    scans = folder / "scans"
    scans.mkdir()
    points.tofile(scans / "0000000000.bin")
    produced, typed, topics, settings = f"produced-{run}", f"typed-{run}", [], []
    call(program, "produce", "kitti", scans, "--brokers", broker, "--topic", produced, "--rate", "max", "--partitions", 1)
    names = {"dataset": "kitti", "sensor": content_types.FRAME, "frame_id": 0, "ts_ns": ns}
    sequences = []
    for (content_type, short), value in content_types.values(points, ns, folder).items():
        of = {n: v for n, v in names.items() if n in ("dataset", "frame_id") or short not in ("pointcloud2", "foxglove", "foxglove-json")}
        for client in (by_kcat, by_confluent):
            sequences.append(f"{short} {client.__name__}")
            client(broker, typed, value, sequences[-1], {**of, "content_type": content_type}, folder)
        topics.append(f"{short}-{run}")  # without a header that names the format
        settings.append(f"{topics[-1]}={short}")
        sequences.append(f"{short} by topic")
        by_confluent(broker, topics[-1], value, sequences[-1], of, folder)
    of = {"dataset": "kitti", "frame-id": 0}
    sequences.append("foxglove-json by_console")
    by_console(broker, typed, content_types.foxglove_studio_json(points, ns), sequences[-1], {**of, "content-type": "application/vnd.foxglove.pointcloud+json"}, jars)
    sequences.append("foxglove-json by_console, by topic")
    by_console(broker, f"foxglove-json-{run}", content_types.foxglove_json(points, ns), sequences[-1], of, jars)
    out = folder / "same"
    call(program, "run", "--brokers", broker, "--topic", ",".join([produced, typed, *topics]), "--content-type", ",".join(settings), "--out", out, "--until-end", "--log-level", "warn",
         "--tables", "hulls,hulls3d,maxima,triangles,points")
    call(program, "verify", out)
    keys = {(f["topic"], f["partition"], f["offset"]): f["sequence"] for f in rows(out, "frames")}
    check("a frame of each client and content type", sorted(keys.values()), sorted([*sequences, "scans"]))
    for table in ("frames", "hulls", "hulls3d", "maxima", "triangles", "points"):
        by_sequence = {}
        for r in doubles(out, table):
            by_sequence.setdefault(keys[r["topic"], r["partition"], r["offset"]], []).append(
                {n: v for n, v in r.items() if n not in OWN and (not n.endswith("_ns") or n == "ts_ns")})
        want = by_sequence["scans"]
        check(f"{table}: the rows of produce", len(want) > 0, True)
        check(f"{table}: rows that differ from those of produce", [s for s in sequences if by_sequence.get(s) != want], [])


# What tells one record from another, and columns that some formats alone have.
OWN = {"topic", "partition", "offset", "sequence", "ring", "return", "label", "laser"}


def doubles(out, table):
    """The rows of a table whose files may hold float32 or float64, in one order."""
    for path in sorted((out / table).rglob("*.parquet")):
        yield from pa.dataset.dataset(path, partitioning=pa.dataset.partitioning(flavor="hive"), partition_base_dir=str(out / table)).to_table().to_pylist()


def main(program, broker, folder, jars):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    run = f"{time.time_ns():x}"  # a broker may have served others before
    receive(program, broker, f"foreign-{run}", folder)
    give(program, broker, f"ours-{run}")
    same_rows(program, broker, run, folder, jars)
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] else 0


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
