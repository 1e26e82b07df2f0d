#!/usr/bin/env python3
"""Freezes attention masks with PyTorch, on a GPU or a CPU.

The same as `entropipe freeze`: from the same checkpoint and calibration file
both choose the same blocks and anchors, and give the mask the same SHA-256.
Every layer's attention is watched by a hook in its place, without gradients:
mass takes one pass over the calibration, affinity and entropy two, or three
where keys are sorted. Nothing of the model changes.

    freeze.py --lm DIR --calibrate FILE --out DIR --select mass --sparsity 0.75 --block 64

It measures no certificates and no quality, which takes the arithmetic that will
serve. So the mask says "dense, not measured", until this judges it:

    entropipe freeze --lm DIR --select imported --import DIR2 --calibrate FILE --out DIR3

Ties: two programs round keys and weights in another order. Where two blocks'
scores are equal within about a millionth, each program may take another one;
lots and rounded anchors (freeze_clusters.py) see to it that nothing larger
follows.

Needs freeze_clusters.py beside it, torch, transformers 5, safetensors and numpy;
tokenizers for text.
"""

import argparse
import gzip
import hashlib
import json
import math
import os
import struct

import numpy as np
import torch
from safetensors.numpy import save
from transformers import AttentionInterface, AutoConfig, AutoModel
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from freeze_clusters import Clusters, lot

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
    window = getattr(c, "sliding_window", None)  # within it attention is whole; longer sequences are not served
    return f, min(c.max_position_embeddings, window or c.max_position_embeddings)


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
    try:
        paragraphs, sequences = read_texts(path, count)
    except UnicodeDecodeError:
        raise SystemExit(f"{path}: is not text in UTF-8") from None
    return sequences or cut_text(directory, paragraphs, buckets, count)


def lengths(text):
    """Numbers between commas, as entropipe takes them."""
    return [int(n) for n in text.split(",")]


def members(pairs):
    """The object of JSON of these members; a key that comes twice is an error, as it is for entropipe."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def read_row(line):
    """A line of JSON. Half a character of UTF-16 is no text."""
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("the line is no object")
    members([(key.lower() if key.lower() in ("id", "text", "input_ids", "attention_mask") else key, value) for key, value in json.loads(line, object_pairs_hook=list)])
    row.get("text", "").encode("utf-8")
    return row


def read_texts(path, count):
    """Lines with their ends, or sequences of ids without what a mask calls padding."""
    paragraphs, sequences = [], []
    name = path.lower()
    opened = (gzip.open if name.endswith(".gz") else open)(path, "rt", encoding="utf-8-sig", newline="")
    with opened as f:
        if name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
            for number, line in enumerate(f, 1):
                if len(sequences) == count:
                    break
                if line.strip():
                    try:
                        row = read_row(line)
                    except ValueError as e:  # of JSON, or what cannot be encoded
                        raise SystemExit(f"{path}:{number}: {e}") from None
                    if "input_ids" in row:
                        ones = row.get("attention_mask")
                        n = None if ones is None else sum(ones)
                        sequences.append([int(i) for i in row["input_ids"][:n]])
                    else:
                        paragraphs.append(row["text"] + "\n")
        else:
            parts = f.read().split("\n")
            paragraphs = [p + "\n" for p in parts[:-1]] + parts[-1:]
    return paragraphs, sequences


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
    """Averages the mass that blocks of queries give to blocks of keys, which may be in an order of each head."""

    def __init__(self, f, buckets, block, orders=None):
        self.f, self.buckets, self.block, self.orders = f, buckets, block, orders
        self.sums = [np.zeros((f["layers"], f["kv_heads"], blocks_of(b, block), blocks_of(b, block))) for b in buckets]
        self.rows = [np.zeros(blocks_of(b, block), dtype=int) for b in buckets]

    def take(self, layer, _query, _key, weights):
        f, block = self.f, self.block
        heads, n, _ = weights.shape
        i = next(k for k, b in enumerate(self.buckets) if b >= n)
        group = heads // f["kv_heads"]
        if self.orders is not None:
            mine = self.orders[layer * f["kv_heads"] : (layer + 1) * f["kv_heads"]]
            order = torch.from_numpy(np.repeat(mine, group, 0)).to(weights.device)
            weights = weights.gather(2, order[:, None].expand(-1, n, -1))
        blocks = blocks_of(n, block)
        pad = blocks * block - n
        w = torch.nn.functional.pad(weights.double(), (0, pad, 0, pad))
        mass = w.view(heads, blocks, block, blocks, block).sum((2, 4)).cpu().numpy()
        queries = np.full(blocks, block, dtype=float)
        queries[-1] = block - pad
        mass /= queries[:, None]
        self.sums[i][layer, :, :blocks, :blocks] += mass.reshape(f["kv_heads"], group, blocks, blocks).sum(1)
        if layer == 0:
            self.rows[i][:blocks] += 1

    def means(self):
        group = self.f["heads"] // self.f["kv_heads"]
        for b, sums, rows in zip(self.buckets, self.sums, self.rows):
            if not rows.all():
                raise SystemExit(f"no input of the calibration reaches token {int(np.argmin(rows > 0)) * self.block + 1}, and a bucket has {b}")
            sums /= (rows * group)[:, None]
        return self.sums


class Watched:
    """A model whose attention is handed to a taker: layer, queries and keys [heads][tokens][dim], and weights."""

    def __init__(self, directory, f, inputs, device):
        AttentionInterface.register("entropipe", self.attend)
        AttentionMaskInterface.register("entropipe", eager_mask)
        self.model = AutoModel.from_pretrained(directory, attn_implementation="entropipe", dtype=torch.float32).to(device).eval()
        self.f, self.inputs, self.device = f, inputs, device
        self.takers, self.layer = [], 0

    def attend(self, _module, query, key, value, attention_mask, scaling=None, **_):
        group = query.shape[1] // key.shape[1]
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        scores = query @ key.repeat_interleave(group, 1).mT * scale
        if attention_mask is not None:
            scores = scores + attention_mask
        weights = torch.softmax(scores, -1)
        for taker in self.takers:
            taker(self.layer, query[0], key[0], weights[0])
        self.layer += 1
        return (weights @ value.repeat_interleave(group, 1)).transpose(1, 2).contiguous(), weights

    def run(self, *takers):
        """Runs the calibration once."""
        self.takers = takers
        with torch.no_grad():
            for x in self.inputs:
                self.layer = 0
                if self.f["arch"] == "vit":
                    self.model(pixel_values=torch.from_numpy(x)[None].to(self.device))
                else:
                    ids = torch.tensor([x], device=self.device)
                    self.model(input_ids=ids, attention_mask=torch.ones_like(ids))
                if self.layer != self.f["layers"]:
                    raise SystemExit(f"{self.layer} attentions of {self.f['layers']} layers were seen: this version of transformers hides them")


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


def nearest(row, blocks):
    return [-abs(c - row) for c in range(blocks)]


def lots(seed, sparsity, causal, head, row, blocks):
    """BigBird's scores: near blocks, then by lot."""
    seen = row + 1 if causal else blocks
    keep = top(nearest(row, seen), (budget(sparsity, row, blocks, causal) + 1) // 2, (row, 0))
    score = (lot(seed, head, row, np.arange(blocks)) >> np.uint64(11)).astype(float) / (1 << 53)
    score[keep] = 2
    return score


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


class Chosen:
    """A mask: layouts of each bucket and which of them each head has, or anchors."""

    def __init__(self, f, buckets, block):
        self.f, self.buckets, self.block = f, buckets, block
        self.layouts, self.of = [[] for _ in buckets], [[] for _ in buckets]
        self.orders = [[] for _ in buckets]
        self.anchors = None

    def fill(self, sparsity, scores, orders=None):
        """Takes each row's best blocks: scores gives those of bucket, head and row. Sorted keys need key 0's block."""
        causal = self.f["causal"]
        for i, length in enumerate(self.buckets):
            blocks = blocks_of(length, self.block)
            for head in range(self.f["layers"] * self.f["kv_heads"]):
                order = None if orders is None else tuple(int(x) for x in orders[head])

                def row(r):
                    need = (r, 0) if order is None else (order.index(0) // self.block,)
                    score = list(scores(i, head, r, blocks))[: r + 1 if causal else blocks]
                    return top(score, budget(sparsity, r, blocks, causal), need)

                one = (*layout(length, self.block, causal, row), order)
                if one not in self.layouts[i]:
                    self.layouts[i].append(one)
                self.of[i].append(self.layouts[i].index(one))

    def route(self, anchors):
        """Leaves the blocks to each input's keys."""
        f = self.f
        self.of = [[-1] * (f["layers"] * f["kv_heads"]) for _ in self.buckets]
        self.anchors = anchors.reshape(f["layers"], f["kv_heads"], *anchors.shape[1:]).astype(np.float32)

    def tensors(self):
        f = self.f
        result = {"layout_of": np.array(self.of, dtype=np.int32).reshape(len(self.buckets), f["layers"], f["kv_heads"])}
        for i, layouts in enumerate(self.layouts):
            if not layouts:
                continue
            ptr, col, kind = [], [], []
            for p, c, k, _ in layouts:
                ptr.append([len(col) + x for x in p])
                col += c
                kind += k
            result[f"bucket.{i}.row_ptr"] = np.array(ptr, dtype=np.int32)
            result[f"bucket.{i}.col"] = np.array(col, dtype=np.int32)
            result[f"bucket.{i}.kind"] = np.array(kind, dtype=np.uint8)
            if layouts[0][3] is not None:
                result[f"bucket.{i}.order"] = np.array([order for *_, order in layouts], dtype=np.int32)
        if self.anchors is not None:
            result["anchors"] = self.anchors
        return result

    def write(self, directory, selector, calibration):
        """Writes the two files of the format."""
        data = save(self.tensors(), metadata={"format": FORMAT})
        config = {"format": FORMAT, **self.f, "mode": "static" if self.anchors is None else "anchor", "block": self.block, "buckets": self.buckets,
                  "beyond": None, "selector": selector, "calibration": calibration, "quality": None, "serve": "dense", "reason": "not measured",
                  "support_sha256": hashlib.sha256(data).hexdigest()}  # fmt: skip
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


def clustered(chosen, a, f, buckets, watched):
    """Chooses by clusters of keys, in the three ways that entropipe does."""
    c = Clusters(f, buckets, a.block, a.select == "entropy", a.seed, len(watched.inputs))
    watched.run(c.sample)
    c.fit()
    watched.run(c.take)
    c.choose()
    heads = range(c.heads)
    if a.mode == "anchor":
        return chosen.route(c.best_anchors())
    orders = np.array([c.order(h) for h in heads]) if f["arch"] == "vit" else None
    if orders is not None and a.select == "entropy":
        sorted_mass = Capture(f, buckets, a.block, orders)
        watched.run(sorted_mass.take)
        masses = sorted_mass.means()[0]
        table = {(0, h): masses[h // f["kv_heads"], h % f["kv_heads"]] for h in heads}
    else:
        table = {(i, h): c.scores(i, h, None if orders is None else orders[h]) for i in range(len(buckets)) for h in heads}
    chosen.fill(a.sparsity, lambda i, h, r, blocks: table[i, h][r], orders)


def choose(a, f, buckets, inputs):
    """Runs what the selector needs, and returns the mask."""
    chosen = Chosen(f, buckets, a.block)
    if a.select in ("mass", "affinity", "entropy") or a.masses:
        watched = Watched(a.lm, f, inputs, a.device)
    if a.select == "mass" or a.masses:
        seen = Capture(f, buckets, a.block)
        watched.run(seen.take)
        masses = seen.means()
        if a.masses:
            np.savez(a.masses, *masses)
    if a.select == "mass":
        chosen.fill(a.sparsity, lambda i, h, r, blocks: masses[i][h // f["kv_heads"], h % f["kv_heads"], r])
    elif a.select == "window":
        chosen.fill(a.sparsity, lambda i, h, r, blocks: nearest(r, blocks))
    elif a.select == "bigbird":
        chosen.fill(a.sparsity, lambda i, h, r, blocks: lots(a.seed, a.sparsity, f["causal"], h, r, blocks))
    else:
        clustered(chosen, a, f, buckets, watched)
    return chosen


def main(argv=None):
    p = argparse.ArgumentParser(description="Freezes attention masks with PyTorch.")
    p.add_argument("--lm", required=True, metavar="DIR")
    p.add_argument("--calibrate", required=True, metavar="FILE", help=".txt, .jsonl with text or input_ids; for a ViT pixels in .npy")
    p.add_argument("--out", required=True, metavar="DIR")
    p.add_argument("--select", choices=["mass", "window", "bigbird", "affinity", "entropy"], default="mass")
    p.add_argument("--mode", choices=["static", "anchor"], default="static", help="anchor: blocks by each input's keys, for encoders")
    p.add_argument("--sparsity", type=float, default=0.75)
    p.add_argument("--block", type=int, choices=[16, 32, 64, 128], default=64)
    p.add_argument("--bucket", type=lengths, action="extend", metavar="N,...", help="lengths that masks are made for; also repeated")
    p.add_argument("--sequences", type=int, default=64)
    p.add_argument("--held-out", type=int, default=0, help="inputs at the end that are not used; 0: a quarter, as entropipe")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--masses", metavar="FILE", help="write the mean masses, too (.npz)")
    a = p.parse_args(argv)
    if not 0 <= a.sparsity < 1:
        p.error("--sparsity: want at least 0 and below 1")
    if not 0 <= a.seed < 1 << 64:
        p.error("--seed: want 0 to 2^64-1")
    f, positions = facts(a.lm)
    vit = f["arch"] == "vit"
    buckets = [positions] if vit else a.bucket or [min(positions, LONGEST)]
    if buckets != sorted(set(buckets)) or buckets[-1] > positions or f["causal"] and len(buckets) > 1:
        p.error(f"--bucket {buckets}: want ascending lengths up to {positions}, of a causal model one")
    inputs = read_inputs(a.calibrate, a.lm, buckets, a.sequences, vit)
    if not vit:
        inputs = [x[: buckets[-1]] for x in inputs]
    inputs = inputs[: max(0, len(inputs) - (a.held_out or max(len(inputs) // 4, 2)))]
    if len(inputs) == 0:
        raise SystemExit(f"{a.calibrate}: no input is left to calibrate on")
    if a.mode == "anchor" and (f["causal"] or a.select not in ("affinity", "entropy")):
        p.error("--mode anchor: routes the blocks of encoders, and is chosen by --select entropy and affinity")
    calibration = source(inputs, f)
    if vit:
        calibration["tokens"] = len(inputs) * buckets[0]
    chosen = choose(a, f, buckets, inputs)
    chosen.write(a.out, {"name": a.select, "sparsity": a.sparsity, "seed": a.seed}, calibration)
    print(f"{a.out}: {a.select}, blocks of {a.block}, {len(inputs)} inputs; not measured")


if __name__ == "__main__":
    main()
