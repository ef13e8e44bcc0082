package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// What a body of JSON may have, so that one of 6 MiB does not take gigabytes of memory.
const (
	maxDepth   = 32
	maxObjects = 1 << 16
	maxValues  = 1 << 18
)

var (
	write = protojson.MarshalOptions{UseProtoNames: true}
	read  = protojson.UnmarshalOptions{RecursionLimit: maxDepth}
)

// body is the body of a request while the gateway has it. The gateway hands on errors as
// text only, and knows nothing of headers that stand for fields.
type body struct {
	io.ReadCloser

	params map[string]string // of the path
	edits  []edit            // what the headers say
	wrong  *problem          // why the body was refused; nil when it was not
}

// edit puts into a message what a header stands for. fields are those that the body names,
// as the protos spell them.
type edit func(m proto.Message, fields map[string]json.RawMessage) *problem

// fill reads all of the body into m.
func (b *body) fill(m proto.Message) *problem {
	text, p := b.all()
	if p != nil {
		return p
	}
	if p := unmarshal(text, m); p != nil {
		return p
	}
	if p := b.agree(m); p != nil {
		return p
	}
	if len(b.edits) == 0 {
		return nil
	}
	fields := fieldsOf(text, m)
	for _, apply := range b.edits {
		if p := apply(m, fields); p != nil {
			return p
		}
	}
	return nil
}

// all reads the body.
func (b *body) all() ([]byte, *problem) {
	text, err := io.ReadAll(b.ReadCloser)
	if err != nil {
		return nil, unread(err)
	}
	return text, nil
}

// unread says why a body could not be read.
func unread(err error) *problem {
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return refuse(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", "", fmt.Sprintf("a body has at most %d bytes", over.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		p := refuse(http.StatusRequestTimeout, "SLOW_BODY", "", "the body did not arrive in time")
		p.Code = "DEADLINE_EXCEEDED"
		return p
	}
	return malformed("", "the body ends early")
}

// agree refuses a body that says something else than the path.
func (b *body) agree(m proto.Message) *problem {
	for name, value := range b.params {
		if strings.Contains(name, ".") {
			name = name[strings.LastIndexByte(name, '.')+1:]
		}
		field := m.ProtoReflect().Descriptor().Fields().ByTextName(name)
		if field == nil || !m.ProtoReflect().Has(field) {
			continue
		}
		if m.ProtoReflect().Get(field).String() != value {
			return refuse(http.StatusBadRequest, reasonOf(name), name, "the body and the path differ")
		}
	}
	return nil
}

// reasonOf is why a name in a path is refused.
func reasonOf(param string) string {
	if strings.HasSuffix(param, "id") {
		return "BAD_ID"
	}
	return "BAD_NAME"
}

// unmarshal reads JSON into m.
func unmarshal(text []byte, m proto.Message) *problem {
	if len(text) == 0 {
		return nil
	}
	if p := bounded(text); p != nil {
		return p
	}
	if err := read.Unmarshal(text, m); err != nil {
		return explain(text, err)
	}
	return nil
}

// fieldsOf are the fields that a text, which was read into m, names at the top.
func fieldsOf(text []byte, m proto.Message) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil // there is no text
	}
	for name, value := range fields {
		if f := m.ProtoReflect().Descriptor().Fields().ByJSONName(name); f != nil {
			fields[string(f.Name())] = value
		}
	}
	return fields
}

// bounded refuses text that would take much more memory than it has bytes.
func bounded(text []byte) *problem {
	depth, objects, values, quoted := 0, 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return malformed("", fmt.Sprintf("nested deeper than %d", maxDepth))
			}
			objects++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	if objects > maxObjects || values > maxValues {
		return malformed("", fmt.Sprintf("more than %d objects or %d values", maxObjects, maxValues))
	}
	return nil
}

// position is how the library says where in a text it stopped.
var position = regexp.MustCompile(`^proto:[\s\x{a0}]+(?:syntax error )?\(line (\d+):(\d+)\):[\s\x{a0}]+`)

// explain says what is wrong with a text, and with which field.
func explain(text []byte, err error) *problem {
	said := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	at := position.FindStringSubmatch(said)
	if at == nil {
		return malformed("", strings.TrimPrefix(said, "proto: "))
	}
	line, _ := strconv.Atoi(at[1])
	column, _ := strconv.Atoi(at[2])
	return malformed(fieldAt(text, offsetOf(text, line, column)), strings.ToValidUTF8(said[len(at[0]):], "?"))
}

// offsetOf is where a line, counted from 1, and a column, in characters from 1, are.
func offsetOf(text []byte, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		end := bytes.IndexByte(text[offset:], '\n')
		if end < 0 {
			return len(text)
		}
		offset += end + 1
	}
	for ; column > 1 && offset < len(text); column-- {
		_, size := utf8.DecodeRune(text[offset:])
		offset += size
	}
	return offset
}

// level is an object or a list around a place in a text.
type level struct {
	list  bool
	index int    // of a list: which item
	name  string // of an object: the latest key
	value bool   // of an object: a value is next
}

// fieldAt is the path of what stands at offset, such as tasks[2].delay.
func fieldAt(text []byte, offset int) string {
	d := json.NewDecoder(bytes.NewReader(text))
	var around []level
	for {
		before := len(around)
		token, err := d.Token()
		if err != nil || int(d.InputOffset()) > offset && !closes(token) {
			return pathOf(around, token)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			around = append(around, level{list: token == json.Delim('[')})
			continue
		case json.Delim('}'), json.Delim(']'):
			around = around[:before-1]
		default:
			if top := before - 1; top >= 0 && !around[top].list && !around[top].value {
				around[top].name, _ = token.(string)
				around[top].value = true
				continue
			}
		}
		if top := len(around) - 1; top >= 0 { // a value is over
			around[top].index++
			around[top].value = false
		}
	}
}

func closes(t json.Token) bool { return t == json.Delim('}') || t == json.Delim(']') }

func pathOf(around []level, token json.Token) string {
	var path strings.Builder
	for i, l := range around {
		if l.list {
			fmt.Fprintf(&path, "[%d]", l.index)
			continue
		}
		name := l.name
		if key, isKey := token.(string); i == len(around)-1 && !l.value && isKey {
			name = key
		}
		if path.Len() > 0 && name != "" {
			path.WriteByte('.')
		}
		path.WriteString(name)
	}
	return strings.ToValidUTF8(path.String(), "?")
}

// usualAnswer is how many bytes most answers take at most.
const usualAnswer = 256

// marshaler is what the gateway reads and writes messages with.
type marshaler struct{}

func (marshaler) ContentType(any) string { return "application/json" }

func (marshaler) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	text, err := write.MarshalAppend(make([]byte, 0, usualAnswer), m)
	return append(text, '\n'), err
}

func (marshaler) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a message", v)
	}
	return read.Unmarshal(data, m)
}

func (marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		text, err := marshaler{}.Marshal(v)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
}

// NewDecoder reads the body of a request. It is of type *body: see api.request.
func (marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		b, ok := r.(*body)
		if !ok {
			return fmt.Errorf("the body is a %T", r)
		}
		if b.wrong = b.fill(messageAt(v)); b.wrong != nil {
			return errors.New(b.wrong.Detail)
		}
		return nil
	})
}

// messageAt is the message that v points to, or that it is to point to.
func messageAt(v any) proto.Message {
	if m, ok := v.(proto.Message); ok {
		return m
	}
	slot := reflect.ValueOf(v).Elem()
	if slot.IsNil() {
		slot.Set(reflect.New(slot.Type().Elem()))
	}
	m, _ := slot.Interface().(proto.Message)
	return m
}
