#!/usr/bin/env bash
# Makes a release of what is checked out:
#
#   release.sh VERSION KEY DIR     such as: release.sh v1.2.3 ~/.ssh/release dist
#
# KEY is a private SSH key. DIR, which must not be there, gets a binary for each of PLATFORMS,
# the bill of materials and licences, how it was built (an in-toto statement), SHA256SUMS of all
# of them, and its signature. docs/verifying.md says how users check it.
#
# Each binary is built twice, in two folders and with two caches, and must be the same. Known
# vulnerabilities stop the release, and so does a database of them that cannot be read;
# REHEARSAL=1, for tests, leaves them out, shares the cache, compiles without the profile, and
# says so in the version.
set -euo pipefail
version=$1 key=$(realpath "$2") dir=$(realpath -m "$3")
cd "$(dirname "$0")/.."

PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
REHEARSAL=${REHEARSAL:-}
profile=cmd/ddq/ddq.pgo
[ -z "$REHEARSAL" ] || profile=off
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || { echo "release: $version is no version such as v1.2.3" >&2; exit 2; }
[ ! -e "$dir" ] || { echo "release: $dir is there already" >&2; exit 2; }

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# repo is git of a checkout that may belong to another user.
repo() { git -c safe.directory='*' "$@"; }

if [ -n "$REHEARSAL" ]; then
	version=$version-rehearsal
elif [ -n "$(repo status --porcelain)" ]; then
	echo "release: the checkout has changes that are not committed" >&2
	exit 1
else
	tools/vulncheck.sh
fi
commit=$(repo rev-parse HEAD)

# source_of makes a folder with what is released.
source_of() {
	mkdir "$1"
	if [ -n "$REHEARSAL" ]; then
		repo ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$1"
	else
		repo archive "$commit" | tar -x -C "$1"
	fi
}

# build FOLDER PLATFORM FILE
build() {
	(cd "$1" && CGO_ENABLED=0 GOOS=${2%/*} GOARCH=${2#*/} GOFLAGS=-mod=readonly GOGC=400 go build -trimpath -buildvcs=false -pgo="$profile" -tags grpcnotrace,pebblegozstd \
		-ldflags "-s -w -buildid= -X github.com/ddq-io/ddq/cmd/node.version=$version" -o "$3" ./cmd/ddq)
}

source_of "$work/one"
source_of "$work/two"
mkdir -p "$work/out"
for platform in $PLATFORMS; do
	name=ddq_${version}_${platform/\//_}
	build "$work/one" "$platform" "$work/out/$name"
	(
		[ -n "$REHEARSAL" ] || export GOCACHE=$work/cache
		build "$work/two" "$platform" "$work/again"
	)
	cmp "$work/out/$name" "$work/again" || { echo "release: $name is another one when it is built again" >&2; exit 1; }
done

first=$work/out/ddq_${version}_$(set -- $PLATFORMS; echo "${1/\//_}")
tool() { go run -C tools/release . "$@"; }
tool sbom "$version" "$first" >"$work/out/ddq_$version.cdx.json"
tool licenses "$first" >"$work/out/licenses.md"
tool provenance "$version" "$commit" "$work"/out/ddq_* >"$work/out/ddq_$version.intoto.json"
(cd "$work/out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
ssh-keygen -q -Y sign -f "$key" -n ddq-release "$work/out/SHA256SUMS"

mkdir -p "$(dirname "$dir")"
mv "$work/out" "$dir"
ls -l "$dir"
