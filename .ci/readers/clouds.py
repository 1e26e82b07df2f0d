#!/usr/bin/env python3
"""Writes the columns of a PCD, PLY or LAS file to standard output, as other libraries read them.

    clouds.py FILE

Each column is a line "name type count", then its values, little-endian. Columns without a role in
entropipe are left out.
"""
import pathlib
import sys

import numpy


def fields(data):
    """The columns of a structured array by our names."""
    known = {"intensity": "intensity", "i": "intensity", "returnnumber": "return", "classification": "label",
             "x": "x", "y": "y", "z": "z", "red": "red", "green": "green", "blue": "blue"}
    found = {}
    for name in data.dtype.names:
        values = data[name]
        if name in ("rgb", "rgba"):
            bits = numpy.ascontiguousarray(values).view("<u4")
            for colour, shift in ("red", 16), ("green", 8), ("blue", 0):
                found[colour] = (bits >> shift & 255).astype("<i4")
        elif name.lower() in known:
            found[known[name.lower()]] = values
    wide = any(found[k].dtype.itemsize == 8 or found[k].dtype.kind in "iu" and found[k].dtype.itemsize > 2 for k in "xyz"
               if k in found)
    for name in found:
        if name in "xyz":
            found[name] = found[name].astype("<f8" if wide else "<f4")
        else:
            found[name] = found[name].astype("<f4" if name == "intensity" else "<i4")
    return found


def pcd(path):
    import pypcd4
    return fields(pypcd4.PointCloud.from_path(path).pc_data)


def ply(path):
    import plyfile
    return fields(plyfile.PlyData.read(path)["vertex"].data)


def las(path):
    import laspy
    cloud = laspy.read(path)
    names = set(cloud.point_format.dimension_names)
    found = {k: numpy.asarray(getattr(cloud, k), dtype="<f8") for k in "xyz"}
    found["intensity"] = numpy.asarray(cloud.intensity).astype("<f4")
    for ours, theirs in (("return", "return_number"), ("label", "classification"), ("laser", "scanner_channel"),
                         ("red", "red"), ("green", "green"), ("blue", "blue")):
        if theirs in names:
            found[ours] = numpy.asarray(cloud[theirs]).astype("<i4")
    if "gps_time" in names:
        times = numpy.asarray(cloud.gps_time)
        found["t_offset_ns"] = numpy.rint((times - times[:1]) * 1e9).astype("<i8")
    return found


path = pathlib.Path(sys.argv[1])
for name, values in {".pcd": pcd, ".ply": ply, ".las": las}[path.suffix](path).items():
    values = numpy.ascontiguousarray(values)
    sys.stdout.buffer.write(f"{name} {values.dtype.str[1:]} {values.size}\n".encode() + values.tobytes())
