"""Writes golden.json: outputs of transformers for the formula weights of hftest.

    python golden.py > golden.json

torch, transformers, safetensors and numpy are needed; only whoever changes the
cases runs it.
"""
import json
import re
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from safetensors.numpy import load_file, save_file

IDS = [5, 7, 1, 30, 22, 49, 0, 3, 3, 17, 8, 41, 2, 60, 59, 11]
SIZES = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=80)
TEXT = dict(vocab_size=61, bos_token_id=None, eos_token_id=None)
LLAMA3 = dict(rope_type="llama3", rope_theta=1000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
CASES = {
    "bert": (tf.BertModel, tf.BertConfig(max_position_embeddings=96, vocab_size=61, **SIZES)),
    "bert relu": (tf.BertModel, tf.BertConfig(max_position_embeddings=16, vocab_size=61, hidden_act="relu", **SIZES)),
    "vit": (tf.ViTModel, tf.ViTConfig(image_size=[8, 12], patch_size=4, num_channels=2, **SIZES)),
    "vit classifier": (tf.ViTForImageClassification, tf.ViTConfig(image_size=8, patch_size=[4, 2], num_channels=1, qkv_bias=False,
                                                                  num_labels=3, **SIZES)),
    "gpt2": (tf.GPT2LMHeadModel, tf.GPT2Config(n_embd=48, n_layer=2, n_head=4, n_positions=96, **TEXT)),
    "gpt2 odd": (tf.GPT2LMHeadModel, tf.GPT2Config(n_embd=48, n_layer=2, n_head=2, n_inner=40, n_positions=96, tie_word_embeddings=False,
                                                   scale_attn_by_inverse_layer_idx=True, activation_function="gelu", **TEXT)),
    "llama": (tf.LlamaForCausalLM, tf.LlamaConfig(num_key_value_heads=2, max_position_embeddings=96, **TEXT, **SIZES)),
    "llama 3.1": (tf.LlamaForCausalLM, tf.LlamaConfig(num_key_value_heads=1, max_position_embeddings=96, rope_parameters=LLAMA3,
                                                      attention_bias=True, mlp_bias=True, **TEXT, **SIZES)),
    "mistral": (tf.MistralForCausalLM, tf.MistralConfig(num_key_value_heads=2, head_dim=16, max_position_embeddings=4096, sliding_window=40,
                                                        **TEXT, **SIZES)),
    "qwen2": (tf.Qwen2ForCausalLM, tf.Qwen2Config(num_key_value_heads=2, max_position_embeddings=96, tie_word_embeddings=True, **TEXT, **SIZES)),
}


def formula(name, shape):
    mask = (1 << 64) - 1
    h = 14695981039346656037
    for b in name.encode():
        h = (h ^ b) * 1099511628211 & mask
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    u = (z >> np.uint64(40)).astype(np.float64) / (1 << 23) - 1
    if name.endswith(".bias"):
        u = 0.125 * u
    elif "norm" in name.lower() or "ln_" in name:
        u = 1 + 0.25 * u
    else:
        u = 0.25 * u
    return u.astype(np.float32).reshape(shape)


def round6(t):
    return [float(f"{x:.7g}") for x in t.flatten().tolist()]


def run(cls, config):
    out = {}
    with tempfile.TemporaryDirectory() as d:
        cls(config).save_pretrained(d)
        weights = load_file(d + "/model.safetensors")
        made = {n: formula(re.sub(r"^(bert|vit|transformer|model)\.", "", n), w.shape) for n, w in weights.items()}
        save_file(made, d + "/model.safetensors", metadata={"format": "pt"})
        model = cls.from_pretrained(d, attn_implementation="eager").eval()
        with open(d + "/config.json") as f:
            out["config"] = f.read()
    with torch.no_grad():
        if config.model_type == "vit":
            size = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
            pixels = formula("pixels", (2, config.num_channels, *size)) * 4
            o = model(torch.tensor(pixels), output_hidden_states=True)
            if hasattr(o, "logits"):
                out["logits"] = round6(o.logits)
            else:
                out["hidden"] = round6(o.last_hidden_state[1])
            return out
        ids = torch.tensor([IDS])
        body = model if config.model_type == "bert" else getattr(model, "transformer", None) or model.model
        out["hidden"] = round6(body(ids).last_hidden_state[0, [0, 7, 15]])
        if config.model_type != "bert":
            out["logits"] = round6(model(ids).logits[0, -1])
            g = model.generate(ids, max_new_tokens=24, do_sample=False, attention_mask=torch.ones_like(ids))
            out["generated"] = g[0, len(IDS):].tolist()
    return out


tf.logging.set_verbosity_error()
result = {"made_by": f"transformers {tf.__version__}, torch {torch.__version__}", "ids": IDS}
result["cases"] = {name: run(*case) for name, case in CASES.items()}
json.dump(result, sys.stdout)
print()
