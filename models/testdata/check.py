#!/usr/bin/env python3
"""Reads files of this package with the libraries that others would use.

    check.py tensors IN OUT     reads a safetensors file, compares it with what the test
                                knows, and writes the same tensors with the reference library
    check.py onnx MODEL DIR     checks an exported network and runs it on DIR/*.points
                                (float32), whose displacements are DIR/*.want (float64)

Ends with an AssertionError where something is wrong.
"""
import pathlib
import sys

import numpy as np


def tensors(path, out):
    import safetensors
    import safetensors.numpy

    found = dict(safetensors.deserialize(pathlib.Path(path).read_bytes()))
    with safetensors.safe_open(path, "numpy") as f:
        metadata = f.metadata()
        assert sorted(f.keys()) == sorted(found), (f.keys(), found)
        for name, want in {
            "f64": [-np.inf, 5e-324, np.pi, 1.7976931348623157e308],
            "f32": [[np.inf, 2.0**-149], [-0.5, float(np.float32(3.4028235e38))]],
            "f16": [1, -(2.0**-24), 65504],
            "i64": [-(2**63), 2**63 - 1],
            "i32": [[-(2**31)], [2**31 - 1]],
            "u8": [0, 1, 255],
            "bool": [False, True],
            "none": np.zeros((3, 0)),
        }.items():
            got = f.get_tensor(name)
            assert got.shape == np.shape(want) and np.array_equal(got, np.array(want, got.dtype)), (name, got)
    kept = {n: np.frombuffer(bytes(t["data"]) or b"\0", np.uint8) for n, t in found.items()}
    safetensors.serialize_file({n: safetensors.TensorSpec(dtype=NAMES[t["dtype"]], shape=t["shape"], data_ptr=kept[n].ctypes.data, data_len=len(t["data"])) for n, t in found.items()}, out, metadata)


NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
         "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "C64": "complex64"}


def network(path, folder):
    import onnx
    import onnxruntime

    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 17, model.opset_import
    sigma = float({p.key: p.value for p in model.metadata_props}["sigma"])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (points,), (moved,) = session.get_inputs(), session.get_outputs()
    assert (points.name, moved.name) == ("points", "displacement"), (points.name, moved.name)
    assert points.shape == moved.shape and points.shape[0] == "N", (points.shape, moved.shape)
    worst = 0.0
    for f in sorted(pathlib.Path(folder).glob("*.points")):
        x = np.fromfile(f, "<f4").reshape(-1, points.shape[1])
        want = np.fromfile(f.with_suffix(".want"), "<f8").reshape(x.shape)
        got = session.run(None, {"points": x})[0]
        assert got.shape == x.shape and got.dtype == np.float32, (got.shape, got.dtype)
        worst = max(worst, float(np.abs(got - want).max()) / sigma)
    assert worst <= 1e-5, worst
    print(f"largest difference {worst:.2g} sigma")


if __name__ == "__main__":
    {"tensors": tensors, "onnx": network}[sys.argv[1]](*sys.argv[2:])
