"""One cloud in every content type that messages may have, written by the formats' own libraries."""
import base64
import io
import json
import pathlib

import laspy
import numpy as np
import plyfile
import pypcd4
import rosbags.typesys
from foxglove_schemas_protobuf.PackedElementField_pb2 import PackedElementField
from foxglove_schemas_protobuf.PointCloud_pb2 import PointCloud
from google.protobuf import json_format

NAMES = ("x", "y", "z", "intensity")
FRAME = "velodyne"


def cloud(points):
    """Numbers that every format holds: multiples of 1/64 metre, intensities from 0 to 255."""
    rng = np.random.default_rng(11)
    out = rng.integers(-4000, 4000, size=(points, 4)).astype("<f4") / 64
    out[:, 3] = rng.integers(0, 256, size=points)
    return out


def values(points, ns, folder):
    """The value of each content type, by the text of its header and the short name."""
    return {
        ("application/vnd.kitti.velodyne", "kitti"): points.tobytes(),
        ("application/vnd.nuscenes.lidar", "nuscenes"): np.column_stack([points, np.arange(len(points)) % 32]).astype("<f4").tobytes(),
        ("application/vnd.ros2.cdr;type=sensor_msgs/msg/PointCloud2", "pointcloud2"): ros(points, ns),
        ("application/vnd.foxglove.pointcloud+protobuf", "foxglove"): foxglove(points, ns).SerializeToString(),
        ("application/vnd.foxglove.pointcloud+json", "foxglove-json"): foxglove_json(points, ns),
        ("application/vnd.pcl.pcd", "pcd"): pcd(points, folder),
        ("application/vnd.las", "las"): las(points),
        ("model/vnd.ply", "ply"): ply(points),
    }


def ros(points, ns):
    store = rosbags.typesys.get_typestore(rosbags.typesys.Stores.ROS2_HUMBLE)
    of = store.types
    fields = [of["sensor_msgs/msg/PointField"](name=n, offset=4 * i, datatype=7, count=1) for i, n in enumerate(NAMES)]
    header = of["std_msgs/msg/Header"](stamp=of["builtin_interfaces/msg/Time"](sec=ns // 10**9, nanosec=ns % 10**9), frame_id=FRAME)
    message = of["sensor_msgs/msg/PointCloud2"](header=header, height=1, width=len(points), fields=fields, is_bigendian=False, point_step=16,
                                                row_step=16 * len(points), data=np.frombuffer(points.tobytes(), np.uint8), is_dense=True)
    return bytes(store.serialize_cdr(message, "sensor_msgs/msg/PointCloud2"))


def foxglove(points, ns):
    out = PointCloud(frame_id=FRAME, point_stride=16, data=points.tobytes())
    out.timestamp.FromNanoseconds(ns)
    out.pose.orientation.w = 1
    out.fields.extend(PackedElementField(name=n, offset=4 * i, type=PackedElementField.FLOAT32) for i, n in enumerate(NAMES))
    return out


def foxglove_json(points, ns):
    """The JSON that Protobuf defines, on one line: a time of RFC 3339, names of types."""
    return json_format.MessageToJson(foxglove(points, ns), indent=None, preserving_proto_field_name=True).encode()


def foxglove_studio_json(points, ns):
    """The JSON of Foxglove's own schema: a time of two integers, numbers of types."""
    fields = [{"name": n, "offset": 4 * i, "type": 7} for i, n in enumerate(NAMES)]
    return json.dumps({"timestamp": {"sec": ns // 10**9, "nsec": ns % 10**9}, "frame_id": FRAME, "point_stride": 16, "fields": fields,
                       "data": base64.b64encode(points.tobytes()).decode()}).encode()


def pcd(points, folder):
    path = pathlib.Path(folder) / "cloud.pcd"
    pypcd4.PointCloud.from_points(points, NAMES, (np.float32,) * 4).save(path, encoding=pypcd4.Encoding.BINARY_COMPRESSED)
    return path.read_bytes()


def las(points):
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = [1 / 64] * 3, [0] * 3
    data = laspy.LasData(header)
    data.x, data.y, data.z = points[:, :3].astype("f8").T
    data.intensity = points[:, 3].astype("u2")
    out = io.BytesIO()
    data.write(out)
    return out.getvalue()


def ply(points):
    rows = np.rec.fromarrays(points.T, names=NAMES)
    out = io.BytesIO()
    plyfile.PlyData([plyfile.PlyElement.describe(np.array(rows), "vertex")], byte_order="<").write(out)
    return out.getvalue()
