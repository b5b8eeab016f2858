"""What do replies, threads and authors add to the words of posts?

Question: posts of six newsgroups have words, lead to earlier posts (a directed graph of replies),
and are in groups: threads and posts of one author (hyperedges). How right is the default with each,
with few labels? Which rule for directions serves?

How to run:

    python benchmarks/bench_groups.py [--draws 2] [--per-class 5]
    python benchmarks/bench_groups.py --summary

Data: ``newsgroups/six-groups-19997.tar.xz`` of the folder of data (``--data``). All posts of the
file are nodes. Words are tf-idf of the body without headers and quoted lines. A thread is all posts
that name one earlier post among their references, whether it is in the file or not, and that post.

Prints accuracy, log score, calibration error and CPU seconds. Results go to
``benchmarks/results/groups.json``.
"""

import argparse
import json
import os
import re
import tarfile
import time
import warnings
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import graphuq as gq
from bench_nodes import scores
from peers import DATA, RESULTS

PATH = RESULTS / "groups.json"
ARCHIVE = Path("newsgroups") / "six-groups-19997.tar.xz"


def header(text, name):
    """Return the value of a header, or an empty text."""
    found = re.search(rf"^{name}:\s*(.*)$", text, re.MULTILINE | re.IGNORECASE)
    return found.group(1).strip() if found else ""


def posts(folder):
    """Return classes, bodies, senders, message ids and references of all posts."""
    rows = []
    with tarfile.open(folder / ARCHIVE) as archive:
        for member in archive:
            if not member.isfile():
                continue
            text = archive.extractfile(member).read().decode("latin-1")
            head, _, body = text.partition("\n\n")
            head = re.sub(r"\n[ \t]+", " ", head)
            own = [line for line in body.splitlines() if not line.lstrip().startswith((">", "|"))]
            own = [line for line in own if not line.rstrip().endswith("writes:")]
            references = re.findall(r"<[^>]+>", header(head, "References"))
            found = member.name.split("/")[-2], "\n".join(own), header(head, "From")
            rows.append((*found, header(head, "Message-ID"), references))
    return [list(column) for column in zip(*rows, strict=True)]


def parts(folder):
    """Return classes, words, the directed graph of replies, threads and posts of each author."""
    classes, bodies, senders, ids, references = posts(folder)
    codes = np.unique(classes, return_inverse=True)[1]
    X = TfidfVectorizer(min_df=5, max_df=0.3, sublinear_tf=True).fit_transform(bodies)
    place = {name: i for i, name in enumerate(ids) if name}
    pairs = {(i, place[r]) for i, own in enumerate(references) for r in own if r in place}
    source, target = np.array([pair for pair in sorted(pairs) if pair[0] != pair[1]]).T
    shape = (len(codes), len(codes))
    replies = sparse.csr_array((np.ones(len(source)), (source, target)), shape)
    threads, authors = defaultdict(set), defaultdict(set)
    for i, (sender, own, name) in enumerate(zip(senders, references, ids, strict=True)):
        authors[sender].add(i)
        for r in (*own, name):
            threads[r].add(i)
    many = [[sorted(one) for one in own.values() if len(one) > 1] for own in (threads, authors)]
    return codes, sparse.csr_array(X), replies, *many


def settings(folder):
    """Yield the name of an answer, its estimator and the features, and the classes."""
    codes, X, replies, threads, authors = parts(folder)
    n = range(len(codes))

    def walk(rule):
        return gq.graphs.from_adjacency(replies, symmetrize=rule)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        in_threads = gq.graphs.from_hyperedges(threads, nodes=n)
        of_authors = gq.graphs.from_hyperedges(authors, nodes=n)
        graphs = {
            "words": None,
            "replies alone, union": walk("union"),
            "threads alone": in_threads,
            "words, replies (union)": walk("union"),
            "words, replies (random walk)": walk("random-walk"),
            "words, replies (shared neighbours)": walk("shared-neighbors"),
            "words, threads": in_threads,
            "words, threads, authors": {"threads": in_threads, "authors": of_authors},
        }
    for name, graph in graphs.items():
        if graph is None:
            yield name, gq.GraphClassifier(metric="cosine"), X, codes
        else:
            own = X if name.startswith("words") else None
            yield name, gq.GraphClassifier(graph), own, codes


def measure(folder, n_draws, per_class):
    for name, classifier, X, codes in settings(folder):
        for draw in range(n_draws):
            rng, y = np.random.default_rng(draw), np.full(len(codes), -1)
            for k in range(codes.max() + 1):
                y[rng.choice(np.flatnonzero(codes == k), per_class, replace=False)] = k
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = classifier.fit(X, y)
            seconds, test = time.process_time() - begin, y < 0
            row = [*scores(fitted.label_distributions_[test], codes[test]), seconds]
            stored = json.loads(PATH.read_text()) if PATH.exists() else {}
            stored.setdefault(str(per_class), {}).setdefault(name, {})[str(draw)] = row
            PATH.parent.mkdir(exist_ok=True)
            PATH.write_text(json.dumps(stored, indent=1))
            print(name, draw, [round(x, 3) for x in row], flush=True)


def summary():
    print("| labels a class | answer from | draws | accuracy | log score | calibration error "
          "| CPU s |\n" + "|---" * 7 + "|")  # fmt: skip
    for per_class, answers in json.loads(PATH.read_text()).items():
        for name, rows in answers.items():
            table = np.array(list(rows.values()))
            mean, error = table.mean(axis=0), table[:, 0].std(ddof=1) / len(table) ** 0.5
            print(f"| {per_class} | {name} | {len(table)} | {mean[0]:.3f} ± {error:.3f} "
                  f"| {mean[1]:.3f} | {mean[2]:.3f} | {mean[3]:.0f} |")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--per-class", type=int, default=5)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if not given.summary:
        measure(given.data, given.draws, given.per_class)
    summary()
