# The project's commands. Each installs the Debian packages it needs (root only if one is missing),
# works from a fresh clone and ends with one line that says what passed. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PRESET ?= dev
CHIPS ?= 8x910B3
BENCH_NODE ?= 16x910B2C
FUZZ_SECONDS ?= 30

.PHONY: help demo test concurrency cdi fault soak fuzz e2e e2e-smoke e2e-node lint lint-all bench nightly clean

help: ## Show this list
	@echo "ascend-dra: Kubernetes schedules Huawei Ascend NPUs"
	@echo
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
	  while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done
	@echo
	@echo "Variables: PRESET=dev|release|asan|tsan (test), CHIPS=8x910B3|16xA3|... (demo),"
	@echo "           CHECK=1 (bench: a missed goal is a failure),"
	@echo "           SEED=N|random (cdi; default: always the same cases), FUZZ_SECONDS=30 (fuzz),"
	@echo "           ASCEND_DRA_CACHE=DIR (built Kubernetes programs; default: ~/.cache/ascend-dra)"

demo: ## Run the driver on mock chips with a simulated API server and kubelet
	@scripts/install-packages.sh build
	@scripts/demo.sh $(CHIPS)

test: ## Build and run every unit and integration test
	@scripts/install-packages.sh build
	@scripts/test.sh $(PRESET)

concurrency: ## Run what uses threads under ThreadSanitizer
	@scripts/install-packages.sh build
	@scripts/test.sh tsan

cdi: ## Compare the CDI library with the Go library, and let Go and podman read the driver's files
	@scripts/install-packages.sh build cdi
	@scripts/cdi.sh $(if $(SEED),--seed $(SEED))

fault: ## Kill, fail or cut off every file system call of a plugin's life, one run each
	@scripts/install-packages.sh build
	@scripts/fault.sh

soak: ## Kill the real programs for 200 rounds, or for SOAK_SECONDS
	@scripts/install-packages.sh build
	@scripts/soak.sh $(SOAK_SECONDS)

fuzz: ## Fuzz the CDI library for FUZZ_SECONDS a target
	@scripts/install-packages.sh build fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS)

e2e: ## Run the full suite on a real one-node Kubernetes
	@scripts/install-packages.sh build e2e
	@test/e2e/run.sh

e2e-smoke: ## Run one case per area of the e2e suite
	@scripts/install-packages.sh build e2e
	@test/e2e/run.sh --smoke

e2e-node: ## Open a shell in a real one-node Kubernetes with the driver up (CHIPS=...)
	@scripts/install-packages.sh build e2e
	@test/e2e/node.sh shell --chips $(CHIPS)

bench: ## Measure the driver on the simulated node, and the CDI library beside the Go library
	@scripts/install-packages.sh build bench
	@scripts/bench.sh $(if $(CHECK),--check) $(BENCH_NODE)

lint: ## Check formatting, shell, docs, and changed files by clang-tidy
	@scripts/install-packages.sh build lint
	@scripts/lint.sh

lint-all: ## The same with clang-tidy on every file
	@scripts/install-packages.sh build lint
	@scripts/lint.sh --all

nightly: lint-all ## Everything, and more of it: fuzzing for 10 minutes a target, new random cases
	@$(MAKE) --no-print-directory test PRESET=asan
	@$(MAKE) --no-print-directory concurrency fault soak cdi SEED=random
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=600
	@$(MAKE) --no-print-directory e2e
	@echo "nightly: passed"

clean: ## Remove build directories (caches outside the tree stay)
	@rm -rf build
	@echo "clean: build/ removed"
