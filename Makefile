# Two commands do everything: `make demo` and `make test`. The others are the parts of them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
export PYTHONPATH := build:runner:benchmarks
TOOL = $(BIN)/python -m

.PHONY: help demo test test-unit lint cluster cluster-down cluster-status kwok-nodes bench images run crds venv clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: venv ## a kind cluster, the operator, a distributed MXNet job on real data; KEEP=1 leaves the cluster up
	@$(TOOL) demo $(if $(KEEP),--keep)

test: lint ## every test from nothing, cluster included
	@$(BIN)/pytest

test-unit: venv ## the tests that need no cluster: seconds
	@$(BIN)/pytest tests/unit -q

lint: venv ## ruff, mypy, import-linter, ansible-lint (production), yamllint, generated files
	@$(BIN)/python build/lint.py

cluster: venv ## a real kind cluster, kubeconfig at .cluster/kubeconfig; builds and caches what it needs
	@$(TOOL) cluster up

cluster-down: venv ## end all that `make cluster` started
	@$(TOOL) cluster down

cluster-status: venv ## what runs, and where
	@$(TOOL) cluster status

N ?= 10
kwok-nodes: venv ## N=10 simulated nodes beside the real one
	@$(TOOL) cluster kwok $(N)

MINUTES ?= 25
bench: venv ## this operator beside its peers, on kwok nodes: benchmarks/RESULTS.md; MINUTES=25 BENCH="--rounds 1 ..."
	@$(TOOL) bench --minutes $(MINUTES) $(BENCH)

images: venv ## build the example images and push them to the local registry
	@$(TOOL) images build

crds: venv ## write crds/ anew from build/crds
	@$(TOOL) crds

run: venv ## the embedded engine on the cluster of KUBECONFIG (default .cluster/kubeconfig)
	@KUBECONFIG=$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig} $(BIN)/dljob-operator run --install-crds

venv: .venv/ready ## the pinned Python environment

.venv/ready: requirements.txt requirements-dev.txt pyproject.toml build/venv.sh
	@build/venv.sh $(PYTHON)

clean: ## the environment and what tools left; the cluster is ended by cluster-down
	@rm -rf .venv .build .pytest_cache .mypy_cache .ruff_cache .hypothesis
