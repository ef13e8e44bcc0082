#!/usr/bin/env bash
# Writes docs/licenses.md: what ddq is built from, and its licences.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=$(mktemp)
trap 'rm -f "$binary"' EXIT
# Without the tags of make: also what plain go build takes.
GOFLAGS=-buildvcs=false go build -o "$binary" ./cmd/ddq
page=$(go run -C tools/release . licenses "$binary")
echo "$page" >docs/licenses.md
