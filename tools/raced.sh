#!/usr/bin/env bash
# Prints the folders whose code starts goroutines: it is these that the race detector finds something
# in, and in what lies below them, which is compiled with it, too. The harness is not among them, nor
# is the binary, which runs as a process of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE '^\s*go (func\(|[A-Za-z_.]+\()|\.(Go|AfterFunc)\(' \
	--include='*.go' --exclude='*_test.go' actors api cluster cmd/cli cmd/node store timer |
	grep -vE '^api/(outbox|ui/browser)/' | xargs -n 1 dirname | sort -u | sed 's|^|./|'
