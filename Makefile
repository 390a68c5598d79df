# make demo [ARGS="--json FILE"]   watch a job survive three faults
# make demo-elastic                watch a run grow into idle nodes, shrink, and lose a node
# make test       what shows that it works, within minutes            make landing    what CI runs, half an hour
# make test-all   everything
# They do their own set-up. On a fresh Debian 12 or 13 only git, make and python3 are needed, and root or sudo.

SHELL := /bin/bash
BIN := .venv/bin
STORIES ?= all
PYTEST := $(BIN)/python -m pytest -q -p tests.again --stories $(STORIES)
SCRIPTS = $(shell git ls-files | grep -v '[.]md$$' | xargs -r grep -lIE '^\#!.*[/ ](ba)?sh$$')
PYTHON := python3
RESULTS := $(if $(STEWARD_RESULTS),$(STEWARD_RESULTS),$(CURDIR)/.results)
JUNIT = --junitxml=$(RESULTS)/$@.xml
MAIN := --stories main
TWO := -n 2 --dist loadfile --no-loadscope-reorder
THREE := -n 3 --dist loadfile --no-loadscope-reorder
# What failed runs once more, alone (tests/again.py): here, or when all else is over (tools/stages.py).
AGAIN = || { [ -z "$$STEWARD_STAGES$$STEWARD_AGAIN" ] && ls $(RESULTS)/$@.*again.json >/dev/null && \
  STEWARD_AGAIN=1 $(MAKE) --no-print-directory $@; }
E2E := $(PYTEST) tests/e2e
ELASTIC := test_elastic*.py
ON_EACH_SLURM := "test_resume.py or test_library or test_grow or node_that_dies or scancel_of or (run_grows and size and not agent) or hyperpods or restarts_slurmd"
WHERE_SLURM_MAKES_ROOM := "step_by_step or computes_the_same or smallest_jobs_is_evicted or cancelled_within_the_grace"
UNIT := $(PYTEST) -n 2 --dist worksteal tests/unit tests/property tests/architecture tests/chaos
SLURM := 22.05
NEWER_SLURMS := 24.11 26.05
EACH_NEWER := $(NEWER_SLURMS:%=e2e-on-%)
QUOTA_ON_NEWER := $(NEWER_SLURMS:%=e2e-quota-on-%)
# Lines of one stage that fill, longest first, the places of the lines that are over.
LAST := $(patsubst %,%:45,$(wordlist 2,9,$(EACH_NEWER))) $(QUOTA_ON_NEWER:%=%:30) demo:15
ARGS ?=

# Where Python may not keep what it compiled, each of the many processes that tests start compiles all of Steward again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help house setup setup-all setup-demo demo demo-elastic test landing test-all lint shim shim-tests unit unit-all contract chaos images e2e-main e2e-local \
  tested e2e-elastic e2e-docker e2e-versions $(EACH_NEWER) $(QUOTA_ON_NEWER) bench bench-scale bench-capacity bench-elastic docs fresh packages assess simulate e2e-packages clean

help:           ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */\t/' | expand -t 16

setup:          ## install what `test` needs (idempotent)
	@tools/setup test

setup-all: shim
	@tools/setup test && tools/setup demo && tools/setup torch

setup-demo:     ## install what `demo` needs (idempotent)
	@tools/setup demo

demo: setup-demo shim   ## three faults under a real training job; ARGS="--json FILE"
	@$(BIN)/python -m examples.demo $(ARGS)

demo-elastic: setup-demo shim   ## a run that grows, shrinks and loses a node; ARGS="--json FILE"
	@$(BIN)/python -m examples.demo --elastic $(ARGS)

test: setup shim    ## lint, types, the shim, unit, property and contract tests, the main stories; one summary at the end
	@python3 tools/stages.py lint:20 shim-tests:20 e2e-main:30 // contract:30 // nice unit:45

landing: export STORIES := most
landing:        ## that, and the demo, all stories but long ones, the docker test bed, of the newer Slurms each some: what CI runs
	@tools/setup debian
	@python3 tools/stages.py setup-all:30 e2e-local:75 // images:45 after=setup-all e2e-docker:60 contract:60 \
	  // after=setup-all e2e-elastic:75 $(lastword $(EACH_NEWER)):45 \
	  // nice shim-tests:30 after=setup-all lint:45 unit:75 \
	  // after=e2e-docker $(firstword $(QUOTA_ON_NEWER)):30 // after=e2e-docker demo:15

test-all:       ## everything: also the long stories and searches, and all that is told on newer Slurms; an hour
	@tools/setup debian
	@python3 tools/stages.py setup-all:30 e2e-local:75 // images:45 after=setup-all e2e-docker:60 contract:60 \
	  // after=setup-all e2e-elastic:75 e2e-on-$(firstword $(NEWER_SLURMS)):45 \
	  // nice shim-tests:30 after=setup-all lint:45 unit-all:75 \
	  $(patsubst %,// after=e2e-docker %,$(LAST))

lint:           ## style, types, layers, shell, C
	$(BIN)/ruff check daemon tests tools examples docker
	$(BIN)/ruff format --check daemon tests tools examples docker
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python -m tools.house --long
	shellcheck $(SCRIPTS)
	$(MAKE) -C spank lint CLANG_FORMAT=$(CURDIR)/$(BIN)/clang-format
	$(MAKE) -C reader lint CLANG_FORMAT=$(CURDIR)/$(BIN)/clang-format
	$(MAKE) -C tests/fake_nvml lint CLANG_FORMAT=$(CURDIR)/$(BIN)/clang-format

shim:           ## build the SPANK plugin, and what asks Slurm's library
	@$(MAKE) -s -C spank all
	@$(MAKE) -s -C reader all

shim-tests:     ## the plugin's unit tests under sanitizers, and a short fuzz
	$(MAKE) -C spank all test fuzz

unit:           ## unit, property, architecture and chaos tests, but for searches of minutes
	$(UNIT) $(MAIN) $(JUNIT) $(ARGS) $(AGAIN)

unit-all:       ## all of them
	$(UNIT) $(JUNIT) $(ARGS) $(AGAIN)

contract:       ## each port's promises, held by its fake and by the real thing
	$(PYTEST) $(THREE) tests/contract $(JUNIT) $(ARGS) $(AGAIN)

e2e-main: shim  ## the main stories on the local test bed, two clusters at a time
	$(E2E) $(TWO) --backend local $(MAIN) $(JUNIT) $(ARGS) $(AGAIN)

e2e-local: shim ## end-to-end tests on the local test bed but for elastic runs, three clusters at a time
	@tools/setup torch
	$(E2E) $(THREE) --backend local --ignore-glob='*/$(ELASTIC)' $(JUNIT) $(ARGS) $(AGAIN)

e2e-elastic: shim ## elastic runs on the local test bed, two clusters at a time
	@tools/setup torch
	$(PYTEST) tests/e2e/$(ELASTIC) $(TWO) --backend local $(JUNIT) $(ARGS) $(AGAIN)

images:         ## what machines of the docker test bed are made from, for each Slurm (minutes the first time)
	docker/engine.sh run sh -ec 'for version in $(SLURM) $(NEWER_SLURMS); do docker/build $$version; done'

e2e-docker: shim ## end-to-end tests on the docker test bed, two clusters at a time
	docker/engine.sh run $(E2E) $(TWO) --backend docker $(JUNIT) $(ARGS) $(AGAIN)

e2e-versions: $(EACH_NEWER) $(QUOTA_ON_NEWER) ## the main job, elastic runs, quotas and accounting on the newer Slurms, docker test bed

$(EACH_NEWER): e2e-on-%: shim
	@tools/setup torch
	docker/engine.sh run docker/build $*
	docker/engine.sh run $(PYTEST) tests/e2e/test_resume.py tests/e2e/test_safety.py tests/e2e/test_library.py tests/e2e/test_grow.py \
	  tests/e2e/test_elastic_life.py tests/e2e/test_elastic_programs.py -k $(ON_EACH_SLURM) --everywhere --backend docker --slurm $* \
	  $(JUNIT) $(ARGS); first=$$?; \
	docker/engine.sh run $(PYTEST) tests/contract/test_accounting.py -k commands --backend docker --slurm $* \
	  --junitxml=$(RESULTS)/$@.accounting.xml; [ $$first$$? = 00 ] $(AGAIN)

$(QUOTA_ON_NEWER): e2e-quota-on-%: shim
	docker/engine.sh run docker/build $*
	docker/engine.sh run $(PYTEST) tests/e2e/test_quota.py tests/e2e/test_quota_order.py tests/e2e/test_quota_called_off.py \
	  -k $(WHERE_SLURM_MAKES_ROOM) --everywhere --backend docker --slurm $* $(JUNIT) $(ARGS) $(AGAIN)

bench: setup shim ## recovery times against plain Slurm; ARGS="--runs N --json FILE"
	$(BIN)/python -m tests.bench.recovery $(ARGS)

bench-scale: setup shim ## what the size of a site costs: ARGS="--nodes N,N --jobs N,N --runs N --json FILE"
	$(BIN)/python -m tests.bench.scale --phases $(ARGS)

bench-capacity: setup ## 1,000 simulated nodes, then 2,000, then 100; ARGS="--first N --most N --last N --json FILE"
	$(BIN)/python -m tests.bench.capacity $(ARGS)

bench-elastic: setup shim ## what a change of size costs, against requeue; ARGS="--rounds N --requeues N --json FILE"
	$(BIN)/python -m tests.bench.elastic $(ARGS)

simulate:       ## Llama 3's 54 days, and the picture of docs/simulate.md; about five minutes
	@$(BIN)/steward simulate --llama3 --runs 1 --svg docs/simulate.svg

chaos:          ## the whole fault matrix, or with N=1000 [SEED=1] that many operations of random stories; HEADS=2
	@$(if $(N),$(BIN)/python -m tests.chaos.random_run --operations $(N) $(if $(SEED),--seed $(SEED)) --heads $(or $(HEADS),1), \
	  $(if $(filter 2,$(HEADS)),$(BIN)/python -m tests.chaos.test_two_heads,$(BIN)/python -m tests.chaos.matrix --jobs $$(nproc)))

house:          ## what the package is made of, in figures; ARGS="--twice": class names with two meanings
	@$(BIN)/python -m tools.house $(ARGS)

packages:       ## what a site installs, in dist/: deb (rpm where rpmbuild is), wheel, sources; ARGS="--release N"
	@PYTHONPATH=daemon $(PYTHON) -m tools.packages $(ARGS)

assess:         ## `steward assess` alone, in dist/: one file for a login host, and a wheel for pipx
	@$(PYTHON) -m tools.assess

e2e-packages:   ## the admins' quickstart on fresh machines, a node dies, upgrade, purge (minutes); ARGS="--site ordinary root configless mixed fixed elsewhere --suite trixie"
	docker/engine.sh run python3 -m tests.packages.prove $(ARGS)

docs: setup     ## remake the generated pages
	$(BIN)/steward config doc > docs/config.md
	$(BIN)/python -m steward.policy.case.table > docs/case.md
	$(BIN)/python -m steward.policy.groups.slot_table > docs/slot.md
	$(BIN)/python -m steward.api.routes | sed -i -e '/made by: .*api.routes/r /dev/stdin' -e '/made by: .*api.routes/,/<!-- end/{/<!--/!d}' docs/api.md

tested:         ## the README's table of what was tested, from the results of the last `make test-all`
	@python3 tools/tested.py

fresh:          ## prove `make demo` on a fresh Debian; ARGS="bookworm test"
	tests/fresh/prove $(ARGS)

clean:          ## remove what was built
	$(MAKE) -C spank clean
	$(MAKE) -C reader clean
	rm -rf .venv .results .mypy_cache .ruff_cache .pytest_cache .hypothesis
