// Package sdk has the SDKs of other languages, which speak REST: typescript and python.
// Their types are written from api/openapi/openapi.json by `make generate`, and
// tools/sdks.sh builds their packages.
//
// The tests here are those of both. They build the packages, install them into empty
// directories, and play the cases of cases.json against a real server: each through a
// driver beside the SDK, which makes one call a line of JSON. So an SDK has to do what
// the other does, and what a case says once holds for both. values.json says what becomes
// of whatever users may hand to an SDK; the one for Go plays it, too.
package sdk
