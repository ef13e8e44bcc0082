package problem

import (
	"fmt"
	"time"
)

// Bound is a number that a request or a setting gives, and the range that works.
type Bound struct {
	field   string // of a request, in wire spelling; empty when only a setting
	setting string // of a node, in kebab case; empty when only a field

	v, least, most int64
	isSpan         bool // the three are nanoseconds
}

// Count is a bound of a plain number.
func Count[T int | int64](field, setting string, v, least, most T) Bound {
	return Bound{field: field, setting: setting, v: int64(v), least: int64(least), most: int64(most)}
}

// Span is a bound of a duration.
func Span(field, setting string, v, least, most time.Duration) Bound {
	return Bound{field: field, setting: setting, v: int64(v), least: int64(least), most: int64(most), isSpan: true}
}

// Holds reports whether the number is in the range.
func (b *Bound) Holds() bool { return b.least <= b.v && b.v <= b.most }

// invalid is the error for a request. Its spans are in milliseconds.
func (b *Bound) invalid() *Error {
	least, most := b.least, b.most
	if b.isSpan {
		least, most = time.Duration(least).Milliseconds(), time.Duration(most).Milliseconds()
	}
	return BadField(b.field, "OUT_OF_RANGE_FIELD", "%s must be %d to %d", b.field, least, most)
}

// Unusable is the error for a setting.
func (b *Bound) Unusable() *SettingError {
	if b.isSpan {
		least, most := time.Duration(b.least), time.Duration(b.most)
		return &SettingError{b.setting, time.Duration(b.v).String(), fmt.Sprintf("%v to %v", least, most)}
	}
	return &SettingError{b.setting, fmt.Sprint(b.v), fmt.Sprintf("%d to %d", b.least, b.most)}
}

// FirstInvalid is the error for the first of bounds that does not hold, or nil.
func FirstInvalid(bounds []Bound) *Error {
	for i := range bounds {
		if !bounds[i].Holds() {
			return bounds[i].invalid()
		}
	}
	return nil
}

// SettingError is a setting of Config that cannot work.
type SettingError struct {
	Setting string // the field in kebab case, as flags spell it
	Value   string
	Want    string // the range
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("%s must be %s, not %s", e.Setting, e.Want, e.Value)
}
