"""Answers requests, a line of JSON each: how long NumPy (OpenBLAS) and PyTorch take.

A request is {"op": NAME, "m": ROWS, "k": INNER, "n": COLUMNS, "seconds": S}; the answer
names each library that can do it and the times of its calls, in nanoseconds. Results go
to memory that is there already, where the library has a form for that.
"""
import json
import os
import sys
import time

import numpy
import torch

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.set_grad_enabled(False)
aten = torch.ops.aten


def calls(op, m, k, n):
    """The calls to time, by library."""
    random = numpy.random.default_rng(1)
    if op == "mul":
        a, b = (random.standard_normal(shape, numpy.float32) for shape in ((m, k), (k, n)))
        c = numpy.empty((m, n), numpy.float32)
        x, y, z = map(torch.from_numpy, (a, b, c))
        return {"numpy": lambda: numpy.matmul(a, b, out=c), "torch": lambda: torch.matmul(x, y, out=z)}
    if op == "tmul":
        a, b = (random.standard_normal(shape, numpy.float32) for shape in ((m, k), (m, n)))
        c = numpy.empty((k, n), numpy.float32)
        x, y, z = map(torch.from_numpy, (a, b, c))
        return {"numpy": lambda: numpy.matmul(a.T, b, out=c), "torch": lambda: torch.matmul(x.T, y, out=z)}
    a = random.standard_normal((m, n), numpy.float32)
    c = numpy.empty_like(a)
    x, z = map(torch.from_numpy, (a, c))
    w = torch.ones(n)
    return {
        "exp": {"numpy": lambda: numpy.exp(a, out=c), "torch": lambda: torch.exp(x, out=z)},
        "tanh": {"numpy": lambda: numpy.tanh(a, out=c), "torch": lambda: torch.tanh(x, out=z)},
        "gelu": {"torch": lambda: aten.gelu.out(x, out=z)},
        "gelu tanh": {"torch": lambda: aten.gelu.out(x, approximate="tanh", out=z)},
        "silu": {"torch": lambda: aten.silu.out(x, out=z)},
        "softmax": {"torch": lambda: aten._softmax.out(x, -1, False, out=z)},
        "layer norm": {"torch": lambda: torch.nn.functional.layer_norm(x, (n,), w, w)},
        "rms norm": {"torch": lambda: torch.nn.functional.rms_norm(x, (n,), w)},
    }[op]


def timed(call, seconds):
    call()
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return times


print(json.dumps({"numpy": numpy.__version__, "torch": torch.__version__}), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    found = calls(r["op"], r["m"], r["k"], r["n"])
    print(json.dumps({name: timed(call, r["seconds"]) for name, call in found.items()}), flush=True)
