#!/usr/bin/env bash
# Installs what the named jobs need beside Go, where it is missing, through apt:
#
#   deps.sh tests   make, a C compiler (for the race detector), redis-server, PostgreSQL for
#                   the outbox, and for the SDKs node with the compiler of TypeScript, and
#                   Python with venv and pip, and for the pages a browser, and npm for axe,
#                   and promtool for the alerts
#   deps.sh faults  ip and tc, mount, mkfs.ext4, and a C compiler
#   deps.sh model   spin, and a C compiler
#   deps.sh release ssh-keygen
#   deps.sh peers   what ddq is compared with needs: beanstalkd, PostgreSQL, node with npm,
#                   Celery with its client of Redis, for the system's Python
#
# Tests start servers of their own. A service that a package would start or
# enable is kept off; what was installed before is left as it is.
set -euo pipefail

missing=()
locked=() # folders with what a lock file of npm names

# need COMMAND PACKAGE... notes the packages when the command is not there.
need() {
	local command=$1
	shift
	PATH=$PATH:/usr/sbin:/usr/local/sbin:/sbin command -v "$command" >/dev/null || missing+=("$@")
}

# need_postgres looks where Debian keeps the servers, too: off the PATH.
need_postgres() {
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || need initdb postgresql
}

# as_root runs a command as root.
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

policy=/usr/sbin/policy-rc.d

# install_quietly installs packages while a policy forbids to start services.
install_quietly() {
	if [ ! -e "$policy" ]; then
		trap 'as_root rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod +x "$policy"
	fi
	as_root apt-get update -q
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"
}

# keep_off disables the services of packages just installed.
keep_off() {
	command -v systemctl >/dev/null || return 0
	local package
	for package in "$@"; do
		case $package in
		redis-server | beanstalkd | postgresql | prometheus) as_root systemctl disable "$package" >/dev/null 2>&1 || true ;;
		esac
	done
}

# install_locked installs what the lock file of a folder names, unless it is there.
install_locked() (
	cd "$(dirname "$0")/../$1"
	cmp -s package-lock.json node_modules/installed.json && return
	echo "deps.sh: installing what $1/package-lock.json names" >&2
	npm ci --ignore-scripts --no-audit --no-fund >&2
	cp package-lock.json node_modules/installed.json
)

for job in "$@"; do
	case $job in
	tests)
		need make make
		if [ "$(go env CC)" = gcc ]; then need gcc gcc libc6-dev; fi
		need redis-server redis-server
		need_postgres
		need node nodejs
		need tsc node-typescript
		need python3 python3
		python3 -c 'import ensurepip' 2>/dev/null || need ensurepip python3-venv
		need chromium chromium fonts-dejavu-core
		need npm npm
		need promtool prometheus
		locked+=(api/ui/browser)
		;;
	faults)
		need ip iproute2
		need mount mount
		need mkfs.ext4 e2fsprogs
		need cc gcc libc6-dev
		;;
	model)
		need spin spin
		need gcc gcc libc6-dev
		;;
	release)
		need ssh-keygen openssh-client
		;;
	peers)
		need beanstalkd beanstalkd
		need_postgres
		need node nodejs
		need npm npm
		/usr/bin/python3 -c 'import celery, redis' 2>/dev/null || need celery-for-python python3-celery python3-redis
		;;
	*)
		echo "deps.sh: unknown job $job" >&2
		exit 2
		;;
	esac
done

if [ ${#missing[@]} -gt 0 ]; then
	if ! command -v apt-get >/dev/null; then
		echo "deps.sh: please install: ${missing[*]}" >&2
		exit 1
	fi
	echo "deps.sh: installing ${missing[*]}" >&2
	install_quietly "${missing[@]}" >&2
	keep_off "${missing[@]}"
fi

for folder in "${locked[@]}"; do
	install_locked "$folder"
done
