# `make demo` and `make test` run everything. The other targets run parts of them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# the environment's interpreter; hack/venv.sh chooses one if it is empty
PYTHON ?=
BIN := .venv/bin
export PYTHONPATH := hack:src
# containers set it; each process would compile the modules of this repository, and pytest would rewrite all assertions
unexport PYTHONDONTWRITEBYTECODE
TOOL = $(BIN)/python -m
KUBECTL = KUBECONFIG=$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig} PATH=$(CURDIR)/.cluster/bin:$$PATH kubectl

.PHONY: help demo test test-full test-quick test-unit test-oldest test-previous sanity collection docs-site lint cluster cluster-down cluster-status kwok-nodes bench bench-growth chaos fuzz soak images matrix \
  image deploy undeploy run generate crds bundle docs molecule venv clean changelog commits hooks wheel version outdated mutation

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: venv ## a kind cluster, the operator (ENGINE=image: in a pod), a distributed job on real data; KEEP=1 keeps the cluster
	@$(TOOL) devtools.lab.demo $(if $(KEEP),--keep) $(if $(ENGINE),--engine $(ENGINE))

test: venv ## all tests, including the creation of the cluster; PART=unit,crds runs only these parts
	@$(TOOL) devtools.checks.suite $(if $(PART),--parts $(PART))

test-full: venv ## also the longest tests, with every peer of the benchmark; PART=bench as above
	@$(TOOL) devtools.checks.suite --full $(if $(PART),--parts $(PART))

test-quick: venv ## linters and unit tests, for every commit
	@$(TOOL) devtools.checks.suite --quick

test-unit: venv ## the tests that need no cluster
	@$(BIN)/pytest tests/unit -q -m "not full"

test-oldest: venv ## the unit tests with ansible-core 2.18 and kubernetes 33.1, as ansible-operator's image has them
	@$(TOOL) devtools.build.collection oldest

SAMPLE ?= 300
mutation: venv ## do the unit tests notice small defects? SAMPLE=300 of each layer, SAMPLE= for all; MUTATION="--module parse"
	@nice -n 19 $(TOOL) devtools.checks.mutation $(if $(SAMPLE),--sample $(SAMPLE)) $(MUTATION)

test-previous: venv ## the unit tests with ansible-core 2.20; needs Python 3.12 or newer
	@$(TOOL) devtools.build.collection previous

sanity: venv ## ansible-test sanity
	@$(TOOL) devtools.build.collection sanity

collection: venv ## the collection's tarball, into .build
	@$(TOOL) devtools.build.collection build

wheel: venv ## the Python packages: the operator with the collection in it, and dljob for laptops, also for krew; into dist
	@$(TOOL) devtools.build.collection wheel

outdated: venv ## the pinned versions that the registries have newer ones of, and the ends of life; OUTDATED=--all for all pins
	@$(TOOL) devtools.build.outdated $(OUTDATED)

version: venv ## write VERSION and pyproject.toml's addresses to all files that repeat them
	@$(TOOL) devtools.build.stamp
	@$(TOOL) devtools.build.olm

lint: venv ## the linters of .pre-commit-config.yaml: ruff, mypy, import-linter, ansible-lint, yamllint, prose, generated files
	@$(BIN)/pre-commit run --all-files --hook-stage pre-push

BASE ?= origin/main
commits: ## check the subjects of the commits since BASE=origin/main: imperative, at most 72 characters
	@git -C $(or $(RANGE_OF),.) log --no-merges --reverse --format=%s $(BASE)..HEAD -- | hack/subjects.sh

hooks: venv ## install git hooks that run the linters and check commit subjects
	@$(BIN)/pre-commit install

cluster: venv ## a real kind cluster, kubeconfig at .cluster/kubeconfig; K8S=1.35 selects another version of Kubernetes
	@$(TOOL) devtools.testbed.cluster up

cluster-down: venv ## stop everything that `make cluster` started
	@$(TOOL) devtools.testbed.cluster down

cluster-status: venv ## show the state of the cluster's components
	@$(TOOL) devtools.testbed.cluster status

N ?= 10
kwok-nodes: venv ## create N=10 simulated nodes next to the real one
	@$(TOOL) devtools.testbed.cluster kwok $(N)

MINUTES ?= 25
bench: venv ## compare this operator with its peers, on kwok nodes: benchmarks/RESULTS.md; MINUTES=25 BENCH="--rounds 1 ..."
	@$(TOOL) devtools.lab.bench --minutes $(MINUTES) $(BENCH)

bench-growth: venv ## measure this operator's cost up to 10,000 jobs, on a separate cluster: benchmarks/GROWTH.md, docs/growth.svg
	@$(TOOL) devtools.lab.bench.growth $(BENCH)

chaos: venv ## faults on a stream of jobs, and what holds after them: benchmarks/CHAOS.md; CHAOS="--seed 1 --faults 1000 --minutes 40"
	@$(TOOL) devtools.lab.chaos $(CHAOS)

fuzz: venv ## generated jobs against the operator on the local cluster: FUZZ="--seed 1 --objects 10000"; benchmarks/FUZZ.md, .build/fuzz
	@$(TOOL) devtools.lab.fuzz $(FUZZ)

soak: venv ## many short jobs through one operator: SOAK="--jobs 20000"; benchmarks/SOAK.md, docs/soak.svg
	@$(TOOL) devtools.lab.soak $(SOAK)

images: venv ## build the example images and push them to the local registry; SET=full: all versions; MANIFESTS=<dir> adds the image names used there
	@$(if $(MANIFESTS),DLJOB_MANIFESTS="$(MANIFESTS)") $(TOOL) devtools.build.images build $(if $(SET),--set $(SET))

matrix: venv ## what frameworks do when processes fail, in real pods: benchmarks/matrix.csv; MATRIX="--minutes 25 --only torch2"
	@$(TOOL) devtools.lab.matrix $(MATRIX)

image: venv ## build the operator's image and push it to the local registry; BASE_IMAGE=... selects another base
	@$(TOOL) devtools.build.images build operator

OVERLAY ?= default
deploy: ## deploy the operator to the cluster of KUBECONFIG (default .cluster/kubeconfig); OVERLAY=namespaced, development
	@$(KUBECTL) apply --server-side -k deploy/kustomize/$(OVERLAY)
	@$(KUBECTL) -n dljob-system rollout status deployment/dljob-operator --timeout 300s

undeploy: ## delete the operator, the CRDs and, with them, every job
	@$(KUBECTL) delete --ignore-not-found --wait -k deploy/kustomize/$(OVERLAY)

generate: venv ## write all that follows from roles/*/vars/main.yml: crds/, watches.yaml, RBAC, roles, bundle, reference
	@$(TOOL) devtools.build.generate
	@$(TOOL) devtools.build.olm
	@$(TOOL) devtools.build.reference

crds: generate ## the same

bundle: venv ## generate deploy/olm, the OLM bundle; IMG=REGISTRY/NAME:TAG sets the operator's image
	@$(TOOL) devtools.build.olm $(if $(IMG),--image $(IMG))

SCENARIOS ?= default mxnet tensorflow caffe2 pytorch kubeflow local upgrade
molecule: venv ## the scenarios of molecule/ on kind; SCENARIOS="mxnet local" runs only these; ENGINE=image: the operator in a pod
	@# molecule's default state folder depends only on the folder's name, so two checkouts would share it; and it is not
	@# removed with the cluster
	@[ -e $${DLJOB_CLUSTER_DIR:-$(CURDIR)/.cluster}/state.json ] || rm -rf $${DLJOB_CLUSTER_DIR:-$(CURDIR)/.cluster}/molecule-state
	@MOLECULE_EPHEMERAL_DIRECTORY=$${DLJOB_CLUSTER_DIR:-$(CURDIR)/.cluster}/molecule-state \
	  PATH=$(CURDIR)/$(BIN):$$PATH molecule test $(addprefix -s ,$(SCENARIOS))

changelog: venv ## move changelogs/fragments into the section of this version; writes CHANGELOG.md
	@$(TOOL) devtools.build.release changelog

docs: venv ## generate docs/reference from the schemas and the plugins
	@$(TOOL) devtools.build.reference

docs-site: venv ## the documents as a site with search, in .build/site
	@$(TOOL) devtools.build.site

run: venv ## run the embedded engine on the cluster of KUBECONFIG (default .cluster/kubeconfig)
	@KUBECONFIG=$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig} $(BIN)/dljob-operator run --install-crds --config-namespace default

venv: .venv/ready ## create the pinned Python environment

.venv/ready: requirements.txt requirements-dev.txt requirements.yml VERSION pyproject.toml client/pyproject.toml hack/venv.sh
	@hack/venv.sh $(PYTHON)

clean: ## remove the environment and the tools' files; cluster-down stops the cluster
	@rm -rf .venv .build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
