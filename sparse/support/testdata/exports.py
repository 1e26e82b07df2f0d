"""Loads exported masks with the programs that they are for.

The mask: 40 tokens, blocks of 16, causal, 2 key heads; the first reads block 0
and its own, the second everything.

    exports.py DIR
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
import torch
from safetensors.numpy import load_file
from torch.nn.attention.flex_attention import BlockMask

BLOCK, N, DIM = 16, 40, 16


def allowed(head):
    """The element mask of a key head."""
    i = np.arange(N)
    mask = i[None, :] <= i[:, None]
    if head == 0:
        b = i // BLOCK
        mask &= (b[None, :] == 0) | (b[None, :] == b[:, None])
    return mask


def attend(q, k, v, mask):
    s = np.where(mask, q @ k.T / np.sqrt(DIM), -np.inf)
    w = np.exp(s - s.max(1, keepdims=True))
    return w / w.sum(1, keepdims=True) @ v


def flex(path):
    t = {name: torch.from_numpy(x[0])[None] for name, x in load_file(path).items()}  # layer 0, a batch of one
    causal = lambda b, h, i, j: i >= j
    m = BlockMask.from_kv_blocks(t["kv_num_blocks"], t["kv_indices"], t["full_kv_num_blocks"], t["full_kv_indices"], BLOCK_SIZE=BLOCK, mask_mod=causal,
                                 seq_lengths=(N, N))  # fmt: skip
    blocks = m.to_dense()[0].numpy().astype(bool)
    for h in range(2):
        want = np.zeros((3, 3), dtype=bool)
        i, j = np.nonzero(allowed(h))
        want[i // BLOCK, j // BLOCK] = True
        assert (blocks[h] == want).all(), (h, blocks[h])
    print("flex: the BlockMask has the blocks of the layout")


def flash_infer(path):
    t = load_file(path)
    for h in range(2):
        got = np.zeros((48, 48), dtype=bool)
        ptr = t["indptr"][0, h]
        for r in range(3):
            for e in range(ptr[r], ptr[r + 1]):
                c = t["indices"][e]
                bits = np.unpackbits(t["packed_mask"][e], bitorder="little").reshape(BLOCK, BLOCK)
                got[r * BLOCK : (r + 1) * BLOCK, c * BLOCK : (c + 1) * BLOCK] = bits
        assert (got[:N, :N] == allowed(h)).all() and not got[N:].any() and not got[:, N:].any()
    print("flashinfer: the packed mask has the keys of the layout")


def ort(path, q, k, v):
    """One SparseAttention of 4 query heads on 2 key heads, beside the definition."""
    t = load_file(path)
    names = ["query", "key", "value", "past_key", "past_value", "block_row_indices", "block_col_indices", "total_sequence_length", "key_total_sequence_lengths"]
    node = onnx.helper.make_node("SparseAttention", names, ["output", "present_key", "present_value"], domain="com.microsoft", num_heads=4, kv_num_heads=2,
                                 sparse_block_size=BLOCK, scale=float(1 / np.sqrt(DIM)))  # fmt: skip
    f, i = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32
    rows, cols = t["block_row_indices"][0], t["block_col_indices"][0]
    cache = np.zeros((1, 2, 48, DIM), dtype=np.float32)
    feed = {
        "query": q.transpose(1, 0, 2).reshape(1, N, 4 * DIM),
        "key": k.transpose(1, 0, 2).reshape(1, N, 2 * DIM),
        "value": v.transpose(1, 0, 2).reshape(1, N, 2 * DIM),
        "past_key": cache, "past_value": cache, "block_row_indices": rows, "block_col_indices": cols,
        "total_sequence_length": np.array([N], dtype=np.int32), "key_total_sequence_lengths": np.array([N], dtype=np.int32),
    }  # fmt: skip
    inputs = [onnx.helper.make_tensor_value_info(n, i if x.dtype == np.int32 else f, x.shape) for n, x in feed.items()]
    outputs = [onnx.helper.make_tensor_value_info(n, f, None) for n in ("output", "present_key", "present_value")]
    graph = onnx.helper.make_graph([node], "one", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    # The operator shares the cache's memory between past and present.
    binding = session.io_binding()
    present = {n: onnxruntime.OrtValue.ortvalue_from_numpy(cache.copy()) for n in ("key", "value")}
    for n, x in feed.items():
        if n.startswith("past"):
            binding.bind_ortvalue_input(n, present[n[5:]])
        else:
            binding.bind_cpu_input(n, np.ascontiguousarray(x))
    binding.bind_output("output")
    for n, x in present.items():
        binding.bind_ortvalue_output("present_" + n, x)
    session.run_with_iobinding(binding)
    got = binding.copy_outputs_to_cpu()[0].reshape(N, 4, DIM)
    worst = max(np.abs(got[:, h] - attend(q[h], k[h // 2], v[h // 2], allowed(h // 2))).max() for h in range(4))
    assert worst < 1e-5, worst
    print(f"ort: SparseAttention differs from the definition by {worst:.1e}")


def main():
    r = np.random.default_rng(1)
    q, k, v = (r.standard_normal((heads, N, DIM), dtype=np.float32) for heads in (4, 2, 2))
    folder = sys.argv[1]
    flex(os.path.join(folder, "flex.safetensors"))
    flash_infer(os.path.join(folder, "flashinfer.safetensors"))
    ort(os.path.join(folder, "ort.safetensors"), q, k, v)


if __name__ == "__main__":
    main()
