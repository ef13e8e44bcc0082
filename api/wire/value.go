package wire

import (
	"fmt"
	"strings"

	"github.com/ddq-io/ddq/actors/problem"
)

// Invalid says what is wrong with a field.
func Invalid(reason, field, format string, args ...any) *problem.Error {
	return &problem.Error{
		Kind:    problem.Invalid,
		Reason:  reason,
		Field:   field,
		Message: field + " " + fmt.Sprintf(format, args...),
	}
}

// Text makes s fit for a string field: one stray byte, in an error that was cut
// in the middle of a letter, would make the whole message unreadable.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Enum looks up v in a table of the enum's values by those of the store. One that this
// version does not know is unspecified.
func Enum[W ~int32, V ~uint8](table []W, v V) W {
	if int(v) < len(table) {
		return table[v]
	}
	return 0
}

// ReadEnum finds the position of w in such a table.
func ReadEnum[V ~uint8, W ~int32](table []W, w W, field string) (V, *problem.Error) {
	for i, known := range table {
		if known == w {
			return V(i), nil
		}
	}
	return 0, Invalid("BAD_ENUM", field, "has no value %d", w)
}
