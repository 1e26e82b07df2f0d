"""Writes what a causal model says of random ids, in float32 and in float64.

    python precision.py FOLDER SEED LENGTH OUT.safetensors
"""
import sys

import numpy as np
import torch
import transformers as tf
from safetensors.numpy import save_file

folder, seed, length, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
tf.logging.set_verbosity_error()
torch.set_num_threads(1)
model = tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
ids = torch.tensor(np.random.default_rng(seed).integers(3, model.config.vocab_size, (1, length)))
with torch.no_grad():
    got = torch.log_softmax(model(ids).logits[0].double(), -1)
    want = torch.log_softmax(model.double()(ids).logits[0], -1)
off = (got - want).abs()
print(f"seed {seed}: transformers {tf.__version__}, torch {torch.__version__}: at most {off.max():.2g}, {off.square().mean().sqrt():.2g} in the root of the mean square")
# The truth in two numbers, since it is read as float32.
top = want.float()
save_file({"ids": ids[0].numpy().astype(np.int64), "want": top.numpy(), "rest": (want - top.double()).float().numpy(),
           "off": np.array([off.square().mean().sqrt()], dtype=np.float32)}, out)
