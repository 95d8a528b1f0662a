"""Does Hugging Face transformers compute our logits from an exported checkpoint?

    pip install torch transformers safetensors
    cargo build --release && python tests/peers/hf_logits.py target/release/repro

Trains a few steps of small models (N = 1, 2, 4 loops, shared and not), exports each, loads it with LlamaForCausalLM in float32 and
compares logits on 2 x 48 random tokens. Fails if the largest difference exceeds 1e-4. Also reads the TensorBoard file if
tensorboard is installed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

repro = str(pathlib.Path(sys.argv[1]).resolve())
CONFIG = """
model: {{width: 64, depth: 3, loops: {loops}, sharing: {sharing}, heads: 4, mlp: 176, vocabulary: 500}}
scaling: {{rule: {rule}}}
init: {{std: 0.1}}
optimiser: {{lr: 0.003}}
batch: {{sequences: 4, seq_len: 48}}
steps: 20
data: {{kind: random}}
tensorboard: true
"""
worst = 0.0
for loops, sharing, rule in [(1, "looped", "linear"), (2, "looped", "linear"), (4, "looped", "linear"),
                             (4, "looped", "sqrt"), (4, "looped", "factorised"), (2, "deep", "none")]:
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "run.yaml").write_text(CONFIG.format(loops=loops, sharing=sharing, rule=rule))
        ids = torch.randint(0, 500, (97,), generator=torch.Generator().manual_seed(loops))
        (at / "ids.txt").write_text(" ".join(map(str, ids.tolist())))

        def run(*arguments):
            return subprocess.run([repro, *map(str, arguments)], cwd=at, check=True, capture_output=True, text=True).stdout

        run("train", "run.yaml", "--out", "run", "--quiet")
        run("export", "run/checkpoint.safetensors", "--format", "hf", "--out", "hf")
        report = json.loads(run("eval", "run/checkpoint.safetensors", "--ids", "ids.txt", "--logits", "logits.safetensors", "--json"))
        ours = load_file(at / "logits.safetensors")["logits"]
        model = LlamaForCausalLM.from_pretrained(at / "hf", dtype=torch.float32)
        with torch.no_grad():
            theirs = model(torch.stack([ids[:48], ids[48:96]])).logits.reshape(96, -1)
        loss = torch.nn.functional.cross_entropy(theirs, ids[1:]).item()
        difference = (ours - theirs).abs().max().item()
        worst = max(worst, difference)
        print(f"N={loops} {sharing:6} {rule:10} layers {model.config.num_hidden_layers:2}  "
              f"max |logit| {theirs.abs().max():.2f}  max difference {difference:.1e}  "
              f"loss {report['loss']:.6f} ours, {loss:.6f} theirs")
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
            events = EventAccumulator(str(at / "run/tensorboard")).Reload()
            losses = [e.value for e in events.Scalars("loss")]
            lines = [json.loads(line) for line in (at / "run/metrics.jsonl").read_text().splitlines()]
            assert len(losses) == 20 and all(abs(a - b["loss"]) < 1e-6 for a, b in zip(losses, lines))
        except ImportError:
            pass
print(f"largest difference {worst:.1e}")
sys.exit(worst > 1e-4)
