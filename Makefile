# Every target makes the virtual environment that it needs; nothing else has to be set up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What mv_assets runs on; and what its tests need besides, in the same place.
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
INSTALL := $(BIN)/pip install --disable-pip-version-check
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
# Hadoop's S3 for the Spark of the tests. No registry of Python's has a newer one; users take theirs from Maven.
JARS := .jars
JARS_READY := $(JARS)/.ready
# What makes a Dagster project, in the version that is there: pip would try for minutes which versions fit together.
SCAFFOLDS := from dagster import __version__ as v; print(f"create-dagster=={v} dagster-dg-cli=={v}")
# The lowest versions that mv_assets runs on; ONLY names tests, if not all are to be run there.
OLDEST := .venv-oldest
OLDEST_READY := $(OLDEST)/.ready
ONLY ?=
# Another Python that is to be tried, in an environment of its own.
PYTHON_VERSION ?= 3.13
OTHER := .venv-$(PYTHON_VERSION)
OTHER_READY := $(OTHER)/.ready
# Some tests wait more than they compute.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(shell echo $$(($(CORES) + 1)))
# How long a soak is.
KILLS ?= 200
MINUTES ?= 60
SEED ?= 1
TESTS := mv_assets_tests
QUICK := $(TESTS)/unit $(TESTS)/acceptance \
  -m 'not (spark or postgresql or processes or e2e or browser or slow or deep or soak)'
# What is computed must not depend on where Spark runs.
ON_CONNECT := $(TESTS)/scenarios/test_events.py $(addprefix $(TESTS)/acceptance/test_,functions.py together.py) $(addprefix $(TESTS)/unit/spark/read/test_,deletes.py files.py formats.py) $(TESTS)/scenarios/test_object_stores.py
# Where Spark, Dagster and the Python of users meet the Python that they run on.
ON_PYTHON := $(TESTS)/unit/defs $(addprefix $(TESTS)/acceptance/test_,functions.py together.py) -m 'spark and not (deep or soak)'
ON_CLUSTER := $(TESTS)/scenarios/test_events.py -m 'not deep' -k 'cold or late or poisoned'

.PHONY: dev quick test check check-oldest check-python cover prove soak bench bench-peers images docs java chromium clean

dev: java $(READY)
	$(BIN)/mv-assets dev

# Without Java, Chromium, Dagster and PostgreSQL: under a minute.
quick: $(TOOLS)
	$(BIN)/pytest -n $(CORES) $(QUICK)

# Several JVMs share the cores, and none lives long: a collector with threads of its own would be in the others' way,
# and code that is compiled for hours to come is not worth it.
test check check-oldest check-python cover prove: export SPARK_SUBMIT_OPTS ?= -XX:+UseSerialGC -XX:TieredStopAtLevel=1

test: java chromium $(TOOLS) $(JARS_READY)
	$(BIN)/pytest -n $(WORKERS)

# What CI runs: the slow tests as well, those that compute once more on other Sparks, and whether the documents can be built.
check: java chromium docs $(TOOLS) $(JARS_READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) -m 'not deep and not soak' --durations 40
	MV_ASSETS_TEST_ENGINE=connect $(BIN)/pytest -n $(WORKERS) $(ON_CONNECT)
	MV_ASSETS_TEST_ENGINE=cluster $(BIN)/pytest -n 0 $(ON_CLUSTER)

# The tests that need no browser, on the lowest versions. What old libraries warn of is not ours to mend.
check-oldest: java $(OLDEST_READY) $(JARS_READY)
	$(OLDEST)/bin/pytest -W default -n $(WORKERS) -m 'not deep and not soak and not browser' $(ONLY)

# The quick tests, and a part of those with Spark, on another Python: make check-python PYTHON_VERSION=3.12
check-python: java $(OTHER_READY) $(JARS_READY)
	$(OTHER)/bin/pytest -n $(CORES) $(QUICK)
	$(OTHER)/bin/pytest -n $(WORKERS) $(ON_PYTHON)

# Lines and branches that no test comes by in its own process.
cover: java chromium $(TOOLS) $(JARS_READY)
	$(BIN)/pytest -n $(WORKERS) --cov --cov-report=term-missing:skip-covered

# Larger bounds, every fault at every call, other random worlds, and whatever else takes minutes: hours.
prove: export MV_ASSETS_SEED ?= $(shell date +%s)
prove: java chromium $(TOOLS) $(JARS_READY)
	$(BIN)/pytest -n 0 -m deep -s $(TESTS)/proof/simulation
	$(BIN)/pytest -n $(WORKERS) -m deep $(TESTS)/proof/matrix
	$(BIN)/pytest -n 0 -m 'deep or soak' --ignore $(TESTS)/proof/simulation --ignore $(TESTS)/proof/matrix
	$(BIN)/pytest -n $(WORKERS) --hypothesis-profile searching -k 'not spark'
	MV_ASSETS_TEST_ENGINE=connect $(BIN)/pytest -n $(WORKERS) -m slow $(TESTS)/scenarios/test_events.py
	MV_ASSETS_FUZZ_WORLDS=8 MV_ASSETS_FUZZ_QUERIES=690 $(BIN)/pytest -n $(WORKERS) -m slow $(TESTS)/proof/fuzz
	MV_ASSETS_FUZZ_WORLDS=20 MV_ASSETS_FUZZ_STEPS=16 $(BIN)/pytest -n $(WORKERS) -m slow $(TESTS)/proof/histories $(TESTS)/proof/lakehouse

# The demo under load while all that it consists of is killed, 200 times: about an hour.
soak: java $(TOOLS)
	$(BIN)/python -m mv_assets_tests.proof.soak --kills $(KILLS) --minutes $(MINUTES) --seed $(SEED)

# SF: how large the line items are, 6 million a unit.
bench: export SF ?= 1
bench: java $(TOOLS)
	$(BIN)/python -m mv_assets_tests.benchmarks

# Other tools that keep views, each in an environment of its own below .peers: an hour.
bench-peers: java $(TOOLS)
	$(BIN)/python -m mv_assets_tests.benchmarks.peers

# The pictures in docs/images, taken anew of the demo.
images: java chromium $(TOOLS)
	MV_ASSETS_ARTIFACTS=docs/images $(BIN)/pytest -n 0 -m browser $(TESTS)/e2e/test_images.py

# The pages of docs/ as a site, in site/; whatever does not fit together is an error.
docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --quiet --strict --config-file .mkdocs.yml

# An environment of its own: who only writes needs neither Spark nor Dagster.
$(DOCS_READY): pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/pip install --quiet --disable-pip-version-check \
	  $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "mv_assets needs Python 3.11 to 3.13; this is $$($(PYTHON) --version). Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python can't make a virtual environment here. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing what mv_assets runs on into $(VENV): 1.1 GB, half of it Spark; this takes minutes, once."
	$(INSTALL) --editable '.[demo]'
	@touch $@

$(TOOLS): $(READY)
	@echo "Installing what the tests need into $(VENV): 0.6 GB more; this takes minutes, once."
	$(INSTALL) --editable '.[postgres,delta,iceberg,dev]'
	$(INSTALL) $$($(BIN)/python -c '$(SCAFFOLDS)')
	@touch $@

$(OLDEST_READY): pyproject.toml .ci/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check --constraint .ci/oldest.txt \
	  --editable '.[postgres,delta,iceberg,dev]'
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check $$($(OLDEST)/bin/python -c '$(SCAFFOLDS)')
	@touch $@

$(OTHER_READY): pyproject.toml
	python$(PYTHON_VERSION) -m venv $(OTHER)
	$(OTHER)/bin/pip install --quiet --disable-pip-version-check --editable '.[postgres,delta,iceberg,dev]'
	$(OTHER)/bin/pip install --quiet --disable-pip-version-check $$($(OTHER)/bin/python -c '$(SCAFFOLDS)')
	@touch $@

# The package needs an old PySpark, and is not installed: two of its jars are taken out.
$(JARS_READY): | $(READY)
	@echo "Fetching Hadoop's S3 for the tests into $(JARS): 0.2 GB, once."
	@mkdir -p $(JARS)
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest $(JARS) sagemaker_pyspark==1.4.5
	tar -xzf $(JARS)/sagemaker_pyspark-1.4.5.tar.gz -C $(JARS) --strip-components=3 --wildcards \
	  '*/hadoop-aws-*.jar' '*/aws-java-sdk-bundle-*.jar'
	@rm $(JARS)/sagemaker_pyspark-1.4.5.tar.gz
	@touch $@

java:
	@version=$$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1); \
	if [ -z "$$version" ]; then \
	  echo "Spark needs Java 17 or newer, and there is no java here. On Debian or Ubuntu: apt-get install openjdk-17-jre-headless" >&2; exit 1; \
	elif [ "$$version" -lt 17 ]; then \
	  echo "Spark needs Java 17 or newer, and this is Java $$version. On Debian or Ubuntu: apt-get install openjdk-17-jre-headless" >&2; exit 1; \
	fi

chromium:
	@command -v chromium >/dev/null || \
	  { echo "The tests look at the UI with Chromium, and there is none here. On Debian or Ubuntu: apt-get install chromium" >&2; exit 1; }

clean:
	rm -rf $(VENV) .venv-3.* $(OLDEST) $(DOCS_VENV) $(JARS) site .peers .mv_assets .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* build *.egg-info
