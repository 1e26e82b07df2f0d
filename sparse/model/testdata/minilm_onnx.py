"""Says what ONNX Runtime computes for a BERT checkpoint, of plain operators.

    python minilm_onnx.py DIR IDS.json OUT.safetensors

IDS.json is a list of sequences; OUT holds "out i", the last hidden state of
sequence i. Needs onnx, onnxruntime, numpy and safetensors.
"""
import json
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file

folder, ids, out = sys.argv[1:]
with open(folder + "/config.json") as f:
    config = json.load(f)
weights = load_file(folder + "/model.safetensors")
heads = config["num_attention_heads"]
nodes, tensors = [], []


def constant(name, value):
    tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
    return name


def node(op, *inputs, **attributes):
    name = f"{op}{len(nodes)}"
    nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
    return name


def linear(x, name):
    y = node("MatMul", x, constant(name + ".w", weights[name + ".weight"].T))
    return node("Add", y, constant(name + ".b", weights[name + ".bias"]))


def norm(x, name):
    return node("LayerNormalization", x, constant(name + ".g", weights[name + ".weight"]), constant(name + ".b", weights[name + ".bias"]),
                axis=-1, epsilon=config["layer_norm_eps"])


def split(x, perm):
    x = node("Reshape", x, constant(f"split{len(nodes)}", np.array([0, heads, -1])))
    return node("Transpose", x, perm=perm)


x = node("Gather", constant("words", weights["embeddings.word_embeddings.weight"]), "ids")
p = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
x = norm(node("Add", x, node("Gather", constant("positions", p), "positions_of")), "embeddings.LayerNorm")
for i in range(config["num_hidden_layers"]):
    at = f"encoder.layer.{i}."
    q = split(linear(x, at + "attention.self.query"), [1, 0, 2])
    k = split(linear(x, at + "attention.self.key"), [1, 2, 0])
    v = split(linear(x, at + "attention.self.value"), [1, 0, 2])
    scale = constant(f"scale{i}", np.float32(1 / np.sqrt(config["hidden_size"] / heads)))
    w = node("Softmax", node("Mul", node("MatMul", q, k), scale), axis=-1)
    y = node("Transpose", node("MatMul", w, v), perm=[1, 0, 2])
    y = node("Reshape", y, constant(f"join{i}", np.array([0, -1])))
    x = norm(node("Add", x, linear(y, at + "attention.output.dense")), at + "attention.output.LayerNorm")
    y = linear(x, at + "intermediate.dense")
    e = node("Erf", node("Mul", y, constant(f"root{i}", np.float32(np.sqrt(0.5)))))
    y = node("Mul", node("Mul", y, constant(f"half{i}", np.float32(0.5))), node("Add", e, constant(f"one{i}", np.float32(1))))
    x = norm(node("Add", x, linear(y, at + "output.dense")), at + "output.LayerNorm")
node("Identity", x)
graph = helper.make_graph(
    nodes, "bert", [helper.make_tensor_value_info(n, TensorProto.INT64, ["n"]) for n in ("ids", "positions_of")],
    [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, ["n", config["hidden_size"]])], tensors)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
with open(ids) as f:
    sequences = json.load(f)
result = {}
for i, s in enumerate(sequences):
    s = np.array(s, np.int64)
    result[f"out {i}"] = session.run(None, {"ids": s, "positions_of": np.arange(len(s))})[0]
save_file(result, out)
print("ONNX Runtime", onnxruntime.__version__)
