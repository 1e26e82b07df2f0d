#!/usr/bin/env python3
"""Freezes attention masks with PyTorch, on a GPU or a CPU.

The same as `entropipe freeze` for the selectors mass, window and bigbird: from
the same checkpoint and calibration file both choose the same blocks, and give
the mask the same SHA-256. Weights of attention are read by forward hooks, in one
pass over the calibration and without gradients; nothing of the model changes.

    freeze.py --lm DIR --calibrate FILE --out DIR --select mass --sparsity 0.75 --block 64

It measures no certificates and no quality, which takes the arithmetic that will
serve. So the mask says "dense, not measured", until this judges it:

    entropipe freeze --lm DIR --select imported --import DIR2 --calibrate FILE --out DIR3

affinity and entropy are not here: they cluster keys by distances, whose ties
another order of additions breaks in another way.

Needs torch, transformers, safetensors and numpy; tokenizers for text.
"""

import argparse
import hashlib
import json
import math
import os
import struct

import numpy as np
import torch
from safetensors.numpy import save
from transformers import AutoConfig, AutoModel

FORMAT = "fsm/1"
CLASSES = {"bert": "bert", "vit": "vit", "gpt2": "gpt2", "llama": "llama", "mistral": "llama", "qwen2": "llama"}
LONGEST = 2048  # of a bucket that is not asked for
FULL, EDGE = 0, 1


def facts(directory):
    """What a set says of its model, and the number of its positions."""
    c = AutoConfig.from_pretrained(directory)
    if c.model_type not in CLASSES:
        raise SystemExit(f"{directory}: model_type {c.model_type} is not served: want one of {', '.join(CLASSES)}")
    arch, heads = CLASSES[c.model_type], c.num_attention_heads
    f = {
        "arch": arch,
        "weights_sha256": weights_hash(directory),
        "layers": c.num_hidden_layers,
        "heads": heads,
        "kv_heads": getattr(c, "num_key_value_heads", None) or heads,
        "head_dim": getattr(c, "head_dim", None) or c.hidden_size // heads,
        "causal": arch in ("gpt2", "llama"),
    }
    if arch == "vit":
        size, patch = (x if isinstance(x, (list, tuple)) else (x, x) for x in (c.image_size, c.patch_size))
        return f, (size[0] // patch[0]) * (size[1] // patch[1]) + 1
    return f, c.max_position_embeddings


def weights_hash(directory):
    """SHA-256 of the weights' bytes: the file's, or the shards' one after the other, by name."""
    names = ["model.safetensors"]
    if not os.path.exists(os.path.join(directory, names[0])):
        with open(os.path.join(directory, "model.safetensors.index.json"), encoding="utf-8") as f:
            names = sorted(set(json.load(f)["weight_map"].values()))
    h = hashlib.sha256()
    for name in names:
        with open(os.path.join(directory, name), "rb") as f:
            while data := f.read(1 << 20):
                h.update(data)
    return h.hexdigest()


def read_inputs(path, directory, buckets, count, vit):
    """Sequences of ids, or pixels [n][channels][height][width]."""
    if vit:
        return np.load(path).astype(np.float32)[:count]
    paragraphs, sequences = [], []
    if path.lower().endswith((".jsonl", ".ndjson")):
        with open(path, encoding="utf-8") as f:
            for line in f:
                if len(sequences) == count:
                    break
                if line.strip():
                    row = json.loads(line)
                    if "input_ids" in row:
                        sequences.append([int(i) for i in row["input_ids"]])
                    else:
                        paragraphs.append(row["text"] + "\n")
    else:
        with open(path, encoding="utf-8", errors="replace", newline="") as f:
            parts = f.read().split("\n")
            paragraphs = [p + "\n" for p in parts[:-1]] + parts[-1:]
    return sequences or cut_text(directory, paragraphs, buckets, count)


def cut_text(directory, paragraphs, buckets, count):
    """Pieces of exactly each bucket's length, with the special tokens around."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encode = lambda text: tokenizer.encode(text).ids
    empty, word, k = encode(""), encode("a"), 0
    while k < len(empty) and empty[k] == word[k]:
        k += 1
    before, after = empty[:k], empty[k:]
    pieces = {b: [] for b in buckets}
    streams = {b: [] for b in buckets}
    for paragraph in paragraphs:
        if all(len(p) == count for p in pieces.values()):
            break
        ids = encode(paragraph)
        ids = ids[len(before) : len(ids) - len(after)]
        for b in buckets:
            room, stream = b - len(empty), streams[b]
            stream.extend(ids)
            while len(stream) >= room > 0 and len(pieces[b]) < count:
                pieces[b].append(before + stream[:room] + after)
                del stream[:room]
    return [pieces[b][i] for i in range(count) for b in buckets if i < len(pieces[b])]


def source(inputs, f):
    """The calibration's hash, as entropipe writes it."""
    h, tokens = hashlib.sha256(), 0
    for x in inputs:
        if f["arch"] == "vit":
            h.update(np.ascontiguousarray(x, dtype="<f4").tobytes())
        else:
            h.update(struct.pack(f"<I{len(x)}i", len(x), *x))
            tokens += len(x)
    return {"sha256": h.hexdigest(), "sequences": len(inputs), "tokens": tokens}


def blocks_of(n, block):
    return -(-n // block)


class Capture:
    """Averages the mass that blocks of queries give to blocks of keys."""

    def __init__(self, f, buckets, block):
        self.f, self.buckets, self.block = f, buckets, block
        self.sums = [np.zeros((f["layers"], f["kv_heads"], blocks_of(b, block), blocks_of(b, block))) for b in buckets]
        self.rows = [np.zeros(blocks_of(b, block), dtype=int) for b in buckets]
        self.layer, self.last = 0, None

    def hook(self, _module, _inputs, output):
        """Takes the weights of an attention, once: modules around it return the same tensor."""
        if not isinstance(output, tuple) or len(output) < 2 or not torch.is_tensor(output[1]) or output[1].dim() != 4:
            return
        weights = output[1]
        if weights is self.last:
            return
        self.last = weights
        self.add(weights[0])

    def add(self, weights):
        f, block = self.f, self.block
        heads, n, _ = weights.shape
        i = next(k for k, b in enumerate(self.buckets) if b >= n)
        blocks = blocks_of(n, block)
        pad = blocks * block - n
        w = torch.nn.functional.pad(weights.double(), (0, pad, 0, pad))
        mass = w.view(heads, blocks, block, blocks, block).sum((2, 4)).cpu().numpy()
        queries = np.full(blocks, block, dtype=float)
        queries[-1] = block - pad
        mass /= queries[:, None]
        group = f["heads"] // f["kv_heads"]
        self.sums[i][self.layer, :, :blocks, :blocks] += mass.reshape(f["kv_heads"], group, blocks, blocks).sum(1)
        if self.layer == 0:
            self.rows[i][:blocks] += 1
        self.layer += 1

    def means(self):
        group = self.f["heads"] // self.f["kv_heads"]
        for b, sums, rows in zip(self.buckets, self.sums, self.rows):
            if not rows.all():
                raise SystemExit(f"no input of the calibration reaches token {int(np.argmin(rows > 0)) * self.block + 1}, and a bucket has {b}")
            sums /= (rows * group)[:, None]
        return self.sums


def capture(directory, f, inputs, buckets, block, device):
    """Runs the calibration once."""
    model = AutoModel.from_pretrained(directory, attn_implementation="eager", dtype=torch.float32).to(device).eval()
    seen = Capture(f, buckets, block)
    hooks = [m.register_forward_hook(seen.hook) for m in model.modules()]
    with torch.no_grad():
        for x in inputs:
            seen.layer, seen.last = 0, None
            if f["arch"] == "vit":
                model(pixel_values=torch.from_numpy(x)[None].to(device))
            else:
                ids = torch.tensor([x], device=device)
                model(input_ids=ids, attention_mask=torch.ones_like(ids))
            if seen.layer != f["layers"]:
                raise SystemExit(f"{seen.layer} attentions of {f['layers']} layers were seen: this version of transformers hides them")
    for h in hooks:
        h.remove()
    return seen.means()


def budget(sparsity, row, blocks, causal):
    if causal:
        return max(1, math.ceil((1 - sparsity) * (row + 1) - 1e-9))
    return min(max(1, math.floor((1 - sparsity) * blocks + 0.5 + 1e-9)), blocks)


def top(score, count, need):
    """The columns of the largest scores, the needed ones first; of equal ones the lower."""
    cols = []
    for c in need:
        if len(cols) < count and c not in cols:
            cols.append(c)
    rest = sorted((c for c in range(len(score)) if c not in cols), key=lambda c: -score[c])
    return sorted(cols + rest[: count - len(cols)])


MASK64 = (1 << 64) - 1


def lot(*numbers):
    """A hash of numbers: rounds of splitmix64."""
    h = 0
    for n in numbers:
        h = (h + n + 0x9E3779B97F4A7C15) & MASK64
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & MASK64
        h ^= h >> 31
    return h


def scores(select, masses, layer, head, heads, row, blocks, a):
    """What a head's query block gives for each key block."""
    if select == "mass":
        return masses[layer, head, row]
    near = [-abs(c - row) for c in range(blocks)]
    if select == "window":
        return near
    seen = row + 1 if a["causal"] else blocks
    keep = top(near[:seen], (budget(a["sparsity"], row, blocks, a["causal"]) + 1) // 2, (row, 0))
    return [2.0 if c in keep else (lot(a["seed"], layer * heads + head, row, c) >> 11) / (1 << 53) for c in range(blocks)]


def layout(length, block, causal, row):
    """Row pointers, columns and kinds of a layout."""
    blocks = blocks_of(length, block)
    ptr, col, kind = [0], [], []
    for r in range(blocks):
        for c in row(r):
            col.append(c)
            kind.append(EDGE if causal and c == r or (c + 1) * block > length else FULL)
        ptr.append(len(col))
    return tuple(ptr), tuple(col), tuple(kind)


def choose(f, masses, buckets, block, select, sparsity, seed):
    """The layouts of each bucket, and which of them each head has."""
    a = {"causal": f["causal"], "sparsity": sparsity, "seed": seed}
    result = []
    for i, length in enumerate(buckets):
        blocks, layouts, of = blocks_of(length, block), [], []
        for layer in range(f["layers"]):
            for head in range(f["kv_heads"]):

                def row(r):
                    s = scores(select, masses[i] if masses else None, layer, head, f["kv_heads"], r, blocks, a)
                    return top(list(s)[: r + 1 if f["causal"] else blocks], budget(sparsity, r, blocks, f["causal"]), (r, 0))

                one = layout(length, block, f["causal"], row)
                if one not in layouts:
                    layouts.append(one)
                of.append(layouts.index(one))
        result.append((layouts, of))
    return result


def write(directory, f, chosen, buckets, block, select, sparsity, seed, calibration):
    """The two files of the format."""
    tensors = {"layout_of": np.array([of for _, of in chosen], dtype=np.int32).reshape(len(buckets), f["layers"], f["kv_heads"])}
    for i, (layouts, _) in enumerate(chosen):
        ptr, col, kind = [], [], []
        for p, c, k in layouts:
            ptr.append([len(col) + x for x in p])
            col += c
            kind += k
        tensors[f"bucket.{i}.row_ptr"] = np.array(ptr, dtype=np.int32)
        tensors[f"bucket.{i}.col"] = np.array(col, dtype=np.int32)
        tensors[f"bucket.{i}.kind"] = np.array(kind, dtype=np.uint8)
    data = save(tensors, metadata={"format": FORMAT})
    config = {"format": FORMAT, **f, "mode": "static", "block": block, "buckets": buckets, "beyond": None,
              "selector": {"name": select, "sparsity": sparsity, "seed": seed}, "calibration": calibration, "quality": None,
              "serve": "dense", "reason": "not measured", "support_sha256": hashlib.sha256(data).hexdigest()}  # fmt: skip
    os.makedirs(directory, exist_ok=True)
    put(os.path.join(directory, "sparse_support.safetensors"), data)
    put(os.path.join(directory, "sparse_config.json"), (json.dumps(config, indent=2) + "\n").encode())


def put(path, data):
    """Writes a file that is whole or absent."""
    with open(path + ".part", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".part", path)


def main():
    p = argparse.ArgumentParser(description="Freezes attention masks with PyTorch.")
    p.add_argument("--lm", required=True, metavar="DIR")
    p.add_argument("--calibrate", required=True, metavar="FILE", help=".txt, .jsonl with text or input_ids; for a ViT pixels in .npy")
    p.add_argument("--out", required=True, metavar="DIR")
    p.add_argument("--select", choices=["mass", "window", "bigbird"], default="mass")
    p.add_argument("--sparsity", type=float, default=0.75)
    p.add_argument("--block", type=int, choices=[16, 32, 64, 128], default=64)
    p.add_argument("--bucket", type=int, action="append", metavar="N")
    p.add_argument("--sequences", type=int, default=64)
    p.add_argument("--held-out", type=int, default=0, help="inputs at the end that are not used; 0: a quarter, as entropipe")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--masses", metavar="FILE", help="write the mean masses, too (.npz)")
    a = p.parse_args()
    if not 0 <= a.sparsity < 1:
        p.error("--sparsity: want at least 0 and below 1")
    f, positions = facts(a.lm)
    vit = f["arch"] == "vit"
    buckets = [positions] if vit else a.bucket or [min(positions, LONGEST)]
    if buckets != sorted(set(buckets)) or buckets[-1] > positions or f["causal"] and len(buckets) > 1:
        p.error(f"--bucket {buckets}: want ascending lengths up to {positions}, of a causal model one")
    inputs = read_inputs(a.calibrate, a.lm, buckets, a.sequences, vit)
    if not vit:
        inputs = [x[: buckets[-1]] for x in inputs]
    inputs = inputs[: len(inputs) - (a.held_out or max(len(inputs) // 4, 2))]
    if len(inputs) == 0:
        raise SystemExit(f"{a.calibrate}: no input is left to calibrate on")
    masses = capture(a.lm, f, inputs, buckets, a.block, a.device) if a.select == "mass" or a.masses else None
    calibration = source(inputs, f)
    if vit:
        calibration["tokens"] = len(inputs) * buckets[0]
    if a.masses:
        np.savez(a.masses, *masses)
    chosen = choose(f, masses, buckets, a.block, a.select, a.sparsity, a.seed)
    write(a.out, f, chosen, buckets, a.block, a.select, a.sparsity, a.seed, calibration)
    print(f"{a.out}: {a.select}, blocks of {a.block}, {len(inputs)} inputs; judge it with entropipe freeze --select imported --import {a.out}")


if __name__ == "__main__":
    main()
