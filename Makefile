# What a developer runs. make help lists it.
#
# It needs Go, git and make; make race also needs a C compiler on most
# systems. Everything is written to bin/ and build/.

# Variables to set on the command line: make run ARGS='--listen :9000', make fuzz FUZZTIME=2m.
ARGS       ?=
FUZZTIME   ?= 30s
RACECOUNT  ?= 2
SOAK       ?= 8h
VERSION    ?=

# A GOWORK set by the caller would change which modules are used.
unexport GOWORK

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-18s %s\n' "  $$name" "$$text"; done
	@echo
	@echo "  Set on the command line: ARGS='$(ARGS)' FUZZTIME=$(FUZZTIME) RACECOUNT=$(RACECOUNT) SOAK=$(SOAK)"

.PHONY: build
build: ## build bin/firn, as releases have it
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -tags grpcnotrace -ldflags "-s -w -X main.version=$$(sh scripts/version.sh)" -o bin/firn ./server/cmd/firn

.PHONY: run
run: ## build bin/firn and start bin/firn serve $(ARGS), with a store in build/
	@sh scripts/run.sh $(ARGS)

.PHONY: test
test: ## run the checks and tests that a change must pass, with a summary; CI=true runs all
	@sh scripts/test.sh

.PHONY: test-all
test-all: ## run all checks and tests, those that take long too
	@sh scripts/test.sh all

.PHONY: quick
quick: ## format, vet, staticcheck and the short tests of what changed: within a minute when warm
	@sh scripts/quick.sh

.PHONY: race
race: ## run the tests of all modules under the race detector, RACECOUNT times
	@sh scripts/each.sh go test -race -count=$(RACECOUNT) -timeout 2h ./...

.PHONY: fuzz
fuzz: ## run every fuzz target of all modules for FUZZTIME each
	@sh scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## measure the library, the server and their peers, for benchstat: about ten minutes
	@sh scripts/bench.sh all $(ARGS)

.PHONY: bench-core
bench-core: ## measure the library and its peers, for benchstat: about a minute; ARGS='-count 6'
	@sh scripts/bench.sh core $(ARGS)

.PHONY: soak
soak: ## run long tests for the time SOAK: faults, load, simulator and fuzz targets; from 2h on also the whole model and race
	@sh scripts/soak.sh $(SOAK)

.PHONY: vuln
vuln: ## look for known vulnerabilities in the code that Firn calls, if their database is reachable
	@sh scripts/vuln.sh

.PHONY: licenses
licenses: ## collect the licenses of everything in bin/firn, after a dependency has changed
	@cd tools && GOWORK=off go run ./licenses

.PHONY: release
release: ## make VERSION=v1.2.3: modules, binaries, packages, an image, a chart; it publishes nothing
	@sh scripts/release.sh $(VERSION)

.PHONY: clean
clean: ## remove bin/ and build/
	rm -rf bin build
