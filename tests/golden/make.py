"""Golden numbers of the looped trainer, from an independent implementation in PyTorch.

    pip install torch safetensors
    python tests/golden/make.py

Writes model.safetensors (weights, logits, every named gradient) and model.json (sizes, tokens, losses, 10-step curves) beside
itself. Everything is computed in float64 from float32 weights, so that the reference has no rounding of its own: what a test
sees is the error of the float32 program. PyTorch is needed only to make the numbers again.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)

D, L, N, H, M, V, B, T = 12, 2, 3, 2, 11, 23, 2, 5
THETA, NORM_EPS, REFERENCE_DEPTH = 10000.0, 1e-5, 4
STEPS, WARMUP, DECAY, LR, CLIP, WD, ADAM_EPS = 10, 3, 3, 1e-2, 1.0, 0.1, 1e-8
RULES = {
    "none": dict(rule="none"),
    "sqrt": dict(rule="sqrt"),
    "linear": dict(rule="linear"),
    "factorised": {"rule": "factorised", "lambda": 0.5, "reference_depth": REFERENCE_DEPTH},
    "power": dict(rule="power", alpha=0.75),
}


def branch_scale(rule, sharing):
    if rule["rule"] == "factorised":
        blocks, loops = (L, N) if sharing == "looped" else (L * N, 1)
        return rule["lambda"] / loops / math.sqrt(blocks / REFERENCE_DEPTH)
    return N ** -{"none": 0.0, "sqrt": 0.5, "linear": 1.0, "power": rule.get("alpha")}[rule["rule"]]


def depth_factor(rule, sharing):
    """What multiplies learning rate and Adam epsilon of a block."""
    if rule["rule"] != "factorised":
        return 1.0
    return ((L if sharing == "looped" else L * N) / REFERENCE_DEPTH) ** -0.5


def make_weights(blocks):
    def normal(*shape, std=0.2):
        return (torch.randn(*shape) * std).float().double()

    weights = {"embedding": normal(V, D)}
    for i in range(blocks):
        weights[f"blocks.{i}.attention_norm"] = 1 + normal(1, D, std=0.1)
        weights[f"blocks.{i}.qkv"] = normal(3 * D, D)
        weights[f"blocks.{i}.attention_out"] = normal(D, D)
        weights[f"blocks.{i}.mlp_norm"] = 1 + normal(1, D, std=0.1)
        weights[f"blocks.{i}.gate_up"] = normal(2 * M, D)
        weights[f"blocks.{i}.down"] = normal(D, M)
    weights["final_norm"] = 1 + normal(1, D, std=0.1)
    return {k: w.float().double() for k, w in weights.items()}


def norm(x, gain):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPS) * gain.view(-1)


def rotate(x):  # (B, H, T, K), halves turned against each other as in Hugging Face's Llama
    k = x.shape[-1]
    frequency = THETA ** (-torch.arange(0, k, 2) / k)
    angle = torch.outer(torch.arange(x.shape[-2]).double(), frequency)
    cos, sin = (torch.cat((f(angle),) * 2, -1).to(x.dtype) for f in (torch.cos, torch.sin))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def forward(w, tokens, sharing, scale):
    b, t = tokens.shape
    h = w["embedding"][tokens]
    for visit in range(N):
        for layer in range(L):
            p = f"blocks.{layer if sharing == 'looped' else visit * L + layer}."
            q, k, v = (norm(h, w[p + "attention_norm"]) @ w[p + "qkv"].T).view(b, t, 3, H, D // H).permute(2, 0, 3, 1, 4)
            scores = rotate(q) @ rotate(k).transpose(-1, -2) / math.sqrt(D // H)
            scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
            heads = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, D)
            h = h + scale * (heads @ w[p + "attention_out"].T)
            gate, up = (norm(h, w[p + "mlp_norm"]) @ w[p + "gate_up"].T).chunk(2, -1)
            h = h + scale * ((F.silu(gate) * up) @ w[p + "down"].T)
    return norm(h, w["final_norm"]) @ w["embedding"].T


def loss_of(w, tokens, sharing, scale):
    logits = forward(w, tokens[:, :-1], sharing, scale)
    return logits, F.cross_entropy(logits.reshape(-1, V), tokens[:, 1:].reshape(-1))


def curve(weights, batches, sharing, rule, dtype=torch.float64):
    w = {k: x.to(dtype, copy=True).requires_grad_() for k, x in weights.items()}
    depth = depth_factor(rule, sharing)
    groups = []
    for name, x in w.items():
        block, gain = name.startswith("blocks"), "norm" in name
        groups.append(dict(params=[x], base=LR * (depth if block else 1), eps=ADAM_EPS * (depth if block else 1),
                           weight_decay=0.0 if gain else WD, lr=0.0))
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    losses, norms = [], []
    for step, tokens in enumerate(batches):
        factor = min(1.0, (step + 1) / WARMUP, (STEPS - step) / DECAY)
        for group in adam.param_groups:
            group["lr"] = group["base"] * factor
        adam.zero_grad()
        _, loss = loss_of(w, tokens, sharing, branch_scale(rule, sharing))
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(list(w.values()), CLIP).item())
        adam.step()
        losses.append(loss.item())
    return losses, norms


batches = torch.randint(0, V, (STEPS, B, T + 1))
arrays, cases = {}, []
for sharing, blocks in (("looped", L), ("deep", L * N)):
    weights = make_weights(blocks)
    arrays.update({f"{sharing}.weight.{k}": x.float() for k, x in weights.items()})
    for name, rule in RULES.items():
        w = {k: x.clone().requires_grad_() for k, x in weights.items()}
        logits, loss = loss_of(w, batches[0], sharing, branch_scale(rule, sharing))
        loss.backward()
        key = f"{sharing}.{name}"
        arrays[f"{key}.logits"] = logits.detach().float()
        arrays.update({f"{key}.grad.{k}": x.grad.float() for k, x in w.items()})
        single = {k: x.float().requires_grad_() for k, x in weights.items()}
        loss_of(single, batches[0], sharing, branch_scale(rule, sharing))[1].backward()
        worst = max(((single[k].grad.double() - x.grad).abs().max() / x.grad.abs().max()).item() for k, x in w.items())
        losses, norms = curve(weights, batches, sharing, rule)
        # What PyTorch itself loses in float32: the yardstick for the tolerances of the tests.
        drift = [max(abs(a / b - 1) for a, b in zip(*pair))
                 for pair in zip(curve(weights, batches, sharing, rule, torch.float32), (losses, norms))]
        cases.append(dict(key=key, sharing=sharing, scaling=rule, branch_scale=branch_scale(rule, sharing),
                          float32_error=worst, float32_curve_error=drift, loss=loss.item(), curve=losses, grad_norms=norms))

here = pathlib.Path(__file__).parent
save_file({k: x.contiguous() for k, x in arrays.items()}, here / "model.safetensors")
run = dict(
    model=dict(width=D, depth=L, loops=N, heads=H, mlp=M, vocabulary=V, rope_theta=THETA, norm_eps=NORM_EPS),
    optimiser=dict(lr=LR, betas=[0.9, 0.95], weight_decay=WD, eps=ADAM_EPS, clip=CLIP),
    schedule=dict(warmup_steps=WARMUP, decay_steps=DECAY),
    batch=dict(sequences=B, seq_len=T), steps=STEPS,
)
(here / "model.json").write_text(json.dumps(dict(torch=torch.__version__, run=run, tokens=batches.tolist(), cases=cases), indent=1))
