"""Writes tensors.json: config.json, and names and shapes of the tensors, of small
models as transformers saves them (here 5.23.0).

    python tensors.py > tensors.json
"""

import json
import os
import tempfile

import transformers as tf
from safetensors import safe_open

tf.logging.set_verbosity_error()
tf.utils.logging.disable_progress_bar()
SIZES = dict(num_hidden_layers=1, intermediate_size=6)
ENCODER = dict(hidden_size=4, num_attention_heads=2, **SIZES)
IMAGES = dict(image_size=8, patch_size=4, num_channels=2, num_labels=3, **ENCODER)
DECODER = dict(hidden_size=8, num_attention_heads=4, num_key_value_heads=2, vocab_size=7, max_position_embeddings=5, **SIZES)
CASES = {
    "bert": tf.BertModel(tf.BertConfig(vocab_size=7, max_position_embeddings=5, type_vocab_size=2, **ENCODER), add_pooling_layer=False),
    "vit": tf.ViTForImageClassification(tf.ViTConfig(**IMAGES)),
    "vit without biases": tf.ViTForImageClassification(tf.ViTConfig(qkv_bias=False, **IMAGES)),
    "gpt2": tf.GPT2LMHeadModel(tf.GPT2Config(n_embd=4, n_layer=1, n_head=2, vocab_size=7, n_positions=5, bos_token_id=1, eos_token_id=2)),
    "llama": tf.LlamaForCausalLM(tf.LlamaConfig(**DECODER)),
    "llama with biases": tf.LlamaForCausalLM(tf.LlamaConfig(attention_bias=True, mlp_bias=True, **DECODER)),
    "mistral": tf.MistralForCausalLM(tf.MistralConfig(head_dim=6, **DECODER)),
    "qwen2": tf.Qwen2ForCausalLM(tf.Qwen2Config(tie_word_embeddings=True, **DECODER)),
}
lines = []
for name, model in CASES.items():
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            config = json.dumps(json.load(f))
        with safe_open(os.path.join(folder, "model.safetensors"), "pt") as f:
            tensors = json.dumps({key: f.get_slice(key).get_shape() for key in sorted(f.keys())})
    lines.append(f'  {{"name":{json.dumps(name)},\n   "config":{config},\n   "tensors":{tensors}}}')
print("[\n" + ",\n".join(lines) + "\n]")
