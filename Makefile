# The project's commands. Each installs the Debian packages it needs (root only if one is missing),
# works from a fresh clone and ends with one line that says what passed. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PRESET ?= dev
CHIPS ?= 8x910B3

.PHONY: help demo test concurrency e2e e2e-smoke e2e-node lint lint-all bench nightly clean

help: ## Show this list
	@echo "ascend-dra: Kubernetes schedules Huawei Ascend NPUs"
	@echo
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
	  while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done
	@echo
	@echo "Variables: PRESET=dev|release|asan|tsan (test), CHIPS=8x910B3|16xA3|... (demo),"
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

e2e: ## Run the full suite on a real one-node Kubernetes
	@scripts/install-packages.sh build e2e
	@test/e2e/run.sh

e2e-smoke: ## Run one case per area of the e2e suite
	@scripts/install-packages.sh build e2e
	@test/e2e/run.sh --smoke

e2e-node: ## Open a shell in a real one-node Kubernetes with the driver up (CHIPS=...)
	@scripts/install-packages.sh build e2e
	@test/e2e/node.sh shell --chips $(CHIPS)

bench: ## Measure start, Prepare and memory on the simulated node
	@scripts/install-packages.sh build
	@scripts/demo.sh $(CHIPS) measure

lint: ## Check formatting, shell, docs, and changed files by clang-tidy
	@scripts/install-packages.sh build lint
	@scripts/lint.sh

lint-all: ## The same with clang-tidy on every file
	@scripts/install-packages.sh build lint
	@scripts/lint.sh --all

nightly: lint-all ## Everything: lint-all, all tests under ASan+UBSan, TSan, e2e in full
	@$(MAKE) --no-print-directory test PRESET=asan
	@$(MAKE) --no-print-directory concurrency e2e
	@echo "nightly: passed"

clean: ## Remove build directories (caches outside the tree stay)
	@rm -rf build
	@echo "clean: build/ removed"
