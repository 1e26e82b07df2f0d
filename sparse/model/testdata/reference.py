"""Makes random checkpoints of all classes and says what transformers computes.

    python reference.py OUT

Below OUT, a folder for each checkpoint, saved as transformers saves it, with
reference.safetensors: "ids i" of each sequence, "out i" (logits; of BERT the
last hidden state; of ViT "pixels" and "out"), and for causal models "new i".
Weights that were rounded to F16 or BF16 are computed with in F32.
"""
import os
import sys

import torch
import transformers as tf
from safetensors.torch import save_file

out = sys.argv[1]
tf.logging.set_verbosity_error()
tf.utils.logging.disable_progress_bar()
torch.set_num_threads(1)  # small models, and other programs beside it
torch.manual_seed(20)
SIZES = dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=352, initializer_range=0.15)
TEXT = dict(vocab_size=311, bos_token_id=None, eos_token_id=None)
CASES = {
    "bert": (tf.BertModel, tf.BertConfig(vocab_size=311, max_position_embeddings=256, **SIZES)),
    "vit": (tf.ViTModel, tf.ViTConfig(image_size=32, patch_size=8, **SIZES)),
    "vit-classifier": (tf.ViTForImageClassification, tf.ViTConfig(image_size=32, patch_size=8, num_labels=10, **SIZES)),
    "gpt2": (tf.GPT2LMHeadModel, tf.GPT2Config(n_embd=128, n_layer=3, n_head=4, n_positions=256, initializer_range=0.15, **TEXT)),
    "gpt2-body": (tf.GPT2Model, tf.GPT2Config(n_embd=128, n_layer=3, n_head=4, n_positions=256, initializer_range=0.15, **TEXT)),
    "llama": (tf.LlamaForCausalLM, tf.LlamaConfig(num_key_value_heads=2, max_position_embeddings=256, **TEXT, **SIZES)),
    "mistral": (tf.MistralForCausalLM, tf.MistralConfig(num_key_value_heads=2, max_position_embeddings=256, **TEXT, **SIZES)),
    "qwen2": (tf.Qwen2ForCausalLM, tf.Qwen2Config(num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True, **TEXT, **SIZES)),
}
FORMS = {"f32": {}, "f16": {}, "bf16": {}, "sharded": dict(max_shard_size="300KB")}


def reference(cls, folder):
    model = cls.from_pretrained(folder, dtype=torch.float32).eval()
    tensors = {}
    with torch.no_grad():
        if model.config.model_type == "vit":
            tensors["pixels"] = pixels = torch.randn(3, 3, 32, 32)
            o = model(pixels)
            tensors["out"] = o.logits if hasattr(o, "logits") else o.last_hidden_state
            return tensors
        for i, n in enumerate([1, 23, 180]):
            ids = torch.randint(0, 311, (1, n))
            o = model(ids)
            tensors[f"ids {i}"] = ids[0].to(torch.int32)
            tensors[f"out {i}"] = (o.logits if hasattr(o, "logits") else o.last_hidden_state)[0]
            if hasattr(o, "logits"):
                new = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=64, do_sample=False)
                tensors[f"new {i}"] = new[0, n:].to(torch.int32)
    return {k: v.contiguous() for k, v in tensors.items()}


for name, (cls, config) in CASES.items():
    model = cls(config)
    with torch.no_grad():  # biases and norms that are not zeros and ones
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.1)
    for form, how in FORMS.items():
        folder = os.path.join(out, f"{name}-{form}")
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}.get(form, torch.float32)
        model.to(dtype).save_pretrained(folder, **how)
        save_file(reference(cls, folder), os.path.join(folder, "reference.safetensors"))
        if form != "f32":
            model.to(torch.float32)
print("transformers", tf.__version__, "torch", torch.__version__)
