#!/usr/bin/env bash
# Puts the TypeScript and Python SDKs into a directory as programs beside them import them, with the
# values that their tests hand in: what rounds of faults with --sdks have.
set -euo pipefail
out=${1:?usage: sdks-unpacked.sh DIRECTORY}
mkdir -p "$out"
out=$(realpath "$out")
cd "$(dirname "$0")/../api/sdk"

rm -rf "$out/python" "$out/typescript"
mkdir -p "$out/python" "$out/typescript"
cp -r python/{ddq,values.py} "$out/python"
tsc --project typescript --outDir "$out/typescript/dist"
cp typescript/{package.json,values.mjs} "$out/typescript"
