#!/usr/bin/env bash
# Fails where something that is derived is not what it is derived from: code
# generated from the protos, module files, formatting.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0

# complain says what is wrong and what to do; the rest is still checked.
complain() {
	echo "verify: $*" >&2
	failed=1
}

# git of a checkout that may belong to another user.
repo() {
	git -c safe.directory='*' "$@"
}

go tool -modfile=tools/go.mod buf lint || complain "the protos break a rule"
go tool -modfile=tools/go.mod buf generate
tools/openapi.sh
tools/sdktypes.sh
tools/licenses.sh
derived=('*.pb.go' '*.pb.gw.go' api/openapi/openapi.json api/sdk/typescript/src/types.gen.ts api/sdk/python/ddq/_types.py docs/licenses.md)
changed=$(repo status --porcelain -- "${derived[@]}")
if [ -n "$changed" ]; then
	repo --no-pager diff --stat -- "${derived[@]}" >&2
	complain "generated code is not current: run make generate and commit it"$'\n'"$changed"
fi

for module in . api/outbox api/ui/browser bench/peers deploy/check tools tools/release tools/test; do
	(cd "$module" && go mod verify) || complain "$module: a module is not what go.sum says"
	(cd "$module" && go mod tidy -diff) || complain "$module: run go mod tidy"
done

# Links of pages to what is in the repository. Code is no link: x[T]("y").
dead=$(repo ls-files '*.md' | while read -r page; do
	{ sed -E '/^```/,/^```/d; s/`[^`]*`//g' "$page" | grep -oE '\]\([^)]+\)' || true; } | sed -E 's/^\]\(//; s/\)$//; s/#.*//' | { grep -vE '^([a-z]+:|$)' || true; } |
		while read -r to; do [ -e "$(dirname "$page")/$to" ] || echo "$page: $to"; done
done)
if [ -n "$dead" ]; then
	complain "links lead nowhere"$'\n'"$dead"
fi

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	complain "run gofmt -w on"$'\n'"$unformatted"
fi

exit $failed
