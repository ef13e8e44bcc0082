# Every target that needs more than Go says so and installs it. `make help` lists them.

GO      ?= go
BIN     := bin/ddq
# The binary that tests start, built once for all packages.
TESTBIN := bin/ddq-test
ARGS    ?=
# The packages that wait the longest begin first. There is one more at a time than processors: they
# wait for servers for a good part of their time.
PKGS    ?= ./actors ./api/service ./cmd/ddq ./store/redisstore ./store/pebblestore ./cluster ./...
JOBS    ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
AT_ONCE  = $(shell expr $(JOBS) + 1)
# The modules of their own, which are tested with ddq, but not when PKGS narrows it.
MODULES ?= $(if $(filter file,$(origin PKGS)),api/outbox api/ui/browser bench/peers deploy/check)
# The packages with goroutines of their own: it is these that the race detector finds something in.
RACED   ?= $(if $(filter file,$(origin PKGS)),$(shell tools/raced.sh),$(PKGS))
# Packages whose tests have fake time. The race detector has one context for all timers of a bubble
# (bubble.timers.raceCtx in Go's runtime), and breaks when two threads run some of them at once: it
# needs -cpu 1 there. The others are tested beside them.
BUBBLES  = $(shell $(GO) list -f '{{range .TestImports}}{{$$.ImportPath}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$$.ImportPath}} {{.}}{{"\n"}}{{end}}' $(RACED) | awk '$$2 == "testing/synctest" && !seen[$$1]++ { print $$1 }')
OTHERS   = $(filter-out $(BUBBLES),$(shell $(GO) list $(RACED)))
# A program with the race detector sleeps for a second at its end, to hear of goroutines that are
# left. The tests fail by goroutines that are left. The detector is in C.
RACE     = CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -race
# How tests are compiled, here and in tools/test.sh: the compiler with more garbage, the tests with
# what is usual; vet is lint's, which asks more of the same code.
COMPILE := -vet=off -toolexec "env GOGC=400"
COUNT   ?= 1
LOAD    ?= 4
STORES  ?= embedded,redis-everysec,redis-always,redis-sentinel,redis-cluster,redis-sentinel-fast,redis-sentinel-all,redis-cluster-fast
SOAK    ?= 1h
FUZZTIME ?= 20s
SEEDS   ?= 2000
SEED    ?=
FAULTS  ?=
WORKLOADS ?= throughput lateness herd restart

# What make builds and tests is without what ddq does not use of gRPC (debug pages) and Pebble
# (zstd in C), and as releases are: without C, and without the paths of this machine. So
# everything is compiled once, and once more for the race detector. What it builds is stripped:
# LDFLAGS= keeps what debuggers need. GOGC is the compiler's. ddq itself is compiled by a profile
# of what it does under load.
export CGO_ENABLED ?= 0
export GOFLAGS := $(GOFLAGS) -trimpath -tags=grpcnotrace,pebblegozstd
LDFLAGS ?= -s -w
BUILD   := GOGC=400 $(GO) build -ldflags "$(LDFLAGS)"
PROFILE := -pgo=cmd/ddq/ddq.pgo

BUF     := $(GO) tool -modfile=tools/go.mod buf
LINT    := $(GO) tool -modfile=tools/lint/go.mod golangci-lint
# Counts tests, and says which were skipped and why.
SUM     := $(GO) tool -modfile=tools/test/go.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg

.DEFAULT_GOAL := help
.PHONY: help build outbox pictures run demo test race race-all race-bubbles race-others flaky e2e faults thorough soak mutants model sim long long-bubbles long-others fuzz bench bench-go profile bench-peers lint lint-api generate verify vulncheck release-check fmt sdks deps clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/ddq
	$(BUILD) $(PROFILE) -o $(BIN) ./cmd/ddq

outbox: ## build bin/ddq-outbox, which ddq outbox runs
	cd api/outbox && $(BUILD) -o ../../bin/ddq-outbox ./cmd/ddq-outbox

pictures: deps ## take the pictures of docs/ui.md anew
	cd api/ui/browser && $(GO) test -count=1 -run '^TestPictures$$' -pictures $(CURDIR)/docs/pictures .

run: build ## start a server on the embedded store; ARGS="--data dir ..." adds flags
	$(BIN) server $(ARGS)

demo: build ## server, producer and worker in one process, before your eyes
	$(BIN) demo $(ARGS)

test: deps ## every test of every module; PKGS=./timer/... narrows it, ARGS="-run TestX -count=1" go to go test
	GOGC=400 $(GO) build -o $(TESTBIN) ./cmd/ddq
	DDQ_TEST_BIN=$(CURDIR)/$(TESTBIN) MODULES="$(MODULES)" AT_ONCE=$(AT_ONCE) ARGS="$(ARGS)" $(SUM) --raw-command -- tools/test.sh $(PKGS)

race: deps ## what has goroutines of its own, with the race detector and smaller doses; PKGS narrows it
	$(MAKE) --no-print-directory -j 2 race-bubbles race-others DOSE=-short

race-all: deps ## every test of ddq with the race detector, COUNT times over, in random order; PKGS narrows it
	$(MAKE) --no-print-directory -j 2 race-bubbles race-others RACED="$(PKGS)" DOSE="-count=$(COUNT) -shuffle=on"

race-bubbles:
	$(if $(BUBBLES),$(RACE) $(COMPILE) $(DOSE) -timeout 40m -cpu 1 -p $(JOBS) $(BUBBLES))

race-others:
	GOGC=400 $(GO) build -o $(TESTBIN) ./cmd/ddq
	$(if $(OTHERS),DDQ_TEST_BIN=$(CURDIR)/$(TESTBIN) $(RACE) $(COMPILE) $(DOSE) -timeout 40m -p $(AT_ONCE) $(OTHERS))

flaky: deps ## the tests of PKGS COUNT times beside LOAD (4) busy processes: make flaky COUNT=20 PKGS=./store/redisstore
	GOGC=400 $(GO) build -o $(TESTBIN) ./cmd/ddq
	DDQ_TEST_BIN=$(CURDIR)/$(TESTBIN) tools/flaky.sh $(COUNT) $(LOAD) $(PKGS)

e2e: deps ## only the tests of the whole program
	$(RACE) -count=1 ./cmd/...

faults: build ## break servers, stores, workers, disks, networks and clocks on purpose: a short round of each, on one store (SEED says which); FAULTS=herd,drain plays these, SDKS=python,typescript has workers in these, and an outbox, too
	tools/deps.sh tests faults
	$(if $(SDKS),tools/sdks-unpacked.sh bin/sdks && $(MAKE) outbox)
	$(BIN) bench faults --store $(STORES) $(if $(FAULTS),--faults $(FAULTS)) $(if $(SDKS),--sdks $(SDKS) --outbox bin/ddq-outbox) --each-once --for 6s --rate 150 --at-once 4 --seed $(or $(SEED),1) $(ARGS)

thorough: ## what .ci/run has no time for: every test with the race detector, ten thousand seeds, longer doses of tests, every fault, every mutant; some hours
	$(MAKE) race-all
	$(MAKE) sim SEEDS=10000
	$(MAKE) long
	$(MAKE) faults SDKS=python,typescript
	$(MAKE) mutants

soak: build outbox ## the same over and over for an hour (SOAK), with a report and a picture in bench/results; a day of ten thousand schedules; and relays of an outbox, killed 100 times
	tools/deps.sh tests faults
	GOGC=400 $(GO) test -count=1 -timeout 1h -v -run '^TestSchedulesGoAsTheirModels$$' ./actors -schedules.n 10000 -schedules.hours 24
	cd api/outbox && $(GO) test -count=1 -timeout 1h -v -run '^TestKilledRelaysMakeOneTaskOfARow$$' . -outbox.kills 100
	tools/sdks-unpacked.sh bin/sdks
	$(BIN) bench faults --store $(STORES) --sdks python,typescript --outbox bin/ddq-outbox --each-once --for 20s --at-once 2 --seed $(or $(SEED),1) --soak $(SOAK) --report bench/results/soak $(ARGS)

mutants: deps ## bugs put into ddq on purpose: the rounds of faults must find each; a quarter of an hour, ARGS=name plays one
	$(GO) run ./bench/mutants $(ARGS)

model: ## every state of a shard's hand-over, with spin, and of the relay between shards; a minute
	tools/deps.sh model
	cluster/model/check.sh
	$(GO) test -count=1 ./store/relaymodel -model.whole

sim: ## fleets in simulated time, with faults: SEEDS (2000) runs, and some of them again; SEED=n replays one with its trace
	GOGC=400 $(GO) test -count=1 -timeout 30m -v -run '^TestSimulation$(if $(SEED),,(Replays|Twins)?)$$' ./actors $(if $(SEED),-sim.seed $(SEED),-sim.seeds $(SEEDS) -sim.again 50 -sim.twins 20) $(ARGS)

# What it plays is beside what `make test` plays: other seeds, more rounds, later times.
long: deps ## longer doses of tests that play seeds, rounds or hours, with the race detector; some minutes
	$(MAKE) --no-print-directory -j 2 long-bubbles long-others

long-bubbles:
	$(RACE) $(COMPILE) -cpu 1 -count=1 -timeout 30m -run '^TestSimulation$$' ./actors -sim.first 5 -sim.seeds 16
	$(RACE) $(COMPILE) -cpu 1 -count=1 -run '^TestUseMeetsTheClosing$$' ./actors -closing.rounds 20
	$(RACE) $(COMPILE) -cpu 1 -count=1 -run '^Test(Schedules|Workflows)GoAsTheirModels$$' ./actors -schedules.hours 3 -workflows 1000
	$(RACE) $(COMPILE) -cpu 1 -count=1 -run '^TestDayOfTasksIsNeverEarly$$' ./timer -timer.hours 24
	$(GO) test $(COMPILE) -count=1 -timeout 60m -run '^TestOracle$$' ./timer/timetable -oracle.share 1 -oracle.whole

long-others:
	GOGC=400 $(GO) build -o $(TESTBIN) ./cmd/ddq
	DDQ_TEST_BIN=$(CURDIR)/$(TESTBIN) DDQ_TEST_SPLIT=32s $(RACE) $(COMPILE) -count=1 -run '^TestNetworkFaultsLoseNothing$$' ./cmd/ddq
	$(RACE) $(COMPILE) -count=1 -run '^TestCrashLosesNothingAcknowledged$$' ./store/pebblestore -crash.first 2 -crash.seeds 10
	$(GO) test $(COMPILE) -count=1 -run '^TestTaskIsDeliveredAtItsMillisecond$$' ./api/service -service.farthest 49h
	$(GO) test $(COMPILE) -count=1 -run '^Test(Conformance|Cells)$$' ./store/sealstore -sealed.stores embedded,redis
	$(GO) test $(COMPILE) -count=1 -run '^TestALargeWorkflow$$' ./cmd/cli -workflow.steps 10000
	tools/rest.sh

fuzz: ## every fuzz target for FUZZTIME (20s)
	tools/fuzz.sh $(FUZZTIME)

bench: deps build ## ddq bench: WORKLOADS on the embedded store, and on Redis
	for w in $(WORKLOADS); do for s in embedded redis-everysec; do \
		$(BIN) bench $$w --store $$s $(ARGS) || exit 1; done; done

bench-go: ## the benchmarks next to the code
	$(GO) test -run '^$$' -bench . -benchtime 200ms $(PKGS)

profile: deps ## measure anew by which profile ddq is compiled
	tools/profile.sh

bench-peers: deps build ## the same workloads on asynq, River, NATS and beanstalkd, schedules on BullMQ, workflows on BullMQ and Celery, side by side
	tools/deps.sh peers
	cd bench/peers && $(BUILD) -o ../../bin/peers . && ../../bin/peers --ddq-bin ../../$(BIN) $(ARGS)

lint: ## golangci-lint, which also holds the import table, and vet of the modules; its first build takes minutes
	$(LINT) run --allow-parallel-runners ./...
	cd api/outbox && $(GO) tool -modfile=../../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...
	for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done

lint-api: ## spectral over the description of the REST API; needs node 20
	npx --yes @stoplight/spectral-cli@6.16.3 lint --ruleset api/openapi/.spectral.yaml api/openapi/openapi.json

generate: ## write the generated code, the description of the REST API and the types of the SDKs anew
	$(BUF) generate
	tools/openapi.sh
	tools/sdktypes.sh
	tools/licenses.sh

verify: ## prove that generated code, module files and formatting are current
	tools/verify.sh

vulncheck: ## known vulnerabilities that the code reaches, from the database at GOVULNDB
	tools/vulncheck.sh

release-check: ## rehearse a release: build it twice, sign it with a key made for it, verify it, change a byte
	tools/deps.sh release
	cd tools/release && $(GO) test -count=1 ./...

fmt: ## format the code
	gofmt -l -w .

sdks: deps ## build the packages of the TypeScript and Python SDKs into bin
	mkdir -p bin && tools/sdks.sh bin

deps: ## install what the tests need beside Go: a C compiler, redis-server, PostgreSQL, node, Python, promtool, a browser and axe
	tools/deps.sh tests

clean: ## remove what was built
	rm -rf bin
