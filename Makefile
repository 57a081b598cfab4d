# Every target visits every module. Modules are found, so a new folder with a
# go.mod of its own needs no line here.
LEAVES := $(patsubst %/go.mod,%,$(sort $(shell find . -mindepth 2 -name go.mod -not -path '*/.*' -not -path '*/testdata/*')))
MODULES := . $(LEAVES)

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Tools are pinned, and live in a folder that git ignores.
BIN := $(CURDIR)/.bin
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)

FUZZTIME ?= 30s
BENCH ?= .
BENCHTIME ?= 1s
COUNT ?= 6
# Further arguments of go test, such as TESTFLAGS=-v.
TESTFLAGS ?=

# The race detector needs cgo and a C compiler.
RACE := $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC | cut -d' ' -f1) >/dev/null && echo -race)

# each runs a command in every module and names both.
each = @for m in $(MODULES); do echo "== $$m: "$(1); (cd $$m && $(2)); done

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo "  modules: $(MODULES)"

.PHONY: build
build: ## Compile every package
	$(call each,"go build",go build ./...)

.PHONY: test
test: race-notice ## Run all tests, under the race detector where there is a C compiler
	$(call each,"go test $(RACE)",go test $(RACE) -shuffle=on $(TESTFLAGS) ./...)

.PHONY: test-short
test-short: ## Run the tests without the race detector and without the long ones
	$(call each,"go test -short",go test -short $(TESTFLAGS) ./...)

.PHONY: race-notice
race-notice:
	@[ -n "$(RACE)" ] || echo "notice: no cgo or no C compiler here, so the tests run WITHOUT the race detector"

.PHONY: bench
bench: ## Run all benchmarks (BENCH, BENCHTIME, COUNT) and print the ratios to x/time/rate
	@mkdir -p $(BIN)
	@cd benchmarks && go build -o $(BIN)/ratios ./cmd/ratios
	@for m in $(MODULES); do \
		echo "== $$m: go test -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(COUNT)" >&2; \
		(cd $$m && go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(COUNT) -timeout 2h ./...); \
	done | tee $(BIN)/bench.out
	@$(BIN)/ratios < $(BIN)/bench.out

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME each
	@for m in $(MODULES); do cd $(CURDIR)/$$m; packages=$$(go list ./...); for p in $$packages; do \
		tests=$$(go test -list '^Fuzz' $$p); \
		for f in $$(grep '^Fuzz' <<<"$$tests" || true); do \
			echo "== $$p: $$f for $(FUZZTIME)"; \
			go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
		done; \
	done; done

.PHONY: fmt-check
fmt-check: ## Fail if a file is not gofmt'ed
	@unformatted=$$(find . -name '*.go' -not -path '*/.*' -exec gofmt -l {} +); \
	[ -z "$$unformatted" ] || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }

# Leaf modules exist to have dependencies, so the rule against them is off there.
.PHONY: lint
lint: fmt-check $(GOLANGCI) ## Run the linters of .golangci.yml
	$(call each,"golangci-lint run",$(GOLANGCI) run --config $(CURDIR)/.golangci.yml $$([ $$m = . ] || echo --disable=depguard) ./...)

$(GOLANGCI):
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(BIN)/golangci-lint $@

.PHONY: vet
vet: ## Run go vet as the other platforms see the code: 32 bits, and arm64
	$(call each,"go vet for 386",GOARCH=386 CGO_ENABLED=0 go vet ./...)
	$(call each,"go vet for arm64",GOARCH=arm64 CGO_ENABLED=0 go vet ./...)

.PHONY: test-32bit
test-32bit: ## Run the library's tests as a 32-bit program (compile them where it cannot run)
	@if [ "$$(go env GOHOSTOS)/$$(go env GOHOSTARCH)" = linux/amd64 ]; then \
		set -x; GOARCH=386 CGO_ENABLED=0 go test -short $(TESTFLAGS) ./...; \
	else \
		set -x; GOARCH=386 CGO_ENABLED=0 go test -c -o /dev/null .; \
	fi

.PHONY: tidy-check
tidy-check: ## Fail if a go.mod or go.sum is not tidy
	$(call each,"go mod tidy -diff",go mod tidy -diff)

.PHONY: cover
cover: ## Print the test coverage of each module; profiles are left in .cover/
	@mkdir -p .cover
	@for m in $(MODULES); do \
		profile=$(CURDIR)/.cover/$$(basename $$(cd $$m && pwd)).out; \
		echo "== $$m"; (cd $$m && go test -short -coverpkg=./... -coverprofile=$$profile ./... && go tool cover -func=$$profile | tail -1); \
	done
