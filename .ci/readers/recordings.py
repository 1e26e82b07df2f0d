"""MCAP files as Python's libraries write and read them, for the tests of package replay.

recordings.py write DIR [KITTI.bin]   writes clouds in every encoding and compression
recordings.py read FILE               prints a line a cloud, twice: by the index and as a stream
recordings.py scene FILE              prints the scenes, decoded by the schema in the file
"""
import base64
import hashlib
import json
import math
import sys
from fractions import Fraction

import foxglove_schemas_protobuf.FrameTransform_pb2 as frame_transform_pb2
import foxglove_schemas_protobuf.PointCloud_pb2 as point_cloud_pb2
import foxglove_schemas_protobuf.SceneUpdate_pb2 as scene_update_pb2
import numpy as np
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from mcap.reader import NonSeekingReader, make_reader
from mcap.writer import CompressionType, Writer
from mcap_protobuf.decoder import DecoderFactory as ProtobufDecoder
from mcap_protobuf.schema import build_file_descriptor_set
from mcap_ros2._dynamic import serialize_dynamic
from mcap_ros2.decoder import DecoderFactory as Ros2Decoder

ROS_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
FOXGLOVE_TYPES = {1: "u1", 2: "i1", 3: "u2", 4: "i2", 5: "u4", 6: "i4", 7: "f4", 8: "f8"}
POINT_CLOUD2 = """std_msgs/Header header
uint32 height
uint32 width
sensor_msgs/PointField[] fields
bool is_bigendian
uint32 point_step
uint32 row_step
uint8[] data
bool is_dense
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
================================================================================
MSG: sensor_msgs/PointField
string name
uint32 offset
uint8 datatype
uint32 count
"""


def digest(columns):
    """The hash of the columns that are there, and how many values they have."""
    h, n = hashlib.sha256(), 0
    double = any(columns[c].dtype.itemsize * (columns[c].dtype.kind == "f") == 8 for c in "xyz" if c in columns)
    types = {**dict.fromkeys("xyz", "<f8" if double else "<f4"), "intensity": "<f4", "ring": "<i4", "t": "<i8"}
    for name in ("x", "y", "z", "intensity", "ring", "t"):
        if name in columns:
            h.update(np.ascontiguousarray(columns[name].astype(types[name])).tobytes())
            n += len(columns[name])
    return h.hexdigest(), n


def columns_of(fields, types, data, step, rows, row_step, width, big, stamp):
    """The columns of a cloud: fields are (name, offset, type)."""
    raw = np.frombuffer(data, np.uint8)
    if rows > 1:
        raw = raw[: rows * row_step].reshape(rows, row_step)[:, : width * step].reshape(-1)
    points = raw[: rows * width * step].reshape(-1, step)
    columns = {}
    for name, offset, kind in fields:
        dtype = np.dtype((">" if big else "<") + types[kind])
        v = np.ascontiguousarray(points[:, offset : offset + dtype.itemsize]).view(dtype).reshape(-1)
        if name == "timestamp":  # absolute seconds
            v = np.array([round(Fraction(float(t)) * 10**9) - stamp for t in v], np.int64)
        columns["t" if name in ("t", "timestamp") else name] = v
    return columns


def pattern(names, count, seed):
    """A record array of random points; one in seven is NaN."""
    random = np.random.default_rng(seed)
    points = np.zeros(count, np.dtype(names))
    for name in points.dtype.names:
        if points.dtype[name].kind == "f":
            points[name] = random.normal(size=count) * 50
            if points.dtype[name].itemsize == 4:
                points[name][::7] = math.nan
        else:
            points[name] = random.integers(0, 127, count)
    return points


def write(folder, scan):
    kitti = np.fromfile(scan, "<f4").tobytes() if scan else pattern([(c, "<f4") for c in "xyzi"], 5000, 1).tobytes()
    encode = serialize_dynamic("sensor_msgs/msg/PointCloud2", POINT_CLOUD2)["sensor_msgs/msg/PointCloud2"]
    xyzi = [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 12, 7)]

    def ros(stamp, fields, data, step, rows=1, row_step=0, big=False):
        width = len(data) // step if rows == 1 else row_step // step
        return encode({
            "header": {"stamp": {"sec": stamp // 10**9, "nanosec": stamp % 10**9}, "frame_id": "lidar"},
            "height": rows, "width": width, "is_bigendian": big, "point_step": step,
            "row_step": row_step or len(data), "is_dense": False, "data": data,
            "fields": [{"name": n, "offset": o, "datatype": t, "count": 1} for n, o, t in fields]})

    ouster = pattern({"names": ["x", "y", "z", "intensity", "t", "ring"], "itemsize": 48,
                      "formats": [">f4", ">f4", ">f4", ">f4", ">u4", ">u2"], "offsets": [0, 4, 8, 16, 20, 24]}, 16 * 64, 2)
    rows = b"".join(r.tobytes() + b"\xff" * 20 for r in ouster.reshape(16, 64))
    stamp = 1_700_000_000_123_456_789
    hesai = pattern([("timestamp", "<f8"), ("intensity", "u1"), ("ring", "<u2"), ("x", "<f8"), ("y", "<f8"), ("z", "<f8")],
                    900, 3)
    hesai["timestamp"] = stamp / 1e9 + np.arange(900) * 1e-4
    hesai_fields = [("timestamp", 0, 8), ("intensity", 8, 2), ("ring", 9, 4), ("x", 11, 8), ("y", 19, 8), ("z", 27, 8)]
    ouster_fields = [("ring", 24, 4), ("t", 20, 6), ("z", 8, 7), ("intensity", 16, 7), ("y", 4, 7), ("x", 0, 7)]
    proto = point_cloud_pb2.PointCloud(frame_id="lidar", point_stride=16, data=kitti)
    proto.timestamp.FromNanoseconds(stamp)
    for name, offset, kind in xyzi:
        proto.fields.add(name=name, offset=offset, type=kind)
    text = json.dumps({"timestamp": {"sec": stamp // 10**9, "nsec": stamp % 10**9}, "frame_id": "lidar",
                       "point_stride": 16, "data": base64.b64encode(kitti).decode(),
                       "fields": [{"name": n, "offset": o, "type": t} for n, o, t in xyzi]}).encode()
    for name, options in {
        "none": {"compression": CompressionType.NONE}, "lz4": {"compression": CompressionType.LZ4},
        "zstd": {"compression": CompressionType.ZSTD, "chunk_size": 100},
        "flat": {"use_chunking": False, "enable_data_crcs": True},
    }.items():
        with open(f"{folder}/python_{name}.mcap", "wb") as f:
            w = Writer(f, **options)
            w.start("ros2", "python")
            ros_schema = w.register_schema("sensor_msgs/msg/PointCloud2", "ros2msg", POINT_CLOUD2.encode())
            proto_schema = w.register_schema("foxglove.PointCloud", "protobuf",
                                             build_file_descriptor_set(point_cloud_pb2.PointCloud).SerializeToString())
            json_schema = w.register_schema("foxglove.PointCloud", "jsonschema", b"{}")
            channels = [w.register_channel("/ros", "cdr", ros_schema), w.register_channel("/fox", "protobuf", proto_schema),
                        w.register_channel("/json", "json", json_schema)]
            for i in range(3):
                at = stamp + i * 10**8
                for channel, data in [
                    (0, ros(at, xyzi, kitti, 16)), (1, proto.SerializeToString()), (2, text),
                    (0, ros(at, ouster_fields, rows, 48, 16, 64 * 48 + 20, True)),
                    (0, ros(stamp, hesai_fields, hesai.tobytes(), 35)), (0, ros(at, xyzi, b"", 16)),
                ]:
                    w.add_message(channels[channel], at + 5, data, at + 6, i)
            w.finish()


def line(schema, channel, message, data):
    if channel.message_encoding == "json":
        m = json.loads(data)
        fields = [(f["name"], f["offset"], f["type"]) for f in m["fields"]]
        raw, step, stamp = base64.b64decode(m["data"]), m["point_stride"], m["timestamp"]
        stamp = stamp["sec"] * 10**9 + stamp["nsec"]
        columns = columns_of(fields, FOXGLOVE_TYPES, raw, step, 1, len(raw), len(raw) // step, False, stamp)
    elif schema.name == "foxglove.PointCloud":
        fields = [(f.name, f.offset, f.type) for f in message.fields]
        stamp = message.timestamp.seconds * 10**9 + message.timestamp.nanos
        columns = columns_of(fields, FOXGLOVE_TYPES, message.data, message.point_stride, 1, len(message.data),
                             len(message.data) // message.point_stride, False, stamp)
    else:
        fields = [(f.name, f.offset, f.datatype) for f in message.fields]
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        columns = columns_of(fields, ROS_TYPES, bytes(message.data), message.point_step, message.height,
                             message.row_step, message.width, message.is_bigendian, stamp)
    return f"{channel.topic} {stamp} {' '.join(map(str, digest(columns)))}"


def read(path):
    factories = [Ros2Decoder(), ProtobufDecoder()]
    found = []
    for reader in (lambda f: make_reader(f, validate_crcs=True), lambda f: NonSeekingReader(f, validate_crcs=True)):
        lines = []
        with open(path, "rb") as f:
            for schema, channel, message in reader(f).iter_messages(log_time_order=False):
                if "PointCloud" not in schema.name:
                    continue
                decoder = next((d for d in (x.decoder_for(channel.message_encoding, schema) for x in factories) if d), None)
                lines.append(line(schema, channel, decoder(message.data) if decoder else None, message.data))
        found.append(lines)
    assert found[0] == found[1], "the index and the stream give other messages"
    with open(path, "rb") as f:
        statistics = make_reader(f).get_summary().statistics
        assert sum(statistics.channel_message_counts.values()) == statistics.message_count
    print("\n".join(found[0]))


def theirs(module):
    """The descriptors of Python's package, by file."""
    found = {}

    def walk(file):
        for d in file.dependencies:
            walk(d)
        found[file.name] = FileDescriptorProto()
        file.CopyToProto(found[file.name])

    walk(module.DESCRIPTOR)
    return found


def scene(path):
    modules = {"foxglove.SceneUpdate": scene_update_pb2, "foxglove.PointCloud": point_cloud_pb2,
               "foxglove.FrameTransform": frame_transform_pb2}
    with open(path, "rb") as f:
        reader = make_reader(f, validate_crcs=True)
        for schema in reader.get_summary().schemas.values():
            ours = {x.name: x for x in FileDescriptorSet.FromString(schema.data).file}
            want = theirs(modules[schema.name])
            assert ours.keys() == want.keys(), (ours.keys(), want.keys())
            for name in ours:
                for field in (x for m in want[name].message_type for x in m.field):
                    field.ClearField("json_name")
                if not name.startswith("google/"):
                    assert ours[name] == want[name], f"{name}\n{ours[name]}\n{want[name]}"
        for schema, _, message in reader.iter_messages(log_time_order=False):
            m = ProtobufDecoder().decoder_for("protobuf", schema)(message.data)
            assert getattr(modules[schema.name], schema.name[9:]).FromString(message.data) is not None
            print(schema.name, " ".join(str(m).split()))


if __name__ == "__main__":
    {"write": lambda: write(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None), "read": lambda: read(sys.argv[2]),
     "scene": lambda: scene(sys.argv[2])}[sys.argv[1]]()
