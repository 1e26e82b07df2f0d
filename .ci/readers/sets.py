#!/usr/bin/env python3
"""Writes the columns of a point cloud as pyarrow or numpy read them.

    sets.py FORMAT FILE OUT

FORMAT is nuscenes, argoverse2, city, semantickitti, parquet or arrow. OUT gets, for each column, a line
"NAME TYPE COUNT" and the values, little-endian; TYPE is f4, f8, i4 or i8.
"""
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

WANTED = {
    "argoverse2": {"x": "f4", "y": "f4", "z": "f4", "intensity": "f4", "laser_number": "i4", "offset_ns": "i8"},
    "city": {"timestamp_ns": "i8"} | dict.fromkeys(["qw", "qx", "qy", "qz", "tx_m", "ty_m", "tz_m"], "f8"),
}


def columns(form, path):
    if form == "nuscenes":
        points = np.fromfile(path, "<f4").reshape(-1, 5)
        types = {"x": "f4", "y": "f4", "z": "f4", "intensity": "f4", "ring": "i4"}
        return {name: points[:, i].astype("<" + kind) for i, (name, kind) in enumerate(types.items())}
    if form == "semantickitti":
        return {"label": (np.fromfile(path, "<u4") & 0xFFFF).astype("<i4")}
    if form == "parquet":
        table = pyarrow.parquet.read_table(path)
    elif form == "arrow":
        table = pa.ipc.open_stream(path).read_all()
    else:
        table = pyarrow.feather.read_table(path)
    types = WANTED.get(form, {name: "f8" for name in table.column_names})
    return {name: table[name].to_numpy().astype("<" + kind) for name, kind in types.items()}


def main():
    form, path, out = sys.argv[1:]
    with open(out, "wb") as file:
        for name, values in columns(form, path).items():
            file.write(f"{name} {values.dtype.str[1:]} {len(values)}\n".encode())
            file.write(values.tobytes())


main()
