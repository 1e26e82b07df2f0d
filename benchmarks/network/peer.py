"""EntropyNet in PyTorch, as a peer of package net and package train.

One process for one number of threads. It answers each line of its standard
input, a JSON object, with one line of JSON; see main.go. Forms of the network:
"tiled" concatenates the frame's features to each point's, as it is written in
the paper; "split" multiplies them once and adds the product to every row; each
eager or compiled.
"""

import json
import sys
import time

import numpy as np
import torch
from torch import nn


class EntropyNet(nn.Module):
    def __init__(self, dims, split, dropout=0.1):
        super().__init__()
        widths = [dims, 64, 128, 256]
        self.local = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(b) for b in widths[1:])
        self.head = nn.Linear(512, 128, bias=False)
        self.norm = nn.BatchNorm1d(128)
        self.drop = nn.Dropout(dropout)
        self.last = nn.Linear(128, dims)
        self.split = split

    def forward(self, x):  # [clouds, points, dims], displacements in -1 to 1
        b, n, d = x.shape
        h = x.reshape(b * n, d)
        for linear, norm in zip(self.local, self.norms):
            h = torch.relu(norm(linear(h)))
        h = h.view(b, n, 256)
        peak = h.amax(1)
        if self.split:
            w = self.head.weight
            u = (h.reshape(b * n, 256) @ w[:, :256].T).view(b, n, 128) + (peak @ w[:, 256:].T).unsqueeze(1)
        else:
            u = self.head(torch.cat([h, peak.unsqueeze(1).expand(b, n, 256)], 2))
        u = self.drop(torch.relu(self.norm(u.reshape(b * n, 128))))
        return torch.tanh(self.last(u)).view(b, n, d)


class Folded(nn.Module):
    """For inference: normalisation in the weights, one cloud."""

    def __init__(self, w, split):
        super().__init__()
        for name, value in w.items():
            self.register_buffer(name, value)
        self.split = split

    def forward(self, x):
        h = x
        for k in range(3):
            h = torch.relu(torch.addmm(getattr(self, f"b{k}"), h, getattr(self, f"w{k}")))
        peak = h.amax(0)
        if self.split:
            u = torch.addmm(self.b3 + peak @ self.w3[256:], h, self.w3[:256])
        else:
            u = torch.addmm(self.b3, torch.cat([h, peak.expand(len(h), 256)], 1), self.w3)
        return torch.tanh(torch.addmm(self.b4, torch.relu(u), self.w4))


def chords(x, ends_x, ends_y, sign, tau):
    """exp(-distance/tau) of points to chords: x [clouds, points, 2]; ends [clouds, chords, 2]."""
    px, py = x[:, :, 0].unsqueeze(2), sign * x[:, :, 1].unsqueeze(2)
    ax, bx = ends_x[:, None, :, 0], ends_x[:, None, :, 1]
    ay, by = sign * ends_y[:, None, :, 0], sign * ends_y[:, None, :, 1]
    dx, dy = bx - ax, by - ay
    length = torch.sqrt(dx * dx + dy * dy).clamp_min(1e-30)
    above = (dx * (py - ay) - dy * (px - ax)) / length
    out = torch.maximum(torch.maximum(ax - px, px - bx), above).clamp_min(0)
    return torch.exp(-out / tau)


def witness_entropy(m, valid, steps=10):
    """F of memberships m [clouds, points, ranges]; weights q by expectation and maximisation."""
    n = m.shape[1]
    with torch.no_grad():
        q = valid / valid.sum(1, keepdim=True)
        for _ in range(steps):
            a = torch.bmm(m, q.unsqueeze(2)) + 1 / n
            r = q * torch.bmm((1 / a).transpose(1, 2), m).squeeze(1)
            q = r / r.sum(1, keepdim=True)
    return -torch.log(torch.bmm(m, q.unsqueeze(2)).squeeze(2) + 1 / n).mean(1)


def hull_entropy(x, side, tau):
    total = 0
    for sign, (ends_x, ends_y, valid) in zip((1, -1), side):
        total = total + witness_entropy(chords(x, ends_x, ends_y, sign, tau) * valid[:, None, :], valid)
    return total


class Step:
    """Forward, loss, backward, clipping and AdamW on 8 clouds."""

    def __init__(self, case, form):
        self.x, self.side, self.mask, self.u, self.was = case["x"], case["side"], case["mask"], case["u"], case["was"]
        self.tau, self.lam, self.reach = case["tau"], case["lambda"], case["reach"]
        torch.manual_seed(1)
        self.net = EntropyNet(2, "split" in form)
        self.adam = torch.optim.AdamW(self.net.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)
        self.loss_of = torch.compile(self.loss, dynamic=False) if "compiled" in form else self.loss

    def loss(self, x):
        moved = x + self.reach * self.net(x)
        delta = moved - x
        support = (moved @ self.u.T).amax(1)
        task = 100 * ((support - self.was) ** 2).mean(1) + (delta ** 2).sum(2).mean(1)
        pinned = torch.where(self.mask, x, moved)
        return (task + self.lam * hull_entropy(pinned, self.side, self.tau)).mean()

    def run(self):
        self.adam.zero_grad(set_to_none=True)
        loss = self.loss_of(self.x)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.adam.step()
        return loss


def array(path, *shape, kind="<f4"):
    return torch.from_numpy(np.fromfile(path, dtype=kind).reshape(*shape).copy())


class Peer:
    def __init__(self, threads):
        torch.set_num_threads(threads)
        self.forms = {}
        self.result = None

    def load(self, folder, dims):
        widths = [dims, 64, 128, 256]
        w = {}
        for k, (a, b) in enumerate(zip(widths, widths[1:])):
            w[f"w{k}"], w[f"b{k}"] = array(f"{folder}/w{k}", b, a).T.contiguous(), array(f"{folder}/b{k}", b)
        w["w3"], w["b3"] = array(f"{folder}/w3", 128, 512).T.contiguous(), array(f"{folder}/b3", 128)
        w["w4"], w["b4"] = array(f"{folder}/w4", dims, 128).T.contiguous(), array(f"{folder}/b4", dims)
        self.weights, self.dims, self.folder = w, dims, folder
        return {}

    def points(self, path):
        self.x = array(path, -1, self.dims)
        return {"points": len(self.x)}

    def displace(self, form, times, save=None):
        if ("displace", form) not in self.forms:
            module = Folded(self.weights, "split" in form).eval()
            self.forms["displace", form] = torch.compile(module, dynamic=False) if "compiled" in form else module
        module, ns = self.forms["displace", form], []
        with torch.inference_mode():
            for _ in range(times):
                start = time.perf_counter_ns()
                result = module(self.x)
                ns.append(time.perf_counter_ns() - start)
        if save:
            result.numpy().astype("<f4").tofile(save)
        return {"ns": ns}

    def case(self, folder, clouds, points, tau, **more):
        side = []
        for name in ("upper", "lower"):
            valid = array(f"{folder}/{name}.valid", clouds, -1)
            ranges = valid.shape[1]
            side.append((array(f"{folder}/{name}.x", clouds, ranges, 2), array(f"{folder}/{name}.y", clouds, ranges, 2), valid))
        x = array(f"{folder}/x", clouds, points, 2)
        u = array(f"{folder}/u", -1, 2)
        mask = array(f"{folder}/mask", clouds, points, 1, kind="u1").bool()
        self.step_case = dict(x=x, side=side, mask=mask, u=u, was=(x @ u.T).amax(1), tau=tau, reach=more["reach"])
        self.step_case["lambda"] = more["lambda"]
        f = hull_entropy(array(f"{folder}/moved", clouds, points, 2), side, tau)
        return {"f": f.tolist(), "support": float(self.step_case["was"].sum())}

    def step(self, form, times):
        if ("step", form) not in self.forms:
            self.forms["step", form] = Step(self.step_case, form)
        module, ns = self.forms["step", form], []
        for _ in range(times):
            start = time.perf_counter_ns()
            module.run()
            ns.append(time.perf_counter_ns() - start)
        return {"ns": ns}

    def mul(self, m, k, n, times):
        a, b = torch.rand(m, k), torch.rand(k, n)
        out, ns = torch.empty(m, n), []
        for _ in range(times):
            start = time.perf_counter_ns()
            torch.mm(a, b, out=out)
            ns.append(time.perf_counter_ns() - start)
        return {"ns": ns}


def main():
    peer = Peer(int(sys.argv[1]))
    print(json.dumps({"version": torch.__version__, "threads": torch.get_num_threads()}), flush=True)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            print(json.dumps(getattr(peer, request.pop("do"))(**request)), flush=True)
        except Exception as e:
            print(json.dumps({"error": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"}), flush=True)


main()
