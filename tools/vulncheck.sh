#!/usr/bin/env bash
# Looks for known vulnerabilities that ddq's code reaches, and fails when there is one:
#
#   vulncheck.sh          source and, when it is built, bin/ddq
#
# The database is that of GOVULNDB, such as file:///var/lib/vulndb (a copy for machines that reach
# nothing), or else the public one. Exits with 3, and says so, when it cannot be read, or something
# else keeps govulncheck from looking: nothing was checked then.
set -euo pipefail
cd "$(dirname "$0")/.."

# check runs govulncheck, whose exit code is 3 for a finding and 1 for what kept it from looking.
check() {
	local code=0
	go tool -modfile=tools/release/go.mod govulncheck ${GOVULNDB:+-db "$GOVULNDB"} "$@" || code=$?
	case $code in
	0) ;;
	3)
		echo "vulncheck: ddq reaches a known vulnerability" >&2
		exit 1
		;;
	*)
		echo "vulncheck: not checked: govulncheck ended with $code, and said why above" >&2
		exit 3
		;;
	esac
}

check ./...
if [ -e bin/ddq ]; then
	check -mode binary bin/ddq
fi
