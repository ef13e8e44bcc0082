#!/usr/bin/env bash
# Runs every fuzz target of every package for a while: fuzz.sh TIME, as in 30s.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r package; do
	for target in $(grep -hoP --include='*_test.go' '^func \KFuzz\w+' "$package"/*_test.go | sort); do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package" </dev/null
	done
done
