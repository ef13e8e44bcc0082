# Every target that needs more than Go says so and installs it. `make help` lists them.

GO      ?= go
BIN     := bin/ddq
ARGS    ?=
# The packages that wait the longest begin first, and there is one more at a time than processors:
# tests wait for servers and for clocks for a good part of their time.
PKGS    ?= ./actors ./api/service ./cmd/ddq ./store/redisstore ./store/pebblestore ./cluster ./...
JOBS    ?= $(shell expr $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1)
COUNT   ?= 3
STORES  ?= embedded,redis-everysec,redis-always,redis-sentinel,redis-cluster,redis-sentinel-fast,redis-sentinel-all,redis-cluster-fast
SOAK    ?= 1h
FUZZTIME ?= 20s
SEEDS   ?= 2000
SEED    ?=
WORKLOADS ?= throughput lateness herd restart

# What make builds is stripped, and without what ddq does not use of gRPC (debug pages) and
# Pebble (zstd in C). GOGC is the compiler's. LDFLAGS= keeps what debuggers need.
LDFLAGS ?= -s -w
BUILD   := GOGC=400 $(GO) build -tags grpcnotrace,pebblegozstd -ldflags "$(LDFLAGS)"

BUF     := $(GO) tool -modfile=tools/go.mod buf
LINT    := $(GO) tool -modfile=tools/lint/go.mod golangci-lint

.DEFAULT_GOAL := help
.PHONY: help build run demo test race e2e faults soak mutants model sim fuzz bench bench-go bench-peers lint lint-api generate verify fmt deps clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/ddq
	$(BUILD) -o $(BIN) ./cmd/ddq

run: build ## start a server on the embedded store; ARGS="--data dir ..." adds flags
	$(BIN) server $(ARGS)

demo: build ## server, producer and worker in one process, before your eyes
	$(BIN) demo $(ARGS)

test: deps ## every test of every module, with the race detector; PKGS=./timer/... narrows it
	cd bench/peers && $(GO) vet ./...
	cd deploy/check && $(GO) test ./...
	$(GO) test -race -p $(JOBS) $(PKGS)

race: deps ## the tests COUNT (3) times over, in random order
	$(GO) test -race -count=$(COUNT) -shuffle=on $(PKGS)

e2e: deps ## only the tests of the whole program
	$(GO) test -race -count=1 ./cmd/...

faults: build ## break servers, stores, workers, disks, networks and clocks on purpose: a short round of each, on one store (SEED says which)
	tools/deps.sh tests faults
	$(BIN) bench faults --store $(STORES) --each-once --for 6s --rate 150 --at-once 4 --seed $(or $(SEED),1) $(ARGS)

soak: build ## the same over and over for an hour (SOAK), with a report and a picture in bench/results
	tools/deps.sh tests faults
	$(BIN) bench faults --store $(STORES) --each-once --for 20s --at-once 2 --seed $(or $(SEED),1) --soak $(SOAK) --report bench/results/soak $(ARGS)

mutants: deps ## bugs put into ddq on purpose: the rounds of faults must find each; a quarter of an hour, ARGS=name plays one
	$(GO) run ./bench/mutants $(ARGS)

model: ## every state of a shard's hand-over, with spin; half a minute
	tools/deps.sh model
	cluster/model/check.sh

sim: ## fleets in simulated time, with faults: SEEDS (2000) runs, and some of them again; SEED=n replays one with its trace
	GOGC=400 $(GO) test -count=1 -timeout 30m -v -run '^TestSimulation$(if $(SEED),,(Replays)?)$$' ./actors $(if $(SEED),-sim.seed $(SEED),-sim.seeds $(SEEDS) -sim.again 50) $(ARGS)

fuzz: ## every fuzz target for FUZZTIME (20s)
	tools/fuzz.sh $(FUZZTIME)

bench: deps build ## ddq bench: WORKLOADS on the embedded store, and on Redis
	for w in $(WORKLOADS); do for s in embedded redis-everysec; do \
		$(BIN) bench $$w --store $$s $(ARGS) || exit 1; done; done

bench-go: ## the benchmarks next to the code
	$(GO) test -run '^$$' -bench . -benchtime 200ms $(PKGS)

bench-peers: deps build ## the same workloads on asynq, River, NATS and beanstalkd, side by side
	tools/deps.sh peers
	cd bench/peers && $(BUILD) -o ../../bin/peers . && ../../bin/peers --ddq-bin ../../$(BIN) $(ARGS)

lint: ## golangci-lint, which also holds the import table; its first build takes minutes
	$(LINT) run --allow-parallel-runners ./...

lint-api: ## spectral over the description of the REST API; needs node 20
	npx --yes @stoplight/spectral-cli@6.16.3 lint --ruleset api/openapi/.spectral.yaml api/openapi/openapi.json

generate: ## write the generated code, and the description of the REST API, anew
	$(BUF) generate
	tools/openapi.sh

verify: ## prove that generated code, module files and formatting are current
	tools/verify.sh

fmt: ## format the code
	gofmt -l -w .

deps: ## install what the tests need beside Go: a C compiler and redis-server
	tools/deps.sh tests

clean: ## remove what was built
	rm -rf bin
