package actors

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

const maxTopicBytes = 128

// CheckTopicName allows the full name of a topic: what CheckName allows, in the default namespace or
// behind another one.
func CheckTopicName(field, full string) *problem.Error {
	namespace, name := store.SplitName(full)
	if namespace == store.DefaultNamespace && name != full || !store.IsNamespace(namespace) {
		return badName(field)
	}
	return CheckName(field, name)
}

// CheckName allows what store keys and file names can hold: [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
func CheckName(field, name string) *problem.Error {
	if name == "" {
		return problem.BadField(field, "BAD_NAME", "%s is required", field)
	}
	if len(name) > maxTopicBytes {
		return problem.BadField(field, "NAME_TOO_LONG", "%s has %d bytes; at most %d are allowed", field, len(name), maxTopicBytes)
	}
	for i := range len(name) {
		if !isAlnum(name[i]) && (i == 0 || name[i] != '.' && name[i] != '_' && name[i] != '-') {
			return badName(field)
		}
	}
	return nil
}

func badName(field string) *problem.Error {
	return problem.BadField(field, "BAD_NAME", "%s must match [A-Za-z0-9][A-Za-z0-9._-]*", field)
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
