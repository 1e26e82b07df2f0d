#!/usr/bin/env python3
"""Talks to entropipe through a foreign Kafka client, kcat, in both directions.

    check.py PROGRAM BROKER FOLDER

kcat sends a raw KITTI frame, an Arrow stream, an Arrow stream without any header, something
that is no frame, and a raw frame without any header; rows for them must come out of the program
PROGRAM, for the last one where --content-type says so. Then the program sends, and
kcat and pyarrow read. BROKER is HOST:PORT of a Kafka that creates topics on demand; FOLDER, for
files, must not exist.

One line a check, then 'N passed, N failed'; exit status 1 when a check failed.
"""
import pathlib
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc
import shapely

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


def main(program, broker, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    run = f"{time.time_ns():x}"  # a broker may have served others before
    receive(program, broker, f"foreign-{run}", folder)
    give(program, broker, f"ours-{run}")
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
