# Everything a newcomer types. `make help` lists it.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
NODES  ?= 100
ARGS   ?=
SEEDS  ?= 1000
JOBS   ?= 2
DOCKER ?= docker
TAG    ?= dev
REGISTRY ?= registry.invalid

ifneq ($(words $(VENV)),1)
$(error VENV is "$(VENV)": name one folder, without spaces)
endif

# Whoever forbids Python to keep what it has compiled would wait for every program to be compiled at each of its starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo check test test-cluster test-kubelet test-gpu test-long soak images cluster cluster-down wheels docs chart chart-test crds alerts npd requirements clean
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## the virtual environment, from the hashed requirements
$(VENV)/.ready: requirements-dev.txt pyproject.toml remediator_sim/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "remediator needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.platform == "linux" else "remediator needs Linux, and this is " + sys.platform + "; use a Linux machine or container")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes --prefer-binary -r requirements-dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e . -e ./remediator_sim
	@touch $@

demo: setup ## break nodes of a simulated fleet and repair them, on this machine, in a minute; ARGS="--summary json" or "--keep"
	@$(BIN)/python -m remediator_sim.scenarios $(ARGS)

CHECK := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports --no-cache
check: setup ## lint, types and layers
	$(CHECK)

# Where few tests failed, they run once more, alone: see tests/again.py.
AGAIN := -o cache_dir=build/again

# The checks take one processor for a while: they run beside the tests, and what they say comes last.
PLAIN := -m "not cluster and not gpu and not long"
test: setup ## the checks, and everything that needs only Python
	@rm -rf build/again
	@said=$$(mktemp); ($(CHECK)) >"$$said" 2>&1 & checks=$$!; \
	$(BIN)/pytest -n 5 --dist loadscope --changed-fakes --sample $(PLAIN) $(AGAIN) || \
	{ [ $$? = 1 ] && $(BIN)/python -m tests.again $(PLAIN); }; tests=$$?; \
	wait $$checks; checked=$$?; cat "$$said"; rm -f "$$said"; exit $$((tests | checked))

# Two at a time: one control plane keeps a processor busy, and a third test would only make the others late. GOGC: its
# programs take memory rather than time.
CLUSTER := -m "cluster and not long" --timeout 900
test-cluster: setup ## the same contracts and the whole path on a real control plane; needs Go
	$(BIN)/python -m deploy.images.programs
	@rm -rf build/again
	GOGC=400 $(BIN)/pytest -rs -n 2 --dist loadfile --sample $(CLUSTER) $(AGAIN) $(ARGS) || \
	{ [ $$? = 1 ] && GOGC=400 $(BIN)/python -m tests.again $(CLUSTER); }

test-kubelet: setup ## of those, what runs on real nodes: kubelet and containerd; needs root, too
	$(BIN)/python -m deploy.images.programs
	$(BIN)/pytest -rs tests/kubelet --timeout 900 $(ARGS)

test-gpu: setup ## detectors and operations on the GPUs of this machine; says what it cannot see here and why; best as root
	$(BIN)/pytest -rs -m gpu tests/gpu --timeout 300 $(ARGS)

test-long: setup ## what takes long: every case of samples in other tests, models against programs, mutations; needs Go
	$(BIN)/python -m deploy.images.programs --long
	$(BIN)/pytest -rs -m "long or (cluster and sampled)" --timeout 3600 $(ARGS)

soak: setup ## SEEDS seeds of the simulation on JOBS cores; goes on where it was stopped, see build/soak
	@mkdir -p build
	@$(BIN)/python -m remediator_sim.simulation --seeds $(SEEDS) --jobs $(JOBS) --state build/soak

images: ## both images, named REGISTRY/remediator/controller and /node, with docker (or DOCKER=podman), tagged TAG
	$(DOCKER) build -f deploy/images/controller.Dockerfile -t $(REGISTRY)/remediator/controller:$(TAG) .
	$(DOCKER) build -f deploy/images/node.Dockerfile -t $(REGISTRY)/remediator/node:$(TAG) .

cluster: setup ## a real control plane with NODES simulated nodes; prints the KUBECONFIG
	@$(BIN)/python -m tests.cluster.up --nodes $(NODES)

cluster-down: setup ## end what `make cluster` started
	@$(BIN)/python -m tests.cluster.down

wheels: setup ## the wheels of both distributions, in dist/
	$(BIN)/hatchling build -t wheel -d "$(CURDIR)/dist"
	cd remediator_sim && "$(CURDIR)/$(BIN)/hatchling" build -t wheel -d "$(CURDIR)/dist"

# In the user's cache, by what it was made from: a fresh clone has it, too.
DOCS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/remediator/docs-$(shell { $(PYTHON) --version; cat requirements-docs.txt; } 2>&1 | sha256sum | cut -c1-12)
$(DOCS)/.ready:
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --require-hashes --prefer-binary -r requirements-docs.txt
	@touch $@

docs: $(DOCS)/.ready ## docs/ as a site, in build/site, with every link checked; and docs/llms.txt
	$(DOCS)/bin/python -m deploy.site.llms
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

chart: setup ## the Helm chart, in build/chart
	@$(BIN)/python -m deploy.chart.generate

chart-test: setup ## the Helm chart on a real control plane: install, upgrade, rollback, uninstall; needs Go
	$(BIN)/python -m deploy.images.programs
	$(BIN)/pytest -rs tests/contract/test_chart.py tests/cluster/test_chart.py --timeout 900 $(ARGS)

crds: setup ## write the CRDs into deploy/crds from the types
	$(BIN)/remediator crds --output deploy/crds

alerts: setup ## write alert rules and dashboards from their tables
	$(BIN)/python -m deploy.monitoring.generate
	$(BIN)/python -m deploy.monitoring.dashboards

npd: setup ## write node-problem-detector's files from the table of detectors
	$(BIN)/python -m deploy.npd.generate

requirements: setup ## compile the hashed requirements again
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header pyproject.toml --extra chat --extra store -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header pyproject.toml remediator_sim/pyproject.toml --extra dev --no-emit-package remediator -o requirements-dev.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --group docs -o requirements-docs.txt
	echo nvidia-ml-py | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -c requirements.txt - -o deploy/images/node.txt

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
