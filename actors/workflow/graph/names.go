package graph

import (
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/workflow/refusal"
)

// CheckID refuses what cannot be the id of a workflow that is nobody's child.
func CheckID(id string) *refusal.Error {
	if id == "" || len(id) > MaxID {
		return refusal.New(refusal.BadName, "id", "id has %d characters; 1 to %d are allowed", len(id), MaxID)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' || id[i] == '/' {
			return refusal.New(refusal.BadName, "id", "id must be visible ASCII without spaces and slashes")
		}
	}
	return nil
}

// IsStepName reports whether a step, or a signal, may be called so.
func IsStepName(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// UnitName is the name of a step, with the number of the copy where it has copies.
func UnitName(step string, number int) string {
	if number == 0 {
		return step
	}
	return step + "#" + strconv.Itoa(number)
}

// StepOf is the name of the step of a unit.
func StepOf(unit string) string {
	if at := strings.LastIndexByte(unit, '#'); at > strings.LastIndexByte(unit, '.') {
		return unit[:at]
	}
	return unit
}

// GrownName is the full name of a step that grew from another one.
func GrownName(parent string, number int, name string) string {
	return UnitName(parent, number) + "." + name
}
