# The commands of everyday work. They need Go and nothing else; tools come from
# tools.mod by themselves.

GO        ?= go
TOOL      := $(GO) tool -modfile=tools.mod
FUZZTIME  ?= 60s
COUNT     ?= 20
FIGURES   := loadtest/figures
LOADS     := bench loop scale state shim notice freeze cluster record saturate overload chaos soak crash

SHELL       := bash
.SHELLFLAGS := -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help build test race fuzz bench figures lint fix gen vuln clients verify full raced long $(LOADS:%=load-%)
.NOTPARALLEL:

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the commands into bin/, static: agentshim starts once per tool call
	CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/broker ./cmd/hookworker ./cmd/agentshim

test: ## run all tests
	$(GO) test ./...

race: ## run all tests under the race detector (needs a C compiler)
	$(GO) test -race ./...

fuzz: ## fuzz every target for FUZZTIME (60s)
	@grep -rlE --include='*_test.go' '^func Fuzz[A-Z]' . | xargs -n1 dirname | sort -u | xargs $(GO) test -list '^Fuzz' | awk '/^Fuzz/ {t[++n] = $$1} /^ok/ {for (i = 1; i <= n; i++) print $$2, t[i]; n = 0}' | \
	while read -r package target; do \
		echo "$$target in $$package"; \
		$(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "$$package" || exit 1; \
	done

bench: ## measure a call against what it could cost at least, and check the budgets
	$(GO) run ./loadtest bench

figures: ## measure all that BENCHMARKS.md shows (wants a machine that does nothing else)
	@mkdir -p $(FIGURES); failed=(); \
	for run in bench record loop shim notice state scale saturate "run $(FIGURES)/faults.yaml" overload freeze cluster; do \
		echo "=== $$run"; \
		$(GO) run ./loadtest $$run --no-fail --json $(FIGURES)/$$(basename "$${run#run }" .yaml).json || failed+=("$$run"); \
	done; \
	find $(FIGURES) -name '*.json' -size +300k -exec echo "over 300 KiB, large for a repository:" {} \; ; \
	$(GO) run ./loadtest tables $(FIGURES) --into BENCHMARKS.md || failed+=(tables); \
	(($${#failed[@]} == 0)) || { printf 'FAILED: %s\n' "$${failed[@]}"; exit 1; }

lint: ## run the linter
	$(TOOL) golangci-lint run ./...

fix: ## format, modernise and mend what the linter can mend
	$(GO) fix ./...
	$(TOOL) golangci-lint run --fix ./...
	$(GO) mod tidy

gen: ## write the generated files anew
	$(GO) generate ./...

vuln: ## look for known vulnerabilities in what is used (asks vuln.go.dev)
	$(TOOL) govulncheck ./...

clients: ## try released coding agents with the hooks, offline (npm fetches them)
	@tried=$$($(GO) run ./cmd/e2e/clients/fetch) && HOOKFABRIC_CLIENTS=$$tried $(GO) test -count=1 -timeout=30m -parallel=4 -v ./cmd/e2e/clients
	$(GO) test -count=1 -v -run=SDK ./bus/client/typescript

verify: ## all that must hold before a change is taken
	.ci/run

full: verify raced long fuzz $(LOADS:%=load-%) clients vuln ## verify, and what takes longer or needs root: three hours; `make -k full` goes on after a failure

raced: ## run under the race detector what verify does not, and what runs side by side COUNT times (20)
	$(GO) test -race -count=$(COUNT) -timeout=60m ./bus/... ./workers/...
	$(GO) test -race -timeout=60m -skip='^TestReadme$$' .
	$(GO) test -race -timeout=60m ./schema/... ./cmd/agentshim/... ./cmd/broker/...

long: ## run all tests in their long form
	HOOKFABRIC_LONG=1 $(GO) test -count=1 -timeout=60m ./...

$(LOADS:%=load-%): load-%:
	$(GO) run ./loadtest $*
