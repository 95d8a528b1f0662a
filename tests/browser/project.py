"""Makes a project to look at: verdicts, figures and tables as the contract between the stages has them, and a grid of nodes.

usage: project.py FOLDER [--nodes N] [--hostile]
"""

import argparse
import json
import math
import pathlib

CLAIMS = [
    ("CFG-2", "configuration", "Parameter counts of the tied model at L = 12, 24, 48", "PASS", 183454464, "183,454,464; 268,407,552; 438,313,728", None, "1", "183.5M, 268.4M, 438.3M", "exact integers", None),
    ("CFG-9", "configuration", "Loss at initialisation is about ln V", "PASS", 11.912, "11.912", [11.905, 11.919], "nats/token", "about 11.76", "ln V + d sigma^2 / 2 = 11.91, within 0.1 of what was measured", None),
    ("E1", "empirical", "Deep stack of independent blocks: R stays bounded under the square-root rule", "PASS", 0.012, "slope 0.012", [-0.04, 0.06], "1", "bounded", "the interval of the slope holds 0 at every step from 0 to 10", None),
    ("E2", "empirical", "Looped: R grows with N without a rule and under the square root, and stays under 1/N", "PASS", -0.04, "slopes 0.97, 0.45, -0.04", [-0.07, -0.01], "1", "1, 1/2, 0", "all three slopes lie within their bounds", None),
    ("E3", "empirical", "Increments of loop steps point the same way; those of independent blocks do not", "FAIL", -0.067, "[-0.067, 1.000]", None, "1", "[0.027, 0.995]", "the smallest cosine is negative: at width 64 the noise of a per-token cosine is 0.12, and the paper's pooling is not stated", None),
    ("E4", "empirical", "One step at a fixed rate changes the output by about N, sqrt N, and 1 times", "PASS", 1.15, "slopes 1.15, 0.64, x1.9", [1.02, 1.27], "1", "1, 1/2, within a small range", "slopes within 0.25 of the predicted", None),
    ("E6", "empirical", "The optimal learning rate moves with N under 1/sqrt N and stays under 1/N", "INCONCLUSIVE", 0.11, "slope 0.11", [-0.22, 0.41], "1", "optima aligned", "the interval of the linear rule's slope is wider than the bound of 0.15: three seeds do not resolve an octave here", "about 2 h 40 m on 2 cores: profile workstation"),
    ("E7", "empirical", "At N = 8 the best loss under 1/N is below that under 1/sqrt N", "PASS", -0.29, "-0.29", [-0.34, -0.21], "nats/token", "-0.025", "negative in every paired seed; ten times the paper's size, as expected at this width", None),
    ("E10", "empirical", "One base rate is near-optimal for all depths and loops", "INCONCLUSIVE", 0.031, "0.031", [0.008, 0.055], "nats/token", "regret at most 0.02", "the interval holds the bound", "about 5 h on 2 cores: profile workstation"),
    ("E11", "empirical", "At L = 48, N = 8 base rates above 2e-3 diverge", "INCONCLUSIVE", None, "", None, "1", "3e-3 and 4e-3 diverge", "no run at L = 48 in this profile", "3.2e19 FLOP: profile paper"),
    ("E14", "empirical", "Final norms agree within a depth", "PASS", 1.11, "1.11", [1.07, 1.16], "1", "about equal", "largest over smallest is below 1.25", None),
    ("T3", "theory", "The squared sum of increments grows as N^2, so R is bounded if and only if eps N is", "PASS", 2.02, "slope 2.02", [1.99, 2.05], "1", "2", "slope within 0.1 of 2", None),
    ("T7", "theory", "A deep stack's R^2 tends to exp(c L^(1 - 2 alpha)) with c = 1/2", "PASS", 1.652, "1.652", [1.61, 1.7], "1", "1.649", "the interval holds e^0.5", None),
    ("T8", "theory", "The sum over L layers and N loops grows as L N^2 for lambda = sqrt 12", "FAIL", 26.8, "26.8", [25.1, 28.6], "1", "constant", "without normalisation the ratio rises from 0.52 to 26.8 over L = 1 to 64; with pre-norm it stays within 0.41 to 0.51", None),
    ("OWN-1", "own", "The rule N^-0.75 aligns optima better than N^-0.5", "INCONCLUSIVE", 0.3, "0.30", [0.05, 0.61], "1", "not in the paper", "one seed", "20 m"),
]
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'&"


def claims(hostile):
    verdicts = []
    for ident, group, claim, verdict, measured, text, interval, unit, paper, why, resolve in CLAIMS:
        parts = []
        if ident in ("E2", "E4", "E6"):
            for rule, slope, ok in (("none", 0.97, "PASS"), ("sqrt", 0.45, "PASS"), ("linear", -0.04, verdict)):
                parts.append({"name": f"rule {rule}", "rule": "abs(slope - predicted) <= 0.15", "measured": slope, "interval": [slope - 0.05, slope + 0.06], "verdict": ok, "why": "slope of log R over log N"})
        verdicts.append({
            "id": ident, "group": group, "claim": claim, "verdict": verdict, "measured": measured, "measured_text": text, "interval": interval, "unit": unit,
            "paper": paper, "scale": "d 64, L 2, N to 8, 3 seeds", "why": why, "resolve": resolve, "parts": parts, "tables": ["lr-transfer"],
            "artefacts": [{"table": "lr-transfer", "rows": 1204, "digest": "4be1a0c9d2f37781"}], "figures": ["lr-transfer"] if ident in ("E6", "E7") else [],
        })
    if hostile:
        verdicts.append({"id": "X" + HOSTILE, "group": HOSTILE, "claim": HOSTILE, "verdict": "FAIL", "measured": None, "measured_text": HOSTILE, "interval": None, "unit": "1",
                         "paper": HOSTILE, "scale": HOSTILE, "why": HOSTILE, "resolve": HOSTILE, "parts": [], "tables": [HOSTILE], "artefacts": [], "figures": [HOSTILE]})
    return {"scale": "width 64, depth 2, loops to 8, 300 steps, 3 paired seeds", "verdicts": verdicts}


def figure(name, title, curves, hostile):
    colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]
    width, height, left, top = 720, 380, 64, 24
    xs = [0, 1, 2, 3, 4, 5, 6]
    low, high = min(min(ys) for _, ys in curves), max(max(ys) for _, ys in curves)
    def place(x, y):
        return left + x / 6 * (width - left - 150), top + (high - y) / (high - low) * (height - top - 60)
    out = [f'<?xml version="1.0" encoding="UTF-8"?><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}" font-family="sans-serif" font-size="13">',
           f'<title>{title}</title><defs><clipPath id="area"><rect x="{left}" y="0" width="{width}" height="{height}"/></clipPath></defs><rect width="100%" height="100%" fill="white"/>']
    for x in xs:
        px, _ = place(x, low)
        out.append(f'<line x1="{px}" x2="{px}" y1="{top}" y2="{height - 36}" stroke="#e8e8e8"/><text x="{px}" y="{height - 18}" text-anchor="middle" fill="#444">{2 ** x}</text>')
    for step in range(5):
        y = low + (high - low) * step / 4
        _, py = place(0, y)
        out.append(f'<text x="{left - 8}" y="{py + 4}" text-anchor="end" fill="#444">{y:.2f}</text>')
    for (label, ys), colour in zip(curves, colours):
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (place(x, y) for x, y in zip(xs, ys)))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" clip-path="url(#area)"/>')
        for x, y in zip(xs, ys):
            a, b = place(x, y)
            out.append(f'<circle class="mark" cx="{a:.1f}" cy="{b:.1f}" r="4.5" fill="{colour}" data-tip="{label}, N = {2 ** x}: {y:.3f}"><title>{label}, N = {2 ** x}: {y:.3f}</title></circle>')
        a, b = place(6, ys[-1])
        out.append(f'<text x="{a + 12}" y="{b + 4}" fill="{colour}">{label}</text>')
    if hostile:
        out.append('<script>window.pwned=1</script><image href="http://198.51.100.1/x.png"/><g onclick="window.pwned=1"/>')
    out.append("</svg>")
    return "".join(out)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--nodes", type=int, default=60)
    arguments.add_argument("--hostile", action="store_true")
    given = arguments.parse_args()
    root = given.folder
    for part in ("given/figures", "given/tables", "docs"):
        (root / part).mkdir(parents=True, exist_ok=True)
    (root / "given/verdicts.json").write_text(json.dumps(claims(given.hostile)))
    ns = range(7)
    figures = {
        "energy": ("Size of the stream at the end of the stack", [("none", [0.05 + 0.97 * n for n in ns]), ("1/sqrt N", [0.05 + 0.45 * n for n in ns]), ("1/N", [0.05 - 0.04 * n for n in ns])], ["E1", "E2"]),
        "lr-step": ("Change of the output by one step", [("none", [-0.7 + 1.15 * n for n in ns]), ("1/sqrt N", [-0.7 + 0.64 * n for n in ns]), ("1/N", [-0.7 + 0.15 * n for n in ns])], ["E4"]),
        "lr-transfer": ("Held-out loss over the learning rate", [(f"N = {2 ** k}", [2.4 + 0.02 * (x - 2.2 - 0.2 * k) ** 2 + 0.03 * k for x in ns]) for k in range(4)], ["E6", "E7"]),
        "theory-slopes": ("Slopes that the theory predicts", [("T3", [2 + 0.1 * math.sin(n) for n in ns]), ("T8", [1 + 0.08 * math.cos(n) for n in ns])], ["T3", "T8"]),
    }
    for name, (title, curves, about) in figures.items():
        (root / f"given/figures/{name}.svg").write_text(figure(name, title, curves, given.hostile))
        (root / f"given/figures/{name}.json").write_text(json.dumps({"name": name, "title": title, "alt": title + ", one curve for each rule", "claims": about, "tables": ["lr-transfer"],
            "caption": "Mean over three seeds; bands are one standard error. The paper claims that only 1/N keeps it in place." + (HOSTILE if given.hostile else "")}))
    (root / "given/tables/optima.md").write_text("Optimal learning rates, nats per token.\n\n| rule | N | argmin | fitted | 95% interval |\n|---|--:|--:|--:|---|\n" + "".join(f"| {r} | {n} | {lr} | {lr}2 | [1.1e-3, 2.9e-3] |\n" for r in ("1/sqrt N", "1/N") for n, lr in ((1, "2e-3"), (2, "2e-3"), (4, "1e-3"), (8, "1e-3"))))
    (root / "given/tables/configuration.md").write_text("The paper's configuration.\n\n| | paper | here |\n|---|---|---|\n| width | 768 | 64 |\n| depth | 12 | 2 |\n| tokens | 10B | 1.2M |\n")
    (root / "docs/deviations.md").write_text("# Where we differ from the paper\n\n| what | paper | here | may move |\n|---|---|---|---|\n| data | FineWeb-Edu | a generated corpus | loss values |\n| gradient clip | not stated | 1.0 | divergence at large rates |\n\nDefaults for the rest are in `docs/trainer.md`.\n" + ("\n<script>window.pwned=1</script> [x](http://198.51.100.1/)\n" if given.hostile else ""))
    (root / "pipeline.yaml").write_text(f"""
description: a project to look at
vars: {{points: {list(range(given.nodes))}}}
stages:
  corpus: {{kind: command, description: documents, outputs: {{text: text.txt}}, with: {{run: "echo words > text.txt"}}}}
  lr-transfer:
    kind: command
    description: learning-rate sweep
    grid: {{n: "${{{{ points }}}}"}}
    id: N${{{{ n }}}}-linear-lr2e-3-s0
    seed: "${{{{ n }}}}"
    inputs: {{text: {{from: corpus}}}}
    outputs: {{metrics: metrics.jsonl}}
    with: {{run: "echo training ${{{{ n }}}}; for s in 9 7 5 4 3 2; do echo '{{\\"loss\\":'$s'}}'; done > metrics.jsonl", env: {{N: "${{{{ n }}}}", WIDTH: 64}}}}
  verify:
    kind: command
    description: judges every claim
    inputs: {{runs: {{from: lr-transfer}}, given: given/verdicts.json}}
    outputs: {{verdicts: verdicts.json}}
    with: {{run: "cp ${{{{ inputs.given }}}} verdicts.json"}}
  report:
    kind: report
    description: this page
    inputs: {{verdicts: {{from: verify}}, figures: given/figures, tables: given/tables, deviations: docs/deviations.md}}
    with: {{title: On the Residual Scaling of Looped Transformers}}
""")


if __name__ == "__main__":
    main()
