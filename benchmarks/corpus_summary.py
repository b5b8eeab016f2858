"""Tables and the figure of `bench_corpus.py`, from its stored rows.

This module is not a benchmark.
"""

from collections import defaultdict

import numpy as np

from corpus_peers import BOUND
from corpus_scores import compare, pooled_curve

COLUMNS = {
    "log": "log score",
    "ece": "ECE",
    "pooled": "ECE, pooled",
    "brier": "Brier",
    "accuracy": "accuracy",
    "coverage": "coverage of 90 %",
    "set size": "set size",
    "auc": "AUC",
    "seconds": "seconds",
}
COMPARED = {"log": "log score", "ece": "ECE", "accuracy": "accuracy"}
MIN_SHARE = 0.03  # share of the rows of a set below which a point of the figure is noise
MIN_SHARE_OF_ALL = 0.005  # the same, for the line of all sets
VERDICTS = {1: "ahead", 0: "level", -1: "behind"}


def grouped(rows):
    """Return the rows that did not fail, by rate, then set, then method."""
    groups = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in rows:
        if "failed" not in row:
            groups[row["rate"]][row["set"]][row["method"]].append(row)
    return {rate: groups[rate] for rate in sorted(groups)}


def is_ours(method):
    return method.startswith("graphuq")


def set_scores(rows):
    """Return the mean over draws of each score, and the calibration error of all draws pooled."""
    scores = {}
    for key in COLUMNS:
        values = [row[key] for row in rows if row.get(key) is not None]
        scores[key] = np.mean(values) if values else np.nan
    scores["pooled"] = pooled_curve(rows).expected_calibration_error
    return scores


def best_peer(methods, ours, score, afterwards=True):
    """Return the name of the best peer, its values and ours on the same draws, or None.

    The best peer is chosen afterwards, among those with the most draws in common with ours. If
    ``afterwards`` is false, the peer of each draw is the one that is best on all other draws; the
    name is that of the peer chosen most often. This needs two draws.
    """
    mine = {row["draw"]: row[score] for row in methods[ours]}
    found = {}
    for name, rows in methods.items():
        if not is_ours(name) and name != BOUND:
            theirs = {row["draw"]: row[score] for row in rows if row["draw"] in mine}
            if theirs:
                found[name] = theirs
    most = max((len(theirs) for theirs in found.values()), default=0)
    if most < (1 if afterwards else 2):
        return None
    found = {name: theirs for name, theirs in found.items() if len(theirs) == most}
    names, draws = list(found), sorted(set.intersection(*map(set, found.values())))
    values = np.array([[found[name][draw] for draw in draws] for name in names])
    others = values.sum(axis=1, keepdims=True) - (0 if afterwards else values)
    best = (-others if score == "accuracy" else others).argmin(axis=0)
    name = names[np.bincount(best).argmax()]
    theirs = values[np.broadcast_to(best, len(draws)), np.arange(len(draws))]
    return name, theirs, [mine[draw] for draw in draws]


def comparisons(sets, ours, score, afterwards=True):
    """Return set, verdict, our mean, best peer and its mean, for each set that has both."""
    found = []
    for name, methods in sets.items():
        best = best_peer(methods, ours, score, afterwards) if ours in methods else None
        if best is not None:
            peer, theirs, mine = best
            verdict = compare(mine, theirs, larger_is_better=score == "accuracy")
            found.append((name, verdict, np.mean(mine), peer, np.mean(theirs)))
    return found


def table(header, lines):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def _number(value):
    return "" if np.isnan(value) else f"{value:.3f}"


def show_means(sets):
    """Print the mean over sets of each score; "shared" is over sets that all methods have."""
    scores = {
        method: {name: set_scores(sets[name][method]) for name in sets if method in sets[name]}
        for method in {method for methods in sets.values() for method in methods}
    }
    half = [own for own in scores.values() if len(own) >= len(sets) / 2]
    shared = set.intersection(*[set(own) for own in half]) if half else set()
    lines = []
    for method in sorted(scores, key=lambda m: (not is_ours(m), m == BOUND, m)):
        own = scores[method]
        n_draws = sum(len(sets[name][method]) for name in own)
        common = [own[name]["log"] for name in shared if name in own]
        everywhere = len(common) == len(shared) > 0
        means = [np.nanmean([s[key] for s in own.values()] or [np.nan]) for key in COLUMNS]
        together = all_sets_error([pooled_curve(sets[name][method]) for name in own])
        lines.append(
            [
                method,
                f"{len(own)}, {n_draws / len(own):.1f}",
                _number(np.mean(common)) if everywhere else "",
                _number(together),
                *map(_number, means),
            ]
        )
    header = ["method", "sets, draws", f"log score, {len(shared)} shared sets", "ECE, all sets"]
    header += COLUMNS.values()
    table(header, lines)


def show_differences(sets, ours="graphuq"):
    """Print how far each method is from ours, paired by set, with the standard error over sets."""
    lines = []
    for method in sorted({name for methods in sets.values() for name in methods} - {ours, BOUND}):
        both = [methods for methods in sets.values() if ours in methods and method in methods]
        cells = [paired(both, ours, method, score) for score in ("log", "accuracy")]
        lines.append([method, str(len(both)), *cells])
    table(["graphuq minus", "sets", "log score", "accuracy"], lines)


def paired(both, ours, method, score):
    """Return the mean difference of a score over sets and its standard error, as text."""
    gaps = np.array(
        [
            np.mean([row[score] for row in methods[ours]])
            - np.mean([row[score] for row in methods[method]])
            for methods in both
        ]
    )
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    return f"{gaps.mean():+.3f} ± {error:.3f}"


def show(rows, by_set=None):
    """Print the tables of all rates, and those of all sets for one score if ``by_set`` names it."""
    groups = grouped(rows)
    for rate, sets in groups.items():
        print(f"### {rate} labels a class, mean over sets\n")
        show_means(sets)
        if any("graphuq" in methods for methods in sets.values()):
            show_differences(sets)
    ours = sorted({row["method"] for row in rows if is_ours(row["method"])})
    print("### Sets where graphuq is ahead of, level with and behind the best peer\n")
    show_verdicts(groups, ours, afterwards=True)
    print("### The same, if the peer of each draw is the best one on the other draws\n")
    show_verdicts(groups, ours, afterwards=False)
    if by_set:
        for method in ours:
            show_sets(groups, method, by_set)
    commits = defaultdict(set)
    for row in rows:
        commits[row["method"]].add(row.get("commit", "unknown"))
    for method in ours:
        print(f"{method}: commit {', '.join(sorted(commits[method]))}")
    failed = [f"{row['method']}, {row['set']}" for row in rows if "failed" in row]
    for text in sorted(set(failed)):
        print(f"failed {failed.count(text)} times: {text}")


def show_verdicts(groups, ours, afterwards):
    """Print how often each of our methods is ahead of, level with and behind the best peer."""
    lines, total = [], defaultdict(list)
    for method in ours:
        for rate, sets in groups.items():
            cells = []
            for score in COMPARED:
                found = comparisons(sets, method, score, afterwards)
                verdicts = [verdict for _, verdict, *_ in found]
                total[method, score] += verdicts
                cells.append(", ".join(str(verdicts.count(v)) for v in VERDICTS))
            lines.append([method, str(rate), *cells])
        shares = [np.mean(np.array(total[method, score] or [np.nan]) >= 0) for score in COMPARED]
        lines.append([method, "ahead or level", *[f"{share:.0%}" for share in shares]])
    table(["method", "labels a class", *COMPARED.values()], lines)


def show_sets(groups, method, score):
    """Print our score and that of the best peer for each set, from the worst difference."""
    for rate, sets in groups.items():
        print(f"### {method}, {score}, {rate} labels a class\n")
        sign = -1 if score == "accuracy" else 1
        found = comparisons(sets, method, score)
        found.sort(key=lambda one: sign * (one[4] - one[2]))
        lines = [
            [name, f"{mine:.3f}", f"{theirs:.3f}", peer, VERDICTS[verdict]]
            for name, verdict, mine, peer, theirs in found
        ]
        table(["set", "graphuq", "best peer", "its name", "graphuq is"], lines)


def draw(rows, method, path):
    """Draw the reliability curves of all sets, one panel for each number of labels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = {
        rate: {name: methods[method] for name, methods in sets.items() if method in methods}
        for rate, sets in grouped(rows).items()
    }
    groups = {rate: sets for rate, sets in groups.items() if sets}
    if not groups:
        raise SystemExit(f"{path}: no rows of {method!r}; compute them first")
    figure, axes = plt.subplots(
        1, len(groups), figsize=(3.1 * len(groups), 3.4), sharey=True, squeeze=False
    )
    for axis, (rate, sets) in zip(axes[0], groups.items(), strict=True):
        curves = [pooled_curve(own) for own in sets.values()]
        axis.plot([0, 1], [0, 1], color="0.3", linewidth=1, linestyle=":")
        for curve in curves:
            kept = curve.count / curve.count.sum() >= MIN_SHARE
            axis.plot(
                curve.confidence[kept], curve.accuracy[kept], color="C0", alpha=0.3, linewidth=0.8
            )
        confidence, accuracy, share = mean_curve(curves)
        kept = share >= MIN_SHARE_OF_ALL
        confidence, accuracy = confidence[kept], accuracy[kept]
        axis.plot(confidence, accuracy, color="C3", linewidth=2.5, label="all sets")
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence")
        axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axis.set_title(
            f"{rate} label{'s' if rate > 1 else ''} a class, {len(sets)} sets", fontsize=10
        )
    axes[0, -1].plot([], [], color="C0", alpha=0.5, linewidth=0.8, label="one set")
    axes[0, -1].legend(loc="lower right", fontsize=8, frameon=False)
    axes[0, 0].set_ylabel("share of right answers")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def mean_curve(curves, n_bins=10):
    """Return confidence, accuracy and share of all sets together, with equal weight for each set.

    Bins without any row are left out.
    """
    weight = np.concatenate([curve.count / curve.count.sum() for curve in curves]) / len(curves)
    confidence, accuracy = (
        np.concatenate([getattr(curve, name) for curve in curves])
        for name in ("confidence", "accuracy")
    )
    bins = np.clip((confidence * n_bins).astype(int), 0, n_bins - 1)
    total = np.bincount(bins, weight, n_bins)
    kept = total > 0
    means = [np.bincount(bins, weight * v, n_bins)[kept] for v in (confidence, accuracy)]
    return means[0] / total[kept], means[1] / total[kept], total[kept]


def all_sets_error(curves):
    """Return the expected calibration error of all sets together, in 15 bins."""
    confidence, accuracy, share = mean_curve(curves, n_bins=15)
    return float(share @ np.abs(confidence - accuracy))
