PYTHON ?= python3
BIN = .venv/bin

.PHONY: demo test coverage slow fuzz types bench bench-field bench-all lint docs package archives clean

# 0: the site has the scripts of the gallery without their pictures, which is quicker.
GALLERY ?= 1

# Python compiles what it imports, and keeps that, which is quicker than to compile all packages.
unexport PYTHONDONTWRITEBYTECODE
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable

# The environment is made once, and again whenever a pyproject.toml changes.
.venv/ready: pyproject.toml papers/pyproject.toml
	test -d .venv || $(PYTHON) -m venv .venv
	$(INSTALL) '.[dev]' --editable ./papers
	touch $@ .venv/ready-for-demo

# The demonstration does without the tools of the tests, which halves the time of installation.
.venv/ready-for-demo: pyproject.toml
	test -d .venv || $(PYTHON) -m venv .venv
	$(INSTALL) '.[cli]'
	touch $@

demo: .venv/ready-for-demo
	$(BIN)/graphuq demo --output out/demo

# A test that hangs is ended after four minutes, with the lines at which its threads are.
test: .venv/ready
	$(BIN)/pytest -n 2 --dist worksteal

coverage: .venv/ready
	$(BIN)/pytest --cov --cov-report=term:skip-covered -n 2 --dist worksteal

slow: .venv/ready
	$(BIN)/pytest -m slow -n 2 --dist worksteal -o faulthandler_timeout=0

# Ten minutes of CPU time for each kind of file; KINDS="*.csv *.json" takes some of them.
fuzz: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check 'atheris>=3'
	$(BIN)/python tests/robustness/fuzz_by_coverage.py build/fuzz 600 $(foreach kind,$(KINDS),'$(kind)')

# Checks types and shapes of all arguments while tests of the parts run, which makes these slower.
types: .venv/ready
	$(BIN)/pytest -n 2 --jaxtyping-packages=graphuq,graphuq_papers,beartype.beartype \
		tests/contracts/test_every_road.py tests/models tests/posterior tests/priors tests/spectrum

# Adds the seconds of this commit to a history, and shows which commit became slower.
bench: .venv/ready
	$(BIN)/python benchmarks/history.py run

# Every script: many hours, and the data sets are needed.
bench-field: .venv/ready
	$(BIN)/python benchmarks/bench_field.py

bench-all: .venv/ready
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell *.md benchmarks changes docs examples papers src tests
	$(BIN)/python tests/contracts/module_length.py

docs: .venv/ready
	rm -rf build/site docs/api/generated
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -D plot_gallery=$(GALLERY) docs build/site

package: .venv/ready
	$(BIN)/pytest -m slow tests/test_packaging.py

# What a release uploads, into dist/: both projects, and the packages of a new environment in which
# graphuq is installed with all extras (an SBOM in CycloneDX).
archives: .venv/ready
	rm -rf dist build/installed
	$(BIN)/python -m build --outdir dist/graphuq .
	$(BIN)/python -m build --outdir dist/papers papers
	$(PYTHON) -m venv build/installed
	build/installed/bin/pip install --quiet --disable-pip-version-check "$$(ls dist/graphuq/*.whl)[all]"
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/sbom.json build/installed/bin/python

clean:
	rm -rf .venv out build dist *.egg-info src/*.egg-info papers/build papers/src/*.egg-info docs/api/generated docs/gallery
