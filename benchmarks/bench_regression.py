"""Regression from few numbers: GraphRegressor beside two Gaussian processes.

    python benchmarks/bench_regression.py                # the comparison, and the choice of graph
    python benchmarks/bench_regression.py compare --draws 4
    python benchmarks/bench_regression.py graphs

The peers are scikit-learn's `GaussianProcessRegressor` on the features (a squared exponential or
a Matérn kernel of smoothness 3/2, plus noise, all learnt) and, where it is installed,
GeometricKernels on the graph of GraphRegressor (its Matérn kernel, with length, smoothness,
variance and noise learnt). Scores are those of rows without a number: mean log density of the true
number, share of 90 % intervals that hold it, root mean square error, and seconds of fit and
prediction.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.ndimage import rotate
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes, load_digits, make_friedman1, make_swiss_roll
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.models.predictive import StudentT

N_GIVEN = (20, 100, 300)
COVERAGE = 0.9


def swiss_roll(seed):
    """Return 1,000 points of a wound sheet, and a smooth function on it with noise of 0.2."""
    rng = np.random.default_rng(seed)
    X, turn = make_swiss_roll(1000, noise=0.1, random_state=seed)
    return X, 2 * np.sin(turn) + 0.1 * X[:, 1] + 0.2 * rng.normal(size=1000)


def tight_roll(seed):
    """Return 1,500 points of a sheet that is wound four times, closely."""
    rng = np.random.default_rng(seed)
    turn, height = rng.uniform(1.5, 10, 1500) * np.pi, rng.uniform(0, 8, 1500)
    X = np.column_stack([turn * np.cos(turn), height, turn * np.sin(turn)]) / np.pi
    X += 0.03 * rng.normal(size=X.shape)
    return X, 3 * np.sin(0.4 * turn) + 0.2 * rng.normal(size=1500)


def rotated_digits(seed):
    """Return 800 turned pictures of the digit 3 (8×8), and the angles in degrees."""
    rng, digits = np.random.default_rng(seed), load_digits()
    images = digits.images[digits.target == 3]
    images = images[rng.integers(len(images), size=800)]
    angles = rng.uniform(-60, 60, 800)
    turned = [
        rotate(image, angle, reshape=False, order=1).ravel()
        for image, angle in zip(images, angles, strict=True)
    ]
    return np.stack(turned), angles


def diabetes(seed):
    """Return the 442 patients of scikit-learn, standardised, and the progression of disease."""
    data = load_diabetes()
    return StandardScaler().fit_transform(data.data), data.target


def friedman(seed):
    """Return 1,000 uniform points of a cube of five dimensions, where no row is near another."""
    return make_friedman1(1000, n_features=5, noise=1.0, random_state=seed)


DATA = {
    "diabetes": diabetes,
    "Friedman": friedman,
    "swiss roll": swiss_roll,
    "tight roll": tight_roll,
    "turned digits": rotated_digits,
}


def graph_regressor(X, y, given, **options):
    """Return mean, deviation and degrees of freedom of a new measurement at every row."""
    known = np.full(len(y), np.nan)
    known[given] = y[given]
    regressor = gq.GraphRegressor(**options).fit(X, known)
    return regressor.posterior_.latent("measurement")


def process(kernel):
    """Return a function that fits a Gaussian process of scikit-learn with this kernel."""

    def fit(X, y, given):
        whole = ConstantKernel() * kernel(np.sqrt(X.shape[1])) + WhiteKernel(0.1, (1e-5, 10.0))
        model = GaussianProcessRegressor(
            whole, normalize_y=True, n_restarts_optimizer=2, random_state=0
        )
        return model.fit(X[given], y[given]).predict(X, return_std=True)

    return fit


def geometric(X, y, given):
    """Return a Gaussian process with the Matérn kernel of GeometricKernels on the same graph."""
    from geometric_kernels.kernels import MaternGeometricKernel
    from geometric_kernels.spaces import Graph

    weights = gq.graphs.knn_graph(X, 15, gq.graphs.SelfTuning(1.0)).weights
    space = Graph(np.asarray(weights.todense()))
    kernel = MaternGeometricKernel(space, num=150)
    nodes = np.arange(len(y))[:, None]
    location, spread = y[given].mean(), y[given].std()
    z = (y[given] - location) / spread

    def covariance(log_values, rows, columns):
        length, smoothness, std = np.exp(log_values[:3])
        params = {"lengthscale": np.array([length]), "nu": np.array([smoothness])}
        return std**2 * kernel.K(params, nodes[rows], nodes[columns])

    def loss(at):
        k = covariance(at, given, given) + np.exp(2 * at[3]) * np.eye(len(z))
        lower = np.linalg.cholesky(k)
        root = np.linalg.solve(lower, z)
        return 0.5 * root @ root + np.log(np.diagonal(lower)).sum()

    bounds = np.log([(0.05, 100.0), (0.3, 20.0), (0.01, 100.0), (0.003, 10.0)])
    starts = [np.log([2.0, 1.5, 1.0, noise]) for noise in (0.1, 0.7)]
    found = [minimize(loss, s, method="L-BFGS-B", bounds=bounds) for s in starts]
    best = min(found, key=lambda one: one.fun).x
    noise = np.exp(2 * best[3])
    k = covariance(best, given, given) + noise * np.eye(len(z))
    every = np.arange(len(y))
    cross = covariance(best, every, given)
    solved = np.linalg.solve(k, cross.T)
    whole = np.diagonal(covariance(best, every, every))
    variance = whole - (cross * solved.T).sum(axis=1) + noise
    return location + spread * (solved.T @ z), spread * np.sqrt(variance)


def scores(y, rest, mean, std, degrees=None):
    """Return log density, coverage of 90 % intervals, and root mean square error."""
    degrees = np.full(len(y), np.inf) if degrees is None else degrees
    predictive = StudentT(mean[rest], std[rest], degrees[rest])
    error = mean[rest] - y[rest]
    inside = predictive.inside(y[rest], COVERAGE)
    return predictive.log_density(y[rest]).mean(), inside.mean(), np.sqrt((error**2).mean())


def table(methods, data, draws, n_given):
    """Print one row for each data set, number of given numbers, and method."""
    print("| data | given | method | log score | coverage | RMSE | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name in data:
        for count in n_given:
            found = {method: [] for method in methods}
            for draw in range(draws):
                X, y = DATA[name](draw)
                rng = np.random.default_rng(1000 + draw)
                given = rng.choice(len(y), count, replace=False)
                rest = np.setdiff1d(np.arange(len(y)), given)
                for method, fit in methods.items():
                    started = time.perf_counter()
                    answer = fit(X, y, given)
                    seconds = time.perf_counter() - started
                    found[method].append((*scores(y, rest, *answer), seconds))
            for method, rows in found.items():
                mean = np.mean(rows, axis=0)
                error = np.std(rows, axis=0, ddof=1) / np.sqrt(draws)
                print(
                    f"| {name} | {count} | {method} | {mean[0]:.3f} ± {error[0]:.3f} | "
                    f"{mean[1]:.3f} | {mean[2]:.3g} ± {error[2]:.2g} | {mean[3]:.2f} |",
                    flush=True,
                )


def main():
    """Print the tables that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("all", "compare", "graphs"), default="all")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--data", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--given", nargs="*", type=int, default=list(N_GIVEN))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    graph_regressor(*diabetes(0), np.arange(30))  # imports, outside of the times
    if arguments.part in ("all", "compare"):
        methods = {
            "GraphRegressor": graph_regressor,
            "GP, squared exponential": process(RBF),
            "GP, Matérn 3/2": process(lambda length: Matern(length, nu=1.5)),
        }
        try:
            setattr(np, "trapz", np.trapezoid)  # noqa: B010  # geomstats imports the old name
            import geometric_kernels  # noqa: F401

            methods["GeometricKernels"] = geometric
        except ImportError:
            print("geometric_kernels is not installed and is left out")
        table(methods, arguments.data, arguments.draws, arguments.given)
    if arguments.part in ("all", "graphs"):
        variants = {"default": {}, "symmetric": {"laplacian": "symmetric"}}
        variants["unnormalized"] = {"laplacian": "unnormalized"}
        variants["sharpness 4"] = {"weights": gq.graphs.SelfTuning(4.0)}
        variants["30 neighbours"] = {"n_neighbors": 30}
        variants["300 eigenpairs"] = {"n_eigenpairs": 300}

        def with_options(options):
            return lambda X, y, given: graph_regressor(X, y, given, **options)

        methods = {name: with_options(options) for name, options in variants.items()}
        table(
            methods, arguments.data, arguments.draws, [arguments.given[len(arguments.given) // 2]]
        )


if __name__ == "__main__":
    main()
