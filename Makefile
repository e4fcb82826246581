# The commands of everyday work. They need only Go. The go command fetches the tools
# of tools.mod.

GO        ?= go
TOOL      := $(GO) tool -modfile=tools.mod
FUZZTIME  ?= 60s
COUNT     ?= 20
FIGURES   := loadtest/figures
LOADS     := bench loop scale state shim notice freeze cluster record saturate overload chaos soak crash

SHELL       := bash
.SHELLFLAGS := -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help build test race fuzz bench figures lint fix gen vuln clients types verify full raced long $(LOADS:%=load-%)
.NOTPARALLEL:

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build static programs into bin/
	CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/broker ./cmd/hookworker ./cmd/agentshim

test: ## run all tests
	$(GO) test ./...

race: ## run all tests with the race detector (needs a C compiler)
	$(GO) test -race -cpu=1 ./... # one CPU: see .ci/run

fuzz: ## fuzz every target for FUZZTIME (default 60s)
	@grep -rlE --include='*_test.go' '^func Fuzz[A-Z]' . | xargs -n1 dirname | sort -u | xargs $(GO) test -list '^Fuzz' | awk '/^Fuzz/ {t[++n] = $$1} /^ok/ {for (i = 1; i <= n; i++) print $$2, t[i]; n = 0}' | \
	while read -r package target; do \
		echo "$$target in $$package"; \
		$(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "$$package" || exit 1; \
	done

bench: ## compare a call with bare NATS, and check the budgets
	$(GO) run ./loadtest bench

figures: ## measure all figures of loadtest/BENCHMARKS.md (needs an idle machine)
	@mkdir -p $(FIGURES); failed=(); \
	for run in bench account record loop shim notice state scale saturate "run $(FIGURES)/faults.yaml" overload freeze cluster; do \
		echo "=== $$run"; \
		$(GO) run ./loadtest $$run --no-fail --json $(FIGURES)/$$(basename "$${run#run }" .yaml).json || failed+=("$$run"); \
	done; \
	find $(FIGURES) -name '*.json' -size +300k -exec echo "over 300 KiB, large for a repository:" {} \; ; \
	for page in README.md loadtest/BENCHMARKS.md; do $(GO) run ./loadtest tables $(FIGURES) --into $$page || failed+=(tables); done; \
	(($${#failed[@]} == 0)) || { printf 'FAILED: %s\n' "$${failed[@]}"; exit 1; }

lint: ## run the linter
	$(TOOL) golangci-lint run ./...

fix: ## format, modernise, and apply the fixes of the linter
	$(GO) fix ./...
	$(TOOL) golangci-lint run --fix ./...
	$(GO) mod tidy

gen: ## generate all generated files again
	$(GO) generate ./...

vuln: ## look for known vulnerabilities in dependencies (uses vuln.go.dev)
	$(TOOL) govulncheck ./...

clients: ## test released coding agents with the hooks, offline (npm fetches them)
	@tried=$$($(GO) run ./cmd/e2e/clients/fetch) && HOOKFABRIC_CLIENTS=$$tried $(GO) test -count=1 -timeout=30m -parallel=4 -v ./cmd/e2e/clients
	$(GO) test -count=1 -v -run=SDK ./bus/agent/sdktest

types: ## check the types of the Python and TypeScript packages (npm fetches the checkers)
	@tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	command -v npm >/dev/null || { echo "SKIPPED: the types of the Python and TypeScript packages: no npm"; exit 0; }; \
	npm install --silent --no-audit --no-fund --prefix "$$tools" typescript@5.9 @types/node@20 pyright@1.1 || \
		{ echo "SKIPPED: the types of the Python and TypeScript packages: npm cannot fetch the checkers"; exit 0; }; \
	export PATH="$$tools/node_modules/.bin:$$PATH"; \
	for package in bus/agent/python workers/python; do pyright --project $$package || exit 1; done; \
	$(GO) test -count=1 -v -run='^TestTheJavaScriptIsMadeOfTheTypeScript$$' ./bus/agent/sdktest

verify: ## run every check that a change must pass
	.ci/run

full: verify raced long fuzz $(LOADS:%=load-%) clients types vuln ## verify and the slow tests, some as root: three hours; `make -k full` continues after a failure

raced: ## run more packages with the race detector, concurrent ones COUNT times (default 20)
	$(GO) test -race -cpu=1 -count=$(COUNT) -timeout=60m ./bus/... ./workers/... # one CPU: see .ci/run
	$(GO) test -race -timeout=60m ./cmd/e2e/fabric
	$(GO) test -race -timeout=60m ./schema/... ./cmd/agentshim/... ./cmd/broker/...

long: ## run all tests, including the slow ones
	HOOKFABRIC_LONG=1 $(GO) test -count=1 -timeout=60m ./...

$(LOADS:%=load-%): load-%:
	$(GO) run ./loadtest $*
