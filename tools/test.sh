#!/usr/bin/env bash
# Plays tests once, and writes what `go test -json` says of them to stdout, for gotestsum:
#
#   test.sh PACKAGE...   packages of ddq, and each module of MODULES beside them
#
# What modules say comes after what the packages do, so that no two lines are mixed.
set -uo pipefail
cd "$(dirname "$0")/.."

said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT

# play plays packages of the module in a folder.
play() {
	local folder=$1
	shift
	(cd "$folder" && exec go test -json -vet=off -toolexec "env GOGC=400" -timeout 20m ${ARGS:-} "$@")
}

# The modules are played one after the other: what they do is to wait for servers.
failed=0
modules() {
	local module failed=0
	for module in ${MODULES:-}; do
		play "$module" ./... >"$said/out" 2>"$said/err" || failed=1
		cat "$said/out" >>"$said/all.out"
		cat "$said/err" >>"$said/all.err"
	done
	return $failed
}
set -m # a process group of their own, to be ended with this one
modules &
readonly beside=$!
set +m
trap 'kill -- -$beside 2>/dev/null; rm -rf "$said"' EXIT
trap 'exit 130' INT TERM
play . -p "${AT_ONCE:-3}" "$@" || failed=1
wait $beside || failed=1
cat "$said/all.err" >&2 2>/dev/null
cat "$said/all.out" 2>/dev/null
exit $failed
