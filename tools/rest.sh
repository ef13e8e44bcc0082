#!/usr/bin/env bash
# Plays the REST API of a server of its own, with requests that schemathesis makes of the description
# that is served, alone and in sequences: no answer of 500, none that the description does not know,
# and none that breaks it. EXAMPLES (50) is how many it makes of each call and in each way.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$PWD/bin/schemathesis
if ! cmp -s api/rest/played/requirements.txt "$venv/requirements.txt"; then
	python3 -m venv --clear "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r api/rest/played/requirements.txt
	cp api/rest/played/requirements.txt "$venv"
fi
ddq=$PWD/bin/ddq.rest
go build -o "$ddq" ./cmd/ddq

place=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server" && wait "$server"; } || true; rm -rf "$place"' EXIT
"$ddq" server --data "$place/data" --grpc-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 2>"$place/log" &
server=$!
url=
until [ -n "$url" ]; do
	kill -0 "$server" 2>/dev/null || { cat "$place/log" && exit 1; }
	url=$(sed -n 's/.*msg=serving .* http=\([^ ]*\).*/http:\/\/\1/p' "$place/log")
done

# Watches do not end by themselves. What it remembers of a run goes with the place.
hooks=$PWD/api/rest/played
cd "$place"
PYTHONPATH=$hooks PYTHONDONTWRITEBYTECODE=1 SCHEMATHESIS_HOOKS=hooks "$venv/bin/schemathesis" run "$url/v1/openapi.json" \
	--checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,use_after_free \
	--exclude-path-regex ':watch$' --request-timeout 60 --max-examples "${EXAMPLES:-50}" --continue-on-failure --warnings off
if grep -E 'level=ERROR|panic' "$place/log"; then
	echo "the server's log has errors" >&2
	exit 1
fi
