#!/usr/bin/env bash
# Writes docs/licenses.md: what ddq is built from, and its licences.
set -euo pipefail
cd "$(dirname "$0")/.."

# Without the tags of make: also what plain go build takes.
page=$(GOFLAGS=-buildvcs=false go run -C tools/release . licenses ../../cmd/ddq)
echo "$page" >docs/licenses.md
