"""Encoders in PyTorch and in ONNX Runtime, run on request.

Arguments: a folder for the models, their names, the MiniLM checkpoint or "".
Each model is saved as a Hugging Face directory and as an ONNX graph of the
operators that ONNX Runtime's own optimiser makes of a BERT: the fastest form
that was found. Then a line of JSON asks for runs of one engine, and one
answers. PyTorch runs transformers' BertModel with scaled_dot_product_attention
in inference mode.
"""

import json
import os
import sys
import time
import traceback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print is no answer

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from onnx import TensorProto, helper, numpy_helper
from transformers import BertConfig, BertModel

transformers.utils.logging.disable_progress_bar()

POSITIONS = 4096
SHAPES = {
    "minilm": dict(hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
    "bert": dict(hidden_size=768, num_hidden_layers=4, intermediate_size=3072),
}


def answer(**what):
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def make(name, minilm):
    torch.manual_seed(1)
    if name == "minilm" and minilm:
        config = BertConfig.from_pretrained(minilm)
        state = BertModel.from_pretrained(minilm, add_pooling_layer=False).state_dict()
        known = state["embeddings.position_embeddings.weight"]
        table = torch.randn(POSITIONS, known.shape[1]) * 0.02
        table[: len(known)] = known
        state["embeddings.position_embeddings.weight"] = table
    else:
        config, state = BertConfig(vocab_size=2048, num_attention_heads=12, layer_norm_eps=1e-12, **SHAPES[name]), None
    config.max_position_embeddings = POSITIONS
    config._attn_implementation = "sdpa"
    model = BertModel(config, add_pooling_layer=False)
    if state:
        state = {k: v for k, v in state.items() if "_ids" not in k}
        model.load_state_dict(state, strict=False)
    else:
        with torch.no_grad():  # vectors that are not zeros or ones
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def graph(model):
    """The encoder as a graph of fused operators."""
    c, nodes, tensors = model.config, [], []

    def w(name, value):
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(value.detach().numpy()), name))
        return name

    def n(op, inputs, out, domain="", **attributes):
        nodes.append(helper.make_node(op, inputs, [out], domain=domain, **attributes))
        return out

    ms = "com.microsoft"
    e = model.embeddings
    positions = e.position_embeddings.weight + e.token_type_embeddings.weight[0]
    n("Gather", [w("words", e.word_embeddings.weight), "ids"], "word")
    n("Shape", ["ids"], "shape")
    n("Slice", ["shape", w("one", torch.tensor([1])), w("two", torch.tensor([2]))], "length")
    n("Slice", [w("positions", positions), w("zero", torch.tensor([0])), "length"], "position")
    n("Add", ["word", "position"], "sum")
    x = n("LayerNormalization", ["sum", w("g", e.LayerNorm.weight), w("b", e.LayerNorm.bias)], "x", axis=-1, epsilon=c.layer_norm_eps)
    for i, layer in enumerate(model.encoder.layer):
        p = f"{i}."
        a, o = layer.attention.self, layer.attention.output
        qkv = [n("MatMul", [x, w(p + k, getattr(a, k).weight.T)], p + k + ".out") for k in ("query", "key", "value")]
        bias = w(p + "bias", torch.cat([a.query.bias, a.key.bias, a.value.bias]))
        y = n("MultiHeadAttention", qkv + [bias], p + "attended", ms, num_heads=c.num_attention_heads)
        y = n("MatMul", [y, w(p + "o", o.dense.weight.T)], p + "o.out")
        x = n("SkipLayerNormalization", [y, x, w(p + "g1", o.LayerNorm.weight), w(p + "b1", o.LayerNorm.bias), w(p + "bo", o.dense.bias)], p + "x1", ms, epsilon=c.layer_norm_eps)
        y = n("MatMul", [x, w(p + "up", layer.intermediate.dense.weight.T)], p + "up.out")
        y = n("BiasGelu", [y, w(p + "bup", layer.intermediate.dense.bias)], p + "gelu", ms)
        y = n("MatMul", [y, w(p + "down", layer.output.dense.weight.T)], p + "down.out")
        o = layer.output
        x = n("SkipLayerNormalization", [y, x, w(p + "g2", o.LayerNorm.weight), w(p + "b2", o.LayerNorm.bias), w(p + "bd", o.dense.bias)], p + "x2", ms, epsilon=c.layer_norm_eps)
    n("Identity", [x], "hidden")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "n"])
    hidden = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [1, "n", c.hidden_size])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ms, 1)]
    return helper.make_model(helper.make_graph(nodes, "encoder", [ids], [hidden], tensors), opset_imports=opsets, ir_version=9)


class Peer:
    def __init__(self, folder, names, minilm):
        self.folder, self.models, self.sessions = folder, {}, {}
        for name in names:
            self.models[name] = make(name, minilm)
            self.models[name].save_pretrained(os.path.join(folder, name))
            onnx.save(graph(self.models[name]), os.path.join(folder, name + ".onnx"))

    def session(self, name, threads):
        key = name, threads
        if key not in self.sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            # Its threads do not spin while others take their turns.
            options.add_session_config_entry("session.force_spinning_stop", "1")
            self.sessions[key] = onnxruntime.InferenceSession(
                os.path.join(self.folder, name + ".onnx"), options, providers=["CPUExecutionProvider"]
            )
        return self.sessions[key]

    def runner(self, engine, name, n, threads):
        ids = 1000 + np.arange(n, dtype=np.int64)[None] * 7919 % 900
        if engine == "ort":
            session = self.session(name, threads)
            return lambda: session.run(["hidden"], {"ids": ids})[0]
        torch.set_num_threads(threads)
        model, tensor = self.models[name], torch.from_numpy(ids)
        return lambda: model(tensor).last_hidden_state.numpy()

    def serve(self, engine, model, n, threads, span=0.0, file=None):
        run = self.runner(engine, model, n, threads)
        if file:
            run().astype("<f4").tofile(file)
            return []
        ns, begin = [], time.perf_counter()
        while not ns or time.perf_counter() - begin < span:
            start = time.perf_counter_ns()
            run()
            ns.append(time.perf_counter_ns() - start)
        time.sleep(0.02)  # until OpenMP's threads have stopped spinning
        return ns


def main():
    folder, names, minilm = sys.argv[1:4]
    with torch.inference_mode():
        peer = Peer(folder, names.split(","), minilm)
        versions = f"PyTorch {torch.__version__}, transformers {transformers.__version__}, ONNX Runtime {onnxruntime.__version__}"
        answer(versions=versions)
        for line in sys.stdin:
            try:
                answer(ns=peer.serve(**json.loads(line)))
            except Exception:
                answer(error=traceback.format_exc())


main()
