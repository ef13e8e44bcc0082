#!/usr/bin/env bash
# Writes the profile by which ddq is compiled, cmd/ddq/ddq.pgo, anew: what a server does
# under the workloads of ddq bench, on the embedded store and on Redis. Half a minute.
# The profile holds names of functions: it stays good while code changes around them.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly OUT=$PWD/cmd/ddq/ddq.pgo
readonly GRPC=127.0.0.1:19190 HTTP=127.0.0.1:19180 PPROF=127.0.0.1:19160 REDIS=19179

work=$(mktemp -d /tmp/ddq-profile.XXXXXX)
started=()
stop() {
	for pid in "${started[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	started=()
}
trap 'stop; rm -rf "$work"' EXIT
go build -trimpath -pgo=off -tags grpcnotrace,pebblegozstd -o "$work/ddq" ./cmd/ddq
cd "$work"

# profile NAME WORKLOAD FLAGS...: of the server that is up, while the bench drives it
profile() {
	local name=$1
	shift
	curl -fsS -o "$name.pprof" "http://$PPROF/debug/pprof/profile?seconds=5" &
	local reading=$!
	./ddq bench "$@" --addr "$GRPC" >/dev/null
	wait "$reading"
}

# serve NAME FLAGS...: profiles of a server with these flags
serve() {
	local name=$1
	shift
	./ddq server --grpc-addr "$GRPC" --http-addr "$HTTP" --pprof-addr "$PPROF" "$@" 2>"$name.log" &
	started+=($!)
	curl -fs --retry 50 --retry-delay 1 --retry-connrefused -o /dev/null "http://$HTTP/readyz"
	profile "$name-batch" throughput --mode batch --tasks 800000
	profile "$name-single" throughput --mode single --tasks 150000
	stop
}

serve embedded --data "$work/data"
redis-server --port "$REDIS" --save '' --appendonly yes --maxmemory-policy noeviction --dir "$work" >/dev/null &
started+=($!)
serve redis --store "redis://127.0.0.1:$REDIS"
go tool pprof -proto ./*.pprof >"$OUT" 2>/dev/null
ls -l "$OUT"
