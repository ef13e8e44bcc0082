#!/usr/bin/env bash
# Writes the types of the TypeScript and Python SDKs from api/openapi/openapi.json.
set -euo pipefail
cd "$(dirname "$0")/.."

go run -C tools ./sdktypes ../api/openapi/openapi.json ../api/sdk/typescript/src/types.gen.ts ../api/sdk/python/ddq/_types.py
