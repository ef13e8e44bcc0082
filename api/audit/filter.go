package audit

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/ddq-io/ddq/actors/fleet"
)

// filter is a filter of records, as they are held against it.
type filter struct {
	fleet.AuditFilter
	value []byte // Resource as a request in JSON has it
}

func newFilter(f *fleet.AuditFilter) *filter {
	value, _ := json.Marshal(f.Resource) // a text always can be
	return &filter{*f, value}
}

// match reports whether a record is one of those that are meant.
func (f *filter) match(r *Record) bool {
	switch {
	case f.Outcome != 0 && r.outcome() != f.Outcome:
	case f.Caller != "" && !f.by(r):
	case f.Method != "" && r.Method != f.Method && r.Method[strings.LastIndexByte(r.Method, '/')+1:] != f.Method:
	case f.Resource != "" && !f.about(r):
	case !f.Before.IsZero() && !r.Time.Before(f.Before):
	case r.Time.Before(f.From):
	default:
		return true
	}
	return false
}

// by reports whether the caller called.
func (f *filter) by(r *Record) bool {
	_, name, _ := strings.Cut(r.Caller, ":")
	return f.Caller == r.Caller || f.Caller == name || f.Caller == r.Token
}

// about reports whether a call is about the resource.
func (f *filter) about(r *Record) bool {
	return f.Resource == r.Topic || f.Resource == r.Name || f.Resource == r.Topic+"/"+r.Name || f.in(r.Request)
}

// in reports whether the resource is a value of a request: in quotes, and before no colon.
func (f *filter) in(request []byte) bool {
	for {
		at := bytes.Index(request, f.value)
		if at < 0 {
			return false
		}
		if request = request[at+len(f.value):]; len(request) == 0 || request[0] != ':' {
			return true
		}
	}
}
