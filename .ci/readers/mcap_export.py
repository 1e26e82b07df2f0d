#!/usr/bin/env python3
"""Compares an MCAP file of export, as mcap and foxglove-schemas-protobuf read it, with the tables.

    mcap_export.py FILE.mcap OUT

Points, hulls, maxima and meshes must be equal bit for bit; every frame must be there.
"""
import pathlib
import sys

import numpy as np
import pyarrow.dataset
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory

file, out = sys.argv[1], pathlib.Path(sys.argv[2])
values = {}


def table(name):
    rows = {}
    for row in pyarrow.dataset.dataset(out / name, format="parquet").to_table().to_pylist():
        rows.setdefault((row["partition"], row["offset"], row["index"]), []).append(row)
    return rows


def same(what, got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and np.array_equal(got, want), (what, got, want)
    values[what] = values.get(what, 0) + got.size


def place(row):
    x, y, z = row["x"], row["y"], row["z"]
    return x, y, 0.0 if z is None else z


frames, hulls, maxima = table("frames"), table("hulls"), table("maxima")
triangles, points = table("triangles"), table("points")
in_order = sorted(frames)
by_time = {rows[0]["ts_ns"]: key for key, rows in frames.items()}
if len(by_time) < len(frames):  # a test has then written positions as times
    by_time = dict(enumerate(in_order))
seen, placed, shown = {}, set(), set()
with open(file, "rb") as f:
    for schema, channel, message, m in make_reader(f, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
        topic = channel.topic.rsplit("/", 1)[1]
        if schema.name == "foxglove.FrameTransform":
            placed.add((m.child_frame_id, message.log_time))
            continue
        shown.add((m.frame_id if topic == "points" else m.entities[0].frame_id, message.log_time))
        if topic == "points":
            key = by_time[message.log_time]
            kinds = {1: "<u1", 2: "<i1", 3: "<u2", 4: "<i2", 5: "<u4", 6: "<i4", 7: "<f4", 8: "<f8"}
            dtype = np.dtype({"names": [p.name for p in m.fields], "formats": [kinds[p.type] for p in m.fields],
                              "offsets": [p.offset for p in m.fields], "itemsize": m.point_stride})
            cloud, rows = np.frombuffer(m.data, dtype), points.get(key, [])
            for axis, name in enumerate("xyz"):
                same("points", cloud[name], np.array([place(r)[axis] for r in rows], cloud[name].dtype))
            if "intensity" in cloud.dtype.names:
                same("points", cloud["intensity"], np.array([r["intensity"] for r in rows], "f4"))
        elif schema.name == "foxglove.SceneUpdate":
            entity = m.entities[0]
            source = {pair.key: pair.value for pair in entity.metadata}["source"].rsplit("/", 3)
            key = tuple(map(int, source[1:]))
            at = {r["point_idx"]: place(r) for r in points.get(key, [])}
            lines = [[(p.x, p.y, p.z) for p in line.points] for line in entity.lines]
            lists = [[(t.points[i].x, t.points[i].y, t.points[i].z) for i in t.indices] for t in entity.triangles]
            if topic == "hull":
                idx = hulls[key][0]["hull_idx"]
                same("hull", lines[0] if lines else np.empty((0, 3)), np.array([at[i] for i in idx]).reshape(-1, 3))
            elif topic == "maxima":
                idx = [i for row in maxima.get(key, []) for i in row["idx"]]
                ends = np.array(lines[0] if lines else []).reshape(-1, 6, 3)
                # the stroke along y has the x and z of the point
                same("maxima", ends[:, 2][:, [0, 2]], np.array([at[i] for i in idx]).reshape(-1, 3)[:, [0, 2]])
            elif topic == "mesh":
                idx = [r[v] for r in triangles.get(key, []) for v in ("v0", "v1", "v2")]
                same("mesh", lists[0] if lists else np.empty((0, 3)), np.array([at[i] for i in idx]).reshape(-1, 3))
        seen.setdefault(topic, set()).add(key)
if len({frame for frame, _ in shown}) > 1:
    assert shown == placed, (shown ^ placed, "a viewer cannot place these")
for topic in ("points", "hull", "maxima", "mesh"):
    assert seen.get(topic) == set(frames), f"{topic}: {len(seen.get(topic, ()))} of {len(frames)} frames"
print(f"{len(frames)} frames; equal values:", ", ".join(f"{n} of {what}" for what, n in sorted(values.items())))
