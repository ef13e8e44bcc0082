#!/usr/bin/env bash
# Builds the packages of the TypeScript and Python SDKs into a directory: a tarball as
# `npm pack` makes it, a wheel and an sdist. Built again they are the same bytes.
set -euo pipefail
out=$(realpath "${1:?usage: sdks.sh DIRECTORY}")
cd "$(dirname "$0")/.."

package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT

tsc --project api/sdk/typescript --outDir "$package/package/dist"
cp api/sdk/typescript/{package.json,README.md} LICENSE "$package/package"
version=$(sed -n 's/.*"version": "\(.*\)".*/\1/p' api/sdk/typescript/package.json)
tar --directory "$package" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@0 --create package |
	gzip --no-name >"$out/ddq-io-ddq-$version.tgz"

cd api/sdk/python
python3 -B -c 'import sys, build_backend as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])' "$out"
