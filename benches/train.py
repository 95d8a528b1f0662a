#!/usr/bin/env python3
"""Training speed and memory beside PyTorch, as a Markdown table. Peer and ours alternate, so that both meet the same machine.

    cargo build --release
    python3 -m venv VENV && VENV/bin/pip install torch numpy
    python3 benches/train.py --python VENV/bin/python --peer torch_looped.py > table.md

The peer is the same looped Transformer in PyTorch with fused AdamW, eager and compiled; it prints one JSON object with tok_s,
gflops and peak_mb. Every number is a median of --repeats runs. Memory is counted from before the model exists on both sides.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

CASES = {
    "small": dict(d=64, L=2, N=4, heads=4, mlp=176, vocab=512, seq=128, batch=16, steps=30),
    "medium": dict(d=256, L=4, N=2, heads=4, mlp=688, vocab=4096, seq=256, batch=8, steps=8),
    "large": dict(d=768, L=2, N=2, heads=12, mlp=2048, vocab=4096, seq=256, batch=4, steps=6),
}
GOALS = {"small": (2.0, 0.60), "medium": (1.35, 0.80), "large": (1.08, 0.90)}

# What keeps both sides to an older instruction set; PyTorch's compiler chooses its own all the same.
SIMD = {
    "avx512": {"REPRO_SIMD": "avx512"},
    "avx2": {"REPRO_SIMD": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}

# The peer's script, with one line before the model is made: the peak so far is what Python and PyTorch need by themselves.
PEER = """
import resource, runpy, sys, io, json, contextlib
import torch, torch.nn, torch.nn.functional
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
out = io.StringIO()
with contextlib.redirect_stdout(out): runpy.run_path(sys.argv[0], run_name="__main__")
result = json.loads(out.getvalue().strip().splitlines()[-1])
result["peak_mb"] = peak() - before
print(json.dumps(result))
"""


def peer_command(args, case, threads, compiled):
    flags = [f"--{name}={value}" for name, value in CASES[case].items()]
    code = PEER.replace("sys.argv[0]", "SCRIPT").replace("import resource,", f"SCRIPT = {args.peer!r}\nimport resource,", 1)
    return [args.python, "-c", code, *flags, f"--threads={threads}"] + (["--compile"] if compiled else [])


def our_command(args, case, threads):
    return [args.repro, "bench", "--case", case, "--threads", str(threads), "--forget", "--json"]


def start(command, threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def finish(process):
    out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{process.args[:4]} failed:\n{err[-2000:]}")
    found = json.loads(out.strip().splitlines()[-1])
    return {
        "tok_s": found.get("tokens_per_s", found.get("tok_s")),
        "gflops": found["gflops"],
        "mb": found.get("peak_rss_mb", found.get("peak_mb")),
        "peak": found.get("gemm_peak_gflops"),
    }


def once(command, threads, copies=1):
    """One arrangement: `copies` processes at the same time, their speeds added."""
    found = [finish(process) for process in [start(command, threads) for _ in range(copies)]]
    total = dict(found[0])
    for key in ("tok_s", "gflops", "mb"):
        total[key] = sum(one[key] for one in found)
    return total


def arrangements(args, case):
    """name -> (command, threads, copies)"""
    cores = args.threads
    yield "ours, all threads", (our_command(args, case, cores), cores, 1)
    yield "PyTorch eager, all threads", (peer_command(args, case, cores, False), cores, 1)
    yield "PyTorch compile, all threads", (peer_command(args, case, cores, True), cores, 1)
    yield "ours, 1 thread", (our_command(args, case, 1), 1, 1)
    yield "PyTorch eager, 1 thread", (peer_command(args, case, 1, False), 1, 1)
    yield "PyTorch compile, 1 thread", (peer_command(args, case, 1, True), 1, 1)
    yield f"ours, {cores} runs of 1 thread", (our_command(args, case, 1), 1, cores)
    yield f"PyTorch eager, {cores} runs of 1 thread", (peer_command(args, case, 1, False), 1, cores)
    yield f"PyTorch compile, {cores} runs of 1 thread", (peer_command(args, case, 1, True), 1, cores)


def best(medians, who, suffix):
    return max((m["tok_s"], name) for name, m in medians.items() if name.startswith(who) and name.endswith(suffix))


def measure_case(args, case):
    plan = dict(arrangements(args, case))
    results = {name: [] for name in plan}
    for _ in range(args.repeats):
        for name, (command, threads, copies) in plan.items():
            results[name].append(once(command, threads, copies))
            print(f"{case}: {name}: {results[name][-1]['tok_s']:.0f} tokens/s", file=sys.stderr)
    return {
        name: {key: statistics.median(one[key] for one in all_) for key in ("tok_s", "gflops", "mb", "peak") if all_[0][key]}
        for name, all_ in results.items()
    }


def fit(points):
    """Least squares y = a + b x, and the largest miss as a part of y."""
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    b = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
    a = my - b * mx
    return a, b, max(abs(a + b * x - y) / y for x, y in points)


def linearity(args):
    """Seconds of a whole run, by loops and by tokens: the smallest of 5 rounds over all of them, so that a slow minute hits no point alone."""
    import tempfile

    def seconds(loops, steps):
        run = {
            "model": dict(width=64, depth=2, loops=loops, heads=4, mlp=176, vocabulary=512),
            "scaling": {"rule": "linear"},
            "optimiser": {"lr": 1e-3},
            "batch": {"sequences": 16, "seq_len": 128},
            "steps": steps,
            "log_every_steps": steps,
            "data": {"kind": "random"},
        }
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.yaml")
            with open(path, "w") as file:
                json.dump(run, file)
            begin = time.perf_counter()
            subprocess.run([args.repro, "train", path, "--out", os.path.join(folder, "out"), "--threads", "1", "--quiet"], check=True, capture_output=True)
            return time.perf_counter() - begin

    loops, steps = (1, 2, 4, 8, 16), (10, 20, 40, 80, 160)
    rounds = [([seconds(n, 40) for n in loops], [seconds(4, s) for s in steps]) for _ in range(5)]
    by_loops = [(n, min(times[i] for times, _ in rounds)) for i, n in enumerate(loops)]
    by_steps = [(s * 2048 / 1000, min(times[i] for _, times in rounds)) for i, s in enumerate(steps)]
    print("\n| loops N (40 steps) | seconds | | thousand tokens (N = 4) | seconds |\n|---|---|---|---|---|")
    for (n, t), (k, u) in zip(by_loops, by_steps):
        print(f"| {n} | {t:.3f} | | {k:.0f} | {u:.3f} |")
    for what, points in (("N", by_loops), ("thousand tokens", by_steps)):
        a, b, miss = fit(points)
        print(f"\nseconds = {a:.3f} + {b:.4f} * {what}; largest miss {100 * miss:.1f}%")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repro", default="target/release/repro")
    parser.add_argument("--python", default=sys.executable, help="a Python with PyTorch")
    parser.add_argument("--peer", required=True, help="the peer's script")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--simd", choices=list(SIMD), help="at most these instructions; default: all that each side finds")
    parser.add_argument("--no-fit", action="store_true", help="leave out the fit over loops and tokens")
    args = parser.parse_args()
    os.environ.update(SIMD.get(args.simd, {}))
    args.repro, args.peer = os.path.abspath(args.repro), os.path.abspath(args.peer)
    print(f"{platform.processor() or platform.machine()}, {args.threads} cores, medians of {args.repeats}, peer and ours interleaved.\n")
    verdicts = []
    for case in args.cases:
        medians = measure_case(args, case)
        print(f"| {case} | tokens/s | GFLOP/s | of the product's peak | MB |\n|---|---|---|---|---|")
        for name, m in medians.items():
            part = f"{100 * m['gflops'] / m['peak'] / (args.threads if 'runs' in name else 1):.0f}%" if "peak" in m else ""
            print(f"| {name} | {m['tok_s']:,.0f} | {m['gflops']:.1f} | {part} | {m['mb']:.0f} |")
        print(flush=True)
        ours, peer = medians["ours, all threads"], best(medians, "PyTorch", "all threads")
        wanted, wanted_part = GOALS[case]
        part = ours["gflops"] / ours["peak"]
        verdicts.append((f"{case}: tokens/s against {peer[1]}", ours["tok_s"] / peer[0], wanted))
        verdicts.append((f"{case}: part of the product's peak", part, wanted_part))
        many = f"{args.threads} runs of 1 thread"
        if case == "small":
            any_ = max((m["tok_s"], name) for name, m in medians.items() if name.startswith("PyTorch"))
            verdicts.append((f"{case}: {many} in sum against {any_[1]}", medians[f"ours, {many}"]["tok_s"] / any_[0], 1.7))
        least = min(m["mb"] for name, m in medians.items() if name.startswith("PyTorch") and name.endswith("all threads"))
        verdicts.append((f"{case}: peer's memory over ours", least / ours["mb"], 1.0))
    print("| goal | measured | wanted | |\n|---|---|---|---|")
    for what, found, wanted in verdicts:
        print(f"| {what} | {found:.2f} | {wanted:.2f} | {'met' if found >= wanted else 'NOT met'} |")
    if not args.no_fit:
        linearity(args)


if __name__ == "__main__":
    main()
