"""Attention in PyTorch, run on request: scaled_dot_product_attention and
compiled FlexAttention with a block mask.

Argument: the number of threads. A line of JSON asks for something, and one
answers. A case is a folder with q, k and v (float32, [heads][rows][dim]) and a
layout (block CSR, the same for every head) that the other side wrote.
"""

import json
import os
import sys
import time
import traceback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is no answer

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

torch._dynamo.config.recompile_limit = 64


def answer(**what):
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def block_mask(layout, heads, rows):
    """All blocks are full: no function is asked about single scores."""
    blocks = len(layout["row_ptr"]) - 1
    number = torch.zeros(1, heads, blocks, dtype=torch.int32)
    index = torch.zeros(1, heads, blocks, blocks, dtype=torch.int32)
    for r in range(blocks):
        cols = layout["col"][layout["row_ptr"][r] : layout["row_ptr"][r + 1]]
        number[..., r] = len(cols)
        index[..., r, : len(cols)] = torch.tensor(cols, dtype=torch.int32)
    return BlockMask.from_kv_blocks(
        torch.zeros_like(number), torch.zeros_like(index), number, index, BLOCK_SIZE=layout["block"], seq_lengths=(rows, rows)
    )


class Peer:
    def __init__(self):
        self.cases = {}

    def load(self, folder, heads, rows, dim):
        def array(name, n):
            return torch.from_numpy(np.fromfile(os.path.join(folder, name), dtype="<f4").reshape(1, heads, n, dim))

        q, k, v = array("q", -1), array("k", rows), array("v", rows)
        runs = {"sdpa": lambda: scaled_dot_product_attention(q, k, v)}
        path = os.path.join(folder, "layout.json")
        if os.path.exists(path):
            with open(path) as f:
                mask = block_mask(json.load(f), heads, rows)
            torch._dynamo.reset()
            compiled = torch.compile(flex_attention, dynamic=False)
            runs["flex"] = lambda: compiled(q, k, v, block_mask=mask)
        self.cases = {folder: runs}
        return {}

    def result(self, folder, engine, file):
        self.cases[folder][engine]().contiguous().numpy().astype("<f4").tofile(file)
        return {}

    def turn(self, folder, engine, span):
        run = self.cases[folder][engine]
        ns, begin = [], time.perf_counter()
        while not ns or time.perf_counter() - begin < span:
            start = time.perf_counter_ns()
            run()
            ns.append(time.perf_counter_ns() - start)
        time.sleep(0.02)  # until OpenMP's threads have stopped spinning
        return {"ns": ns}


def main():
    torch.set_num_threads(int(sys.argv[1]))
    with torch.inference_mode():
        peer = Peer()
        answer(versions=f"PyTorch {torch.__version__}")
        for line in sys.stdin:
            try:
                request = json.loads(line)
                answer(**getattr(peer, request.pop("do"))(**request))
            except Exception:
                answer(error=traceback.format_exc())


main()
