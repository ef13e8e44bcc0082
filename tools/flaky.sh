#!/usr/bin/env bash
# Plays the tests of packages over and over, beside a load that it makes itself:
#
#   flaky.sh COUNT LOAD PACKAGE...
#
# Each time they come in another order. LOAD busy processes take the processors from them, and are
# gone when this ends. What failed is shown as it comes, and counted at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
count=$1 load=$2
shift 2

work=$(mktemp -d)
busy=()
trap 'kill "${busy[@]}" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
for ((i = 0; i < load; i++)); do
	timeout 2h sh -c 'while :; do :; done' &
	busy+=($!)
done

failed=0
for package in $(go list "$@"); do
	folder=$(go list -f '{{.Dir}}' "$package")
	go test -vet=off -c -o "$work/test" "$package" || exit 1
	[ -e "$work/test" ] || continue # it has none
	green=0
	for ((i = 1; i <= count; i++)); do
		if (cd "$folder" && "$work/test" -test.shuffle on -test.timeout 20m >"$work/out" 2>&1); then
			green=$((green + 1))
		else
			echo "== $package, $i of $count:"
			cat "$work/out"
		fi
	done
	rm "$work/test"
	echo "$package: $green of $count times green, beside $load busy processes"
	[ $green = "$count" ] || failed=1
done
exit $failed
