#!/usr/bin/env python3
"""Writes ROS 2 bags with the Python package rosbags, and prints what it reads of a bag.

    rosbag.py write FOLDER     plain, file and message: bags of three kinds, in SQLite
    rosbag.py read BAG         a line a cloud: topic, stamp, points, SHA-256 of x, y, z, intensity
"""
import hashlib
import pathlib
import sys

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
TYPES = {7: "f4", 8: "f8", 4: "u2", 2: "u1", 6: "u4"}


def cloud(frame, ns, fields, step, data, big):
    t = STORE.types
    header = t["std_msgs/msg/Header"](t["builtin_interfaces/msg/Time"](ns // 10**9, ns % 10**9), frame)
    described = [t["sensor_msgs/msg/PointField"](name, offset, kind, 1) for name, offset, kind in fields]
    n = len(data) // step
    return t["sensor_msgs/msg/PointCloud2"](header, 1, n, described, big, step, step * n, np.frombuffer(data, np.uint8), True)


def clouds(seed):
    """Of two topics: packed floats, and a driver's record with padding, a ring and big-endian numbers."""
    rng = np.random.default_rng(seed)
    for i in range(20):
        ns = 1_700_000_000_000_000_000 + i * 100_000_000
        n = int(rng.integers(0, 500))
        plain = rng.normal(size=(n, 4)).astype("<f4")
        yield "/front", ns, cloud("front", ns, [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 12, 7)], 16, plain.tobytes(), False)
        record = np.zeros(n, np.dtype({"names": ["y", "x", "z", "intensity", "ring"], "formats": [">f4", ">f4", ">f4", ">f4", ">u2"], "offsets": [4, 8, 12, 20, 26], "itemsize": 32}))
        for name in "xyz":
            record[name] = rng.normal(size=n)
        record["intensity"], record["ring"] = rng.random(n), rng.integers(0, 64, n)
        fields = [("intensity", 20, 7), ("ring", 26, 4), ("x", 8, 7), ("y", 4, 7), ("z", 12, 7)]
        yield "/rear", ns, cloud("rear", ns, fields, 32, record.tobytes(), True)


def write(root):
    for seed, kind in enumerate(["plain", "file", "message", "mcap"]):
        bag = Writer(root / kind, version=9, storage_plugin=StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3)
        if kind in ("file", "message"):
            bag.set_compression(CompressionMode[kind.upper()], CompressionFormat.ZSTD)
        with bag:
            topics = {}
            for topic, ns, message in clouds(seed):
                if topic not in topics:
                    topics[topic] = bag.add_connection(topic, message.__msgtype__, typestore=STORE)
                bag.write(topics[topic], ns + 1000, STORE.serialize_cdr(message, message.__msgtype__))


def read(bag):
    with AnyReader([bag], default_typestore=STORE) as reader:
        for connection, _, raw in reader.messages():
            m = reader.deserialize(raw, connection.msgtype)
            order = ">" if m.is_bigendian else "<"
            kinds = {f.name: (order + TYPES[f.datatype], f.offset) for f in m.fields}
            names = list(kinds)
            points = np.frombuffer(m.data, np.dtype({"names": names, "formats": [kinds[k][0] for k in names], "offsets": [kinds[k][1] for k in names], "itemsize": m.point_step}))
            digest = hashlib.sha256()
            for name in ("x", "y", "z", "intensity"):
                digest.update(points[name].astype("<f4").tobytes())
            if "ring" in kinds:
                digest.update(points["ring"].astype("<i4").tobytes())
            print(connection.topic, m.header.stamp.sec * 10**9 + m.header.stamp.nanosec, len(points), digest.hexdigest())


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](pathlib.Path(sys.argv[2]))
