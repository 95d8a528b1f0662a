#!/usr/bin/env python3
"""Times the pipeline engine beside GNU Make, ninja, DVC and Snakemake on the same graphs.

    cargo build --release && python3 benches/engine.py [--peers make,ninja,dvc,snakemake] [--repeat 7] [--large-peers]

Peers are taken from PATH (or --venv DIR for DVC and Snakemake) and left out, with a word, where they are missing.
Measured, each as the median of --repeat runs unless it says otherwise:
  no-op      everything is up to date; wall seconds, 200 and 2,000 nodes of `cp in out`
  per stage  CPU of the runner itself for a trivial stage: (user + system of a first run - the same commands in a shell loop) / nodes;
             median and range of 5 first runs in fresh folders (DVC and Snakemake: 1)
  2 GiB      one stage with 200 inputs of 10.24 MiB each: unchanged, and touched with the same content (and whether it reran)
Only DVC and Snakemake at 2,000 nodes take minutes to set up: --large-peers asks for them.
"""
import argparse, os, resource, shutil, statistics, subprocess, sys, tempfile, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(command, cwd, env=None, check=True):
    """Wall and CPU seconds of a command, descendants included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if check and done.returncode != 0:
        sys.exit(f"{command} failed in {cwd}:\n{done.stdout.decode(errors='replace')[-3000:]}")
    cpu = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return wall, cpu, done.stdout.decode(errors="replace")


class Repro:
    name = "repro"

    def __init__(self, binary, grid=False):
        self.binary, self.grid = str(binary), grid
        if grid:
            self.name = "repro (grid)"

    def setup(self, folder, inputs):
        if self.grid:
            points = ", ".join(str(i) for i in range(len(inputs)))
            text = (f"stages:\n  s:\n    kind: command\n    grid: {{i: [{points}]}}\n    inputs: {{a: 'in/${{{{ i }}}}.txt'}}\n"
                    "    outputs: {o: o.txt}\n    with: {argv: [cp, '${{ inputs.a }}', o.txt]}\n")
        else:
            text = "stages:\n" + "".join(
                f"  s{i}:\n    kind: command\n    inputs: {{a: {name}}}\n    outputs: {{o: o.txt}}\n    with: {{argv: [cp, {name}, o.txt]}}\n"
                for i, name in enumerate(inputs))
        (folder / "pipeline.yaml").write_text(text)

    def setup_big(self, folder, inputs, command):
        listed = "".join(f"      i{i}: {name}\n" for i, name in enumerate(inputs))
        (folder / "pipeline.yaml").write_text(
            f"stages:\n  s:\n    kind: command\n    inputs:\n{listed}    outputs: {{o: o.txt}}\n    with: {{run: '{command} > o.txt'}}\n")

    def command(self):
        return [self.binary, "run"]

    def reran(self, text):
        return " ran " in text


class Make:
    name = "make"

    def setup(self, folder, inputs):
        rules = "".join(f"o/{i}.txt: {name}\n\tcp {name} $@\n" for i, name in enumerate(inputs))
        (folder / "Makefile").write_text("all: " + " ".join(f"o/{i}.txt" for i in range(len(inputs))) + "\n" + rules)
        (folder / "o").mkdir(exist_ok=True)

    def setup_big(self, folder, inputs, command):
        (folder / "Makefile").write_text(f"o.txt: {' '.join(inputs)}\n\t{command} > $@\n")

    def command(self):
        return ["make", "-r", "-j2"]

    def reran(self, text):
        return "> o.txt" in text


class Ninja:
    name = "ninja"

    def setup(self, folder, inputs):
        rules = "".join(f"build o/{i}.txt: cp {name}\n" for i, name in enumerate(inputs))
        (folder / "build.ninja").write_text("rule cp\n  command = cp $in $out\n" + rules)

    def setup_big(self, folder, inputs, command):
        (folder / "build.ninja").write_text(f"rule cat\n  command = {command} > $out\nbuild o.txt: cat {' '.join(inputs)}\n")

    def command(self):
        return ["ninja", "-j2"]

    def reran(self, text):
        return "no work to do" not in text


class Dvc:
    name = "dvc"

    def __init__(self, venv):
        self.binary = str(Path(venv) / "bin" / "dvc") if venv else "dvc"

    def init(self, folder):
        subprocess.run([self.binary, "init", "--no-scm", "-q"], cwd=folder, check=True)
        subprocess.run([self.binary, "config", "core.analytics", "false"], cwd=folder, check=True)

    def setup(self, folder, inputs):
        self.init(folder)
        (folder / "o").mkdir(exist_ok=True)
        (folder / "dvc.yaml").write_text("stages:\n" + "".join(
            f"  s{i}:\n    cmd: cp {name} o/{i}.txt\n    deps: [{name}]\n    outs: [o/{i}.txt]\n" for i, name in enumerate(inputs)))

    def setup_big(self, folder, inputs, command):
        self.init(folder)
        listed = "".join(f"      - {name}\n" for name in inputs)
        (folder / "dvc.yaml").write_text(f"stages:\n  s:\n    cmd: {command} > o.txt\n    deps:\n{listed}    outs: [o.txt]\n")

    def command(self):
        return [self.binary, "repro"]

    def reran(self, text):
        return "Running stage" in text


class Snakemake:
    name = "snakemake"

    def __init__(self, venv):
        self.binary = str(Path(venv) / "bin" / "snakemake") if venv else "snakemake"

    def setup(self, folder, inputs):
        (folder / "Snakefile").write_text(
            f"rule all:\n    input: expand('o/{{i}}.txt', i=range({len(inputs)}))\n"
            "rule cp:\n    input: 'in/{i}.txt'\n    output: 'o/{i}.txt'\n    shell: 'cp {input} {output}'\n")

    def setup_big(self, folder, inputs, command):
        listed = ", ".join(f"'{name}'" for name in inputs)
        (folder / "Snakefile").write_text(f"rule all:\n    input: {listed}\n    output: 'o.txt'\n    shell: '{command} > o.txt'\n")

    def command(self):
        return [self.binary, "-c2", "-q", "rules"]

    def reran(self, text):
        return "Nothing to be done" not in text


def small_inputs(folder, count):
    (folder / "in").mkdir(parents=True)
    names = []
    for i in range(count):
        names.append(f"in/{i}.txt")
        (folder / names[-1]).write_text(f"{i}\n")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="make,ninja,dvc,snakemake")
    parser.add_argument("--venv", help="a virtual environment with dvc and snakemake")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--large-peers", action="store_true", help="DVC and Snakemake with 2,000 nodes too")
    parser.add_argument("--binary", default=ROOT / "target/release/repro")
    parser.add_argument("--skip-big", action="store_true", help="leave out the 2 GiB of inputs")
    args = parser.parse_args()
    tools = [Repro(args.binary), Repro(args.binary, grid=True)]
    wanted = [name for name in args.peers.split(",") if name]
    for peer in (Make(), Ninja(), Dvc(args.venv), Snakemake(args.venv)):
        if peer.name in wanted:
            if shutil.which(peer.command()[0]):
                tools.append(peer)
            else:
                print(f"# {peer.name} is not here and is left out")
    base = Path(tempfile.mkdtemp(prefix="repro-bench-"))
    rows = {tool.name: {} for tool in tools}
    try:
        # What the commands themselves cost: the same 200 copies from one shell.
        folder = base / "bare"
        names = small_inputs(folder, 200)
        (folder / "o").mkdir()
        script = "; ".join(f"sh -c 'cp {name} o/{i}.txt'" for i, name in enumerate(names))
        bare_shell = statistics.median(run(["sh", "-c", script], folder)[1] for _ in range(args.repeat)) / 200
        script = "; ".join(f"/bin/cp {name} o/{i}.txt" for i, name in enumerate(names))
        bare_argv = statistics.median(run(["sh", "-c", script], folder)[1] for _ in range(args.repeat)) / 200
        for count in (200, 2000):
            for tool in tools:
                if count == 2000 and tool.name in ("dvc", "snakemake") and not args.large_peers:
                    continue
                bare = bare_argv if isinstance(tool, Repro) else bare_shell
                own = []
                # Nothing is deleted in between: a file system that has just lost many files is slower at making new ones.
                for turn in range(5 if count == 200 and tool.name not in ("dvc", "snakemake") else 1):
                    folder = base / f"{tool.name.replace(' ', '')}-{count}-{turn}"
                    names = small_inputs(folder, count)
                    time.sleep(0.1)  # past the clock's tick, as sources are
                    tool.setup(folder, names)
                    own.append((run(tool.command(), folder)[1] / count - bare) * 1e3)
                rows[tool.name][f"cpu{count}"] = own
                time.sleep(0.5)
                run(tool.command(), folder)
                walls, cpus = zip(*(run(tool.command(), folder)[:2] for _ in range(args.repeat)))
                rows[tool.name][f"noop{count}"] = (statistics.median(walls), statistics.median(cpus))
        for tool in tools if not args.skip_big else []:
            if tool.name == "repro (grid)":
                continue
            folder = base / f"{tool.name}-big"
            (folder / "in").mkdir(parents=True)
            names = []
            block = os.urandom(1 << 20)
            for i in range(200):
                names.append(f"in/{i}.bin")
                with open(folder / names[-1], "wb") as out:
                    for part in range(10):
                        out.write(i.to_bytes(4, "little") + part.to_bytes(4, "little") + block[8:])
                    out.write(block[: 240 * 1024])
            tool.setup_big(folder, names, "ls in | wc -l")
            run(tool.command(), folder)
            time.sleep(0.2)
            run(tool.command(), folder)
            rows[tool.name]["same"] = statistics.median(run(tool.command(), folder)[0] for _ in range(args.repeat))
            touched, reran = [], False
            for _ in range(3):
                for name in names:
                    os.utime(folder / name)
                time.sleep(0.1)
                wall, _, text = run(tool.command(), folder)
                touched.append(wall)
                reran |= tool.reran(text)
            rows[tool.name]["touched"] = (statistics.median(touched), reran)
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(f"# bare commands: {bare_argv * 1e3:.2f} ms CPU each by argv, {bare_shell * 1e3:.2f} ms through `sh -c`")
    print("| | no-op 200, ms wall (CPU) | no-op 2,000, ms wall (CPU) | own CPU per trivial stage, ms | 2 GiB unchanged, ms | 2 GiB touched, s |")
    print("|---|---|---|---|---|---|")
    for name, row in rows.items():
        cell = lambda key: "{:.1f} ({:.1f})".format(*(value * 1e3 for value in row[key])) if key in row else "-"
        touched = "{:.2f}{}".format(row["touched"][0], ", reran" if row["touched"][1] else "") if "touched" in row else "-"
        same = f"{row['same'] * 1e3:.1f}" if "same" in row else "-"
        print(f"| {name} | {cell('noop200')} | {cell('noop2000')} | {statistics.median(row['cpu200']):.2f} ({min(row['cpu200']):.2f} to {max(row['cpu200']):.2f}) | {same} | {touched} |")


if __name__ == "__main__":
    main()
