package wire

import (
	"encoding/hex"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// A traceparent is the version, the id of the trace, that of the span, and flags, in lower case hex
// with hyphens between them. Those of later versions may have more behind another hyphen.
const (
	TraceparentBytes = 2 + 1 + 32 + 1 + 16 + 1 + 2
	traceVersion     = "00"
)

// ReadTrace reads a trace context as W3C Trace Context has it, nil for none and for a malformed
// traceparent. whole is false when anything was left out: a malformed tracestate is, and what is
// longer than a task keeps is cut after a member. It allocates nothing where there is none.
func ReadTrace(parent, state string) (t *store.Trace, whole bool) {
	if parent == "" {
		return nil, state == ""
	}
	return ReadTraceTo(new(store.Trace), parent, state)
}

// ReadTraceTo is ReadTrace into room for one, which is zero. What it returns is the room, or nil.
func ReadTraceTo(room *store.Trace, parent, state string) (t *store.Trace, whole bool) {
	if parent == "" || !readParent(room, parent) {
		return nil, parent == "" && state == ""
	}
	room.State, whole = cutState(state)
	return room, whole
}

// ReadTraceID reads the id of a trace, zero for none and for what is none; whole is false then.
func ReadTraceID(b []byte) (id store.TraceID, whole bool) {
	id = store.TraceIDOf(b)
	return id, len(b) == 0 || id != store.TraceID{}
}

// Traceparent writes it.
func Traceparent(t *store.Trace) string {
	return string(AppendTraceparent(make([]byte, 0, TraceparentBytes), t))
}

// AppendTraceparent appends it, TraceparentBytes long.
func AppendTraceparent(b []byte, t *store.Trace) []byte {
	b = append(b, traceVersion+"-"...)
	b = hex.AppendEncode(b, t.ID[:])
	b = hex.AppendEncode(append(b, '-'), t.Span[:])
	flags := [...]byte{t.Flags}
	return hex.AppendEncode(append(b, '-'), flags[:])
}

func readParent(t *store.Trace, s string) bool {
	if len(s) < TraceparentBytes || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	if more := s[TraceparentBytes:]; more != "" && (s[:2] == traceVersion || more[0] != '-') {
		return false
	}
	var version, flags [1]byte
	if !readHex(version[:], s[:2]) || !readHex(t.ID[:], s[3:35]) || !readHex(t.Span[:], s[36:52]) || !readHex(flags[:], s[53:55]) {
		return false
	}
	t.Flags = flags[0]
	return version[0] != 0xff && t.ID != [16]byte{} && t.Span != [8]byte{}
}

// readHex takes lower case only, as the standard does.
func readHex(to []byte, s string) bool {
	if strings.ContainsAny(s, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(to, []byte(s)) // no longer than what the compiler keeps on the stack
	return err == nil
}

// maxStateMembers is how many members a tracestate may have.
const maxStateMembers = 32

// cutState returns "" for a malformed tracestate, and the first members of a long one.
func cutState(s string) (cut string, whole bool) {
	if s == "" {
		return "", true
	}
	end, at, members := 0, 0, 0
	for member := range strings.SplitSeq(s, ",") {
		if m := strings.Trim(member, " \t"); m != "" { // empty ones are allowed
			if members++; members > maxStateMembers || !isMember(m) {
				return "", false
			}
		}
		if at += len(member); at <= store.MaxTraceState {
			end = at
		}
		at++ // the comma
	}
	return s[:end], end == len(s)
}

// isMember reports whether s is key=value in the characters that both may have.
func isMember(s string) bool {
	key, value, found := strings.Cut(s, "=")
	if !found || key == "" || len(key) > 256 || value == "" || len(value) > 256 {
		return false
	}
	for _, c := range []byte(key) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("_-*/@", c) < 0 {
			return false
		}
	}
	for _, c := range []byte(value) {
		if c < ' ' || c > '~' || c == '=' {
			return false
		}
	}
	return true
}
