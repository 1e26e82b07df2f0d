"""Reads point clouds with Python's libraries, for `go run ./benchmarks/formats`.

    peer.py list                           prints the readers of every format, with what they do, as JSON
    peer.py REQUEST                        REQUEST is JSON: task, reader, paths, loops, broker, topic, waymo

Every reader is a generator of clouds; a cloud is a list of contiguous columns: x, y, z and, unless the format's
reader has none, intensity. Task read counts points. Task check also adds up magnitudes, which is not timed. Task kafka
sends each cloud as an Arrow stream with confluent-kafka. Time counts from the first file to the last column, or to
the last acknowledgement, without imports and without connecting.
"""
import importlib.metadata
import importlib.util
import json
import pathlib
import struct
import sys
import time

import numpy as np

READERS = {}  # by name: format, what it does, function


def reader(form, how):
    def add(function):
        READERS[function.__name__] = (form, how, function)
        return function
    return add


def columns(records, names=("x", "y", "z", "intensity")):
    return [np.ascontiguousarray(records[name]) for name in names]


def table(flat, width):
    """The first four columns of rows of width numbers."""
    rows = flat.reshape(-1, width)
    return [rows[:, k].copy() for k in range(4)]


@reader("kitti", "numpy.fromfile, a strided copy of each column")
def kitti_numpy(paths):
    for path in paths:
        yield table(np.fromfile(path, "<f4"), 4)


@reader("nuscenes", "numpy.fromfile, a strided copy of each column")
def nuscenes_numpy(paths):
    for path in paths:
        yield table(np.fromfile(path, "<f4"), 5)


@reader("pcd", "view of the file's bytes, a strided copy of each column")
def pcd_pypcd4(paths):
    import pypcd4
    for path in paths:
        records = pypcd4.PointCloud.from_path(path).pc_data
        names = [n for n in ("x", "y", "z", "intensity") if n in records.dtype.names]
        yield [np.ascontiguousarray(records[n], "<f4") for n in names]


@reader("pcd", "header by hand, numpy.frombuffer, a strided copy of each column; binary only")
def pcd_numpy(paths):
    for path in paths:
        data = pathlib.Path(path).read_bytes()
        begin = data.index(b"\nDATA binary\n") + 13
        head = dict(line.split(" ", 1) for line in data[:begin].decode().splitlines() if line[0] != "#")
        names, counts = head["FIELDS"].split(), [int(n) for n in head["COUNT"].split()]
        types = [f"<{ {'F': 'f', 'I': 'i', 'U': 'u'}[t]}{s}" for t, s in zip(head["TYPE"].split(), head["SIZE"].split())]
        names = [f"_{k}" if n == "_" else n for k, n in enumerate(names)]
        kind = np.dtype([(n, t, (c,)) if c > 1 else (n, t) for n, t, c in zip(names, types, counts)])
        records = np.frombuffer(data, kind, int(head["POINTS"]), begin)
        yield columns(records, [n for n in ("x", "y", "z", "intensity") if n in names])


@reader("las", "a record array of the file, coordinates scaled to float64, intensity copied")
def las_laspy(paths):
    import laspy
    for path in paths:
        cloud = laspy.read(path)
        yield [np.ascontiguousarray(c) for c in (cloud.x, cloud.y, cloud.z)] + [cloud.intensity.astype("<f4")]


@reader("ply", "map of the file, a strided copy of each column")
def ply_plyfile(paths):
    import plyfile
    for path in paths:
        yield columns(plyfile.PlyData.read(path)["vertex"].data)


@reader("ply", "header by hand, numpy.frombuffer, a strided copy of each column; four floats a point")
def ply_numpy(paths):
    for path in paths:
        data = pathlib.Path(path).read_bytes()
        yield table(np.frombuffer(data, "<f4", -1, data.index(b"end_header\n") + 11), 4)


@reader("csv", "columns parsed by pyarrow.csv, converted to float32")
def csv_pyarrow(paths):
    import pyarrow as pa
    import pyarrow.csv
    names = ["x", "y", "z", "intensity"]
    types = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()))
    for path in paths:
        found = pa.csv.read_csv(path, pa.csv.ReadOptions(use_threads=False), convert_options=types)
        yield [found[n].to_numpy() for n in names]


@reader("csv", "columns parsed by polars as float32")
def csv_polars(paths):
    import polars
    names = ["x", "y", "z", "intensity"]
    for path in paths:
        found = polars.read_csv(path, schema_overrides=dict.fromkeys(names, polars.Float32))
        yield [found[n].to_numpy() for n in names]


@reader("parquet", "columns decoded by pyarrow")
def parquet_pyarrow(paths):
    import pyarrow.parquet
    for path in paths:
        found = pyarrow.parquet.read_table(path, use_threads=False)
        yield [found[n].to_numpy() for n in ("x", "y", "z", "intensity")]


@reader("parquet", "columns decoded by polars")
def parquet_polars(paths):
    import polars
    for path in paths:
        found = polars.read_parquet(path, parallel="none")
        yield [found[n].to_numpy() for n in ("x", "y", "z", "intensity")]


@reader("argoverse2", "columns unpacked by pyarrow, converted to float32")
def argoverse2_pyarrow(paths):
    import pyarrow.feather
    for path in paths:
        found = pyarrow.feather.read_table(path, ["x", "y", "z", "intensity"], use_threads=False)
        yield [found[n].to_numpy().astype("<f4") for n in ("x", "y", "z", "intensity")]


KINDS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}


def cloud_of(message):
    """The columns of a decoded PointCloud2."""
    order = ">" if message.is_bigendian else "<"
    fields = [f for f in message.fields if f.name in ("x", "y", "z", "intensity")]
    kind = np.dtype({"names": [f.name for f in fields], "formats": [order + KINDS[f.datatype] for f in fields],
                     "offsets": [f.offset for f in fields], "itemsize": message.point_step})
    return columns(np.frombuffer(message.data, kind), [f.name for f in fields])


def cloud_in(data):
    """The columns of a PointCloud2 in CDR, little-endian, taken apart by hand."""
    at = 4 + 8

    def number():
        nonlocal at
        at += -at % 4
        at += 4
        return struct.unpack_from("<I", data, at - 4)[0]

    def text():
        nonlocal at
        length = number()
        at += length
        return bytes(data[at - length:at - 1]).decode()

    text()
    height, width, names, kinds, offsets = number(), number(), [], [], []
    for _ in range(number()):
        name, offset, kind = text(), number(), data[at]
        at += 1
        number()
        names, kinds, offsets = names + [name], kinds + ["<" + KINDS[kind]], offsets + [offset]
    at += 1
    step = number()
    number()
    number()
    kind = np.dtype({"names": names, "formats": kinds, "offsets": offsets, "itemsize": step})
    return columns(np.frombuffer(data, kind, height * width, at), [n for n in ("x", "y", "z", "intensity") if n in names])


@reader("mcap", "messages decoded by mcap_ros2, a strided copy of each column")
def mcap_ros2(paths):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory
    for path in paths:
        with open(path, "rb") as file:
            found = make_reader(file, decoder_factories=[DecoderFactory()])
            for _, channel, _, message in found.iter_decoded_messages():
                if hasattr(message, "point_step"):
                    yield cloud_of(message)


@reader("mcap", "messages read by mcap, CDR by hand, a strided copy of each column")
def mcap_by_hand(paths):
    from mcap.reader import make_reader
    for path in paths:
        with open(path, "rb") as file:
            for schema, _, message in make_reader(file).iter_messages():
                if schema.name.endswith("/PointCloud2"):
                    yield cloud_in(message.data)


def bags(paths):
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore
    store = get_typestore(Stores.ROS2_JAZZY)
    for path in paths:
        with AnyReader([pathlib.Path(path)], default_typestore=store) as found:
            clouds = [c for c in found.connections if c.msgtype.endswith("/PointCloud2")]
            for connection, _, raw in found.messages(connections=clouds):
                yield found, connection, raw


@reader("mcap rosbag", "messages decoded by rosbags, a strided copy of each column")
def rosbags_decoded(paths):
    for found, connection, raw in bags(paths):
        yield cloud_of(found.deserialize(raw, connection.msgtype))


@reader("mcap rosbag", "messages read by rosbags, CDR by hand, a strided copy of each column")
def rosbags_by_hand(paths):
    for _, _, raw in bags(paths):
        yield cloud_in(raw)


@reader("rosbag", "messages read by sqlite3, CDR by hand, a strided copy of each column")
def rosbag_sqlite3(paths):
    import sqlite3
    for path in paths:
        rows = sqlite3.connect(path).execute("SELECT m.data FROM messages m JOIN topics t ON t.id = m.topic_id WHERE "
                                             "t.type = 'sensor_msgs/msg/PointCloud2' ORDER BY m.timestamp, m.id")
        for (data,) in rows:
            yield cloud_in(data)


@reader("waymo", "range images by pyarrow, points by numpy in float64; no intensity")
def waymo_numpy(paths):
    import pyarrow
    pyarrow.set_cpu_count(1)
    spec = importlib.util.spec_from_file_location("waymo", REQUEST["waymo"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for path in paths:
        file = pathlib.Path(path)
        for cloud in module.frames(str(file.parent.parent), file.stem):
            yield [cloud[:, k].copy() for k in range(3)]


def sender(broker, topic):
    """Functions that send a cloud, and that wait for the last acknowledgement."""
    import pyarrow as pa
    from confluent_kafka import Producer
    failed = []
    producer = Producer({"bootstrap.servers": broker, "message.max.bytes": 64 << 20, "acks": "all", "linger.ms": 0,
                         "queue.buffering.max.kbytes": 64 << 10})
    producer.list_topics(topic, 30)

    def send(cloud):
        batch = pa.RecordBatch.from_arrays([pa.array(c) for c in cloud], ["x", "y", "z", "intensity"][:len(cloud)])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        value = sink.getvalue().to_pybytes()
        while True:
            try:
                producer.produce(topic, value, b"sequence", on_delivery=lambda e, _: failed.append(str(e)) if e else None)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)

    def finish():
        if producer.flush(120) or failed:
            raise RuntimeError(f"not acknowledged: {failed[:1]}")

    return send, finish


def magnitudes(cloud):
    return [float(np.nansum(np.abs(np.where(np.isfinite(c), c, 0)), dtype="<f8")) for c in cloud]


def measure(request):
    read = READERS[request["reader"]][2]
    sums, frames, points = [0.0] * 4, 0, 0
    send = finish = None
    if request["task"] == "kafka":
        send, finish = sender(request["broker"], request["topic"])
    next(read(request["paths"]), None)  # imports
    begin = time.perf_counter()
    for _ in range(request["loops"]):
        for cloud in read(request["paths"]):
            frames += 1
            points += len(cloud[0])
            if send:
                send(cloud)
            if request["task"] == "check":
                sums = [a + b for a, b in zip(sums, magnitudes(cloud) + [0.0] * 4)]
    if finish:
        finish()
    return {"frames": frames, "points": points, "seconds": time.perf_counter() - begin, "sums": sums}


def listing():
    packages = ["confluent-kafka", "laspy", "mcap", "mcap-ros2-support", "numpy", "plyfile", "polars", "pyarrow",
                "pypcd4", "rosbags"]
    return {"readers": [{"name": n, "formats": f.split(), "how": h} for n, (f, h, _) in READERS.items()],
            "versions": ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)}


if sys.argv[1] == "list":
    print(json.dumps(listing()))
else:
    REQUEST = json.loads(sys.argv[1])
    print(json.dumps(measure(REQUEST)))
