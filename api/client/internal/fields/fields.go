// Package fields writes the types of the SDK's answers in JSON, as `ddq -o json` prints
// them: times are RFC 3339 in UTC with milliseconds, durations integers of milliseconds,
// words in lower case. Bytes are a string when they are UTF-8, and otherwise base64 under
// the name with "_base64" behind it. Fields that say "omitempty" are left out when they
// are zero, and are zero when they are absent.
//
// encoding/json has no such forms for fields of time.Time, time.Duration and []byte,
// so these types are written and read field by field.
package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	timeForm   = "2006-01-02T15:04:05.000Z"
	base64Mark = "_base64"
)

// field is one field of a type, with those of embedded structs in their place.
type field struct {
	name      string
	omitEmpty bool
	reflect.Value
}

func fieldsOf(v reflect.Value) (fields []field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fields = append(fields, fieldsOf(v.Field(i))...)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, field{name, option == "omitempty", v.Field(i)})
	}
	return fields
}

func (f *field) empty() bool {
	switch f.Kind() {
	case reflect.Slice, reflect.Map:
		return f.Len() == 0
	default:
		return f.IsZero()
	}
}

// Write writes a struct as an object.
func Write(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // whoever puts it into HTML has json.Marshal escape it
	for _, f := range fieldsOf(reflect.ValueOf(v)) {
		if f.omitEmpty && f.empty() {
			continue
		}
		name, value := f.text()
		fmt.Fprintf(&b, ",%q:", name)
		if err := enc.Encode(value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // the line break
	}
	if b.Len() == 0 {
		return []byte("{}"), nil
	}
	b.Bytes()[0] = '{'
	b.WriteByte('}')
	return b.Bytes(), nil
}

// text returns the name and the value that a field has in JSON.
func (f *field) text() (name string, value any) {
	switch v := f.Interface().(type) {
	case time.Time:
		if v.IsZero() {
			return f.name, ""
		}
		return f.name, v.UTC().Format(timeForm)
	case time.Duration:
		return f.name, v.Milliseconds()
	case []byte:
		if utf8.Valid(v) {
			return f.name, string(v)
		}
		return f.name + base64Mark, v
	case fmt.Stringer:
		return f.name, v.String()
	default:
		return f.name, v
	}
}

// Read reads what Write wrote into the struct that p points to. Names that
// it does not know are of a newer version.
func Read(b []byte, p any) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(b, &object); err != nil {
		return err
	}
	for _, f := range fieldsOf(reflect.ValueOf(p).Elem()) {
		raw, ok := object[f.name]
		if !ok && f.Type() == reflect.TypeFor[[]byte]() {
			if raw, ok = object[f.name+base64Mark]; ok {
				if err := json.Unmarshal(raw, f.Addr().Interface()); err != nil {
					return fmt.Errorf("%s%s: %w", f.name, base64Mark, err)
				}
				continue
			}
		}
		if !ok {
			f.SetZero()
			continue
		}
		if err := f.read(raw); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (f *field) read(raw json.RawMessage) error {
	switch v := f.Addr().Interface().(type) {
	case *time.Time:
		return readTime(raw, v)
	case *time.Duration:
		var ms int64
		err := json.Unmarshal(raw, &ms)
		*v = time.Duration(ms) * time.Millisecond
		return err
	case *[]byte:
		var text string
		err := json.Unmarshal(raw, &text)
		*v = []byte(text)
		return err
	case fmt.Stringer: // a pointer to a word has the word's methods
		var word string
		if err := json.Unmarshal(raw, &word); err != nil {
			return err
		}
		return f.find(word)
	default:
		return json.Unmarshal(raw, v)
	}
}

func readTime(raw json.RawMessage, into *time.Time) (err error) {
	var text string
	if err = json.Unmarshal(raw, &text); err != nil || text == "" {
		*into = time.Time{}
		return err
	}
	*into, err = time.Parse(time.RFC3339Nano, text)
	return err
}

// mostWords is above the number of every word of the wire.
const mostWords = 64

// find sets a field to the number that has this word.
func (f *field) find(word string) error {
	for n := range int64(mostWords) {
		f.SetInt(n)
		if f.Interface().(fmt.Stringer).String() == word {
			return nil
		}
	}
	f.SetZero()
	return fmt.Errorf("no %s is called %q", f.Type().Name(), word)
}
