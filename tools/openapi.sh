#!/usr/bin/env bash
# Writes api/openapi/openapi.json from the protos and api/openapi/overlay.yaml.
set -euo pipefail
cd "$(dirname "$0")/.."

image=$(mktemp --suffix=.binpb)
trap 'rm -f "$image"' EXIT
go tool -modfile=tools/go.mod buf build -o "$image"
go run -C tools ./openapi "$image" ../api/openapi/overlay.yaml ../api/openapi/openapi.json
