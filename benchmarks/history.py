"""Short benchmarks again and again: a page that shows which commit became slower.

Question: did a commit make graph, inference, labelling or the command line slower?

How to run:

    make bench

It runs five short commands three times each, and adds one record to the history, a file that the
user keeps: ``benchmarks/results/history.json``, or what GRAPHUQ_BENCH_HISTORY names. A record has
the commit, the date, the machine, the versions, and the smallest number of the three runs. The
page ``benchmarks/results/history.html`` is written from the whole history.

    python benchmarks/history.py run --repeats 5       # more runs, smaller noise
    python benchmarks/history.py page                  # the page again, without runs

A number is called slower if it is more than a quarter above the median of the five records before
it on the same machine, and above all since the last change. Machines are not compared.

Prints: the numbers of the run, and those that became slower or faster.
"""

import argparse
import datetime
import html
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from statistics import median

from graphuq.plots import class_colors, panels
from graphuq.utils.files import atomic_write
from graphuq.utils.html.page import embedded
from peers import RESULTS, ROOT

HISTORY = Path(os.environ.get("GRAPHUQ_BENCH_HISTORY", RESULTS / "history.json"))
PACKAGES = ("numpy", "scipy", "jax", "numba", "scikit-learn", "faiss-cpu")
LIMIT, N_BEFORE = 1.25, 5  # ratio to the median of so many records before it


def from_scale(found):
    return {f"scale: {stage}": found[stage] for stage in ("graph", "eigenpairs", "posterior")}


def from_loop(found):
    steps = {name: found[name] for name in ("fit", "query", "add_labels", "report")}
    return {
        f"loop: {name}": float(sum(pair[0] for pair in pairs)) if name in LISTS else pairs[0]
        for name, pairs in steps.items()
    }


def from_chain(table):
    """Return the seconds of a million steps of one chain."""
    rows = [row for row in table if row["method"] == "graphuq float64"]
    return {f"chain: million steps ({row['form']})": row["us_a_chain_step"] for row in rows}


LISTS = ("query", "add_labels")  # three rounds each
COMMANDS = {
    "scale": ("bench_scale.py --alone 10000", from_scale),
    "loop": ("bench_loop.py --alone 10000", from_loop),
    "rare": ("bench_unequal.py --rows 20000", lambda found: {"command line": found["seconds"]}),
    "chain": ("bench_pcn.py --cases voting --seconds 2", from_chain),
    "store": (
        "bench_store.py --rows 20000 --modes threads",
        lambda found: {"store": found["20000"]["threads"]["seconds"]},
    ),
}


def measured(name):
    """Run one command, and return its seconds by name."""
    words, read = COMMANDS[name]
    command = [sys.executable, *words.split()]
    environment = os.environ | {"GRAPHUQ_DATA": "/none"}  # cases that everybody has
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "found.json"
        if "--alone" not in command:
            command += ["--output", str(output)]
        done = subprocess.run(
            command,
            cwd=ROOT / "benchmarks",
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        text = output.read_text() if output.exists() else done.stdout.splitlines()[-1]
    return read(json.loads(text))


def this_machine():
    """Return processor, cores and system, in one line."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not Linux: the name of the architecture has to do
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


def this_commit():
    """Return the abbreviated commit, with a plus sign if files differ from it."""

    def git(*words):
        return subprocess.run(
            ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def record(names, repeats):
    """Return the record of a run: the smallest seconds of each number, and how they were made."""
    seconds = {}
    for name in names:
        began = time.perf_counter()
        for _ in range(repeats):
            for key, value in measured(name).items():
                seconds[key] = min(value, seconds.get(key, value))
        print(f"{name}: {repeats} runs in {time.perf_counter() - began:.0f} s", flush=True)
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "commit": this_commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M"),
        "machine": this_machine(),
        "load": round(os.getloadavg()[1], 1),
        "versions": {"python": platform.python_version(), **versions},
        "seconds": seconds,
    }


def changes(history):
    """Return the numbers that became slower or faster: name, record, median before, ratio.

    The ratio is that of the number to the median of up to five earlier ones on the same machine,
    of those since the last change.
    """
    found, level = [], {}
    for new in history:
        for name, value in new["seconds"].items():
            before = level.setdefault((new["machine"], name), [])
            usual = median(before[-N_BEFORE:] or [value])
            slower = value > LIMIT * usual and value > max(before)
            faster = value < usual / LIMIT and value < min(before)
            if slower or faster:
                found.append((name, new, usual, value / usual))
                before.clear()
            before.append(value)
    return found


def sentence(change):
    """Describe a change: what, from which to which number of seconds, and at which commit."""
    name, new, before, ratio = change
    word = "slower" if ratio > 1 else "faster"
    return (
        f"{name}: {before:.3g} s before, {new['seconds'][name]:.3g} s at {new['commit']} "
        f"({new['date']}), {max(ratio, 1 / ratio):.1f} times {word}"
    )


def picture(history, machine):
    """Return the chart of a machine: each number over its first one, by commit, in base 64."""
    rows = [row for row in history if row["machine"] == machine]
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    figure, (ax,) = panels(size=(9.0, 4.2))
    colors = class_colors(len(names))
    for k, name in enumerate(names):
        at = [i for i, row in enumerate(rows) if name in row["seconds"]]
        values = [rows[i]["seconds"][name] / rows[at[0]]["seconds"][name] for i in at]
        style = {"color": colors(k), "marker": "os^vD<>Pp*X"[k % 11], "label": name}
        ax.plot(at, values, markersize=4, linewidth=1, **style)
    ax.axhline(1, color="#94a4a2", linewidth=1)
    ax.set_xticks(range(len(rows)), labels=[row["commit"] for row in rows], rotation=60)
    ax.set(xlabel="commit", ylabel="seconds over those of the first record", ylim=(0, None))
    ax.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return embedded(figure)


def table(rows):
    """Return the records of a machine as an HTML table, the newest first."""
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    lines = [f'<tr><th scope="col">commit</th><th scope="col">date</th>{head}</tr>']
    for row in reversed(rows):
        cells = "".join(
            f"<td>{row['seconds'][name]:.3g}</td>" if name in row["seconds"] else "<td></td>"
            for name in names
        )
        commit, date = html.escape(row["commit"]), html.escape(row["date"])
        lines.append(f'<tr><th scope="row">{commit}</th><td>{date}</td>{cells}</tr>')
    return '<div class="scroll" tabindex="0"><table>' + "\n".join(lines) + "</table></div>"


def page(history):
    """Return the page of a history as HTML."""
    parts = ["<main><h1>Benchmarks by commit</h1>"]
    notes = changes(history)
    slower = [html.escape(sentence(note)) for note in notes if note[3] > 1]
    faster = [html.escape(sentence(note)) for note in notes if note[3] < 1]
    for title, lines in (("Slower", slower), ("Faster", faster)):
        listed = "".join(f"<li>{line}</li>" for line in lines) or "<li>nothing</li>"
        parts.append(f"<h2>{title}</h2><ul>{listed}</ul>")
    for machine in dict.fromkeys(row["machine"] for row in history):
        rows = [row for row in history if row["machine"] == machine]
        versions = ", ".join(f"{k} {v}" for k, v in rows[-1]["versions"].items())
        alt = f"Lines, one a number: seconds at {len(rows)} commits over those of the first."
        parts += [
            f"<h2>{html.escape(machine)}</h2>",
            f'<img alt="{alt}" src="data:image/png;base64,{picture(history, machine)}">',
            "<p>Seconds, the smallest of the runs; small is good.</p>",
            table(rows),
            f"<p>Last record: {html.escape(versions)}; load {rows[-1]['load']}.</p>",
        ]
    style = (files("graphuq") / "web" / "page.css").read_text("utf-8")
    head = '<meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!doctype html><html lang="en"><head>{head}<title>Benchmarks by commit</title>'
        f"<style>{style}</style></head><body>{''.join(parts)}</main></body></html>"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=("run", "page"))
    parser.add_argument("--commands", nargs="+", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--history", type=Path, default=HISTORY)
    options = parser.parse_args()
    history = json.loads(options.history.read_text()) if options.history.exists() else []
    options.history.parent.mkdir(parents=True, exist_ok=True)
    if options.action == "run":
        history.append(record(options.commands, options.repeats))
        for name, value in history[-1]["seconds"].items():
            print(f"{name:32} {value:8.3g} s")
        with atomic_write(options.history) as path:
            path.write_text(json.dumps(history, indent=1), encoding="utf-8")
        for change in changes(history):
            if change[1] is history[-1]:
                print(sentence(change))
    written = options.history.with_suffix(".html")
    written.write_text(page(history), encoding="utf-8")
    print(f"{written}: {len(history)} records")


if __name__ == "__main__":
    main()
