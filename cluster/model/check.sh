#!/usr/bin/env bash
# Checks every run of the model with spin: the rules as they are must hold under
# each mix of faults, and every rule taken away must be missed. Takes half a minute.
set -euo pipefail
model=$(cd "$(dirname "$0")" && pwd)/handover.pml
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# explore FLAG... searches all states, and leaves what spin says in out.
explore() {
	rm -f pan* ./*.trail
	spin -a "$@" "$model" >out
	gcc -w -O2 -DSAFETY -DNOREDUCE -DNOFAIR -o pan pan.c
	./pan -m100000 -w24 -n >out
	grep -q 'errors: ' out || { cat out; exit 1; }
}

states() { awk '/states, stored/ {print $1}' out; }

# holds FLAG... fails unless no state breaks a property, and every state was seen.
holds() {
	explore "$@"
	if ! grep -q 'errors: 0' out || grep -Eq 'not completed|max search depth' out; then
		spin -t -p -g "$@" "$model" | tail -n 60
		grep 'pan:' out
		echo "model: a property does not hold with: $*" >&2
		exit 1
	fi
	printf 'holds   %9d states  %s\n' "$(states)" "$*"
}

# fails RULE FLAG... fails unless a property breaks once a rule is taken away.
fails() {
	explore "-D$@"
	if grep -q 'errors: 0' out; then
		echo "model: nothing breaks with $*" >&2
		exit 1
	fi
	printf 'broken  %9d states  %s: %s\n' "$(states)" "$*" "$(grep -m1 -o 'assertion violated.*' out)"
}

holds -DTRIES=1 -DEXTENDS=0
holds -DCRASHES=0
holds -DCRASHES=0 -DFLIPS=0 -DGUESSES=1
holds -DFLIPS=0
holds -DEXPIRIES=0 -DEXTENDS=0
holds -DREWINDS=1 -DLOSSES=0 -DEXTENDS=0 -DCRASHES=0 -DEXPIRIES=0

fails NO_EPOCH
fails NO_NONCE -DREWINDS=1 -DLOSSES=0 -DEXTENDS=0 -DCRASHES=0
fails NO_STATE -DGUESSES=1 -DCRASHES=0 -DFLIPS=0
fails NO_TOKEN -DCRASHES=0 -DFLIPS=0
fails NO_RECOVER -DCRASHES=0 -DFLIPS=0
fails NO_RETURN -DCRASHES=0 -DEXTENDS=0
