package rest

import (
	"net/url"
	"strings"
)

// template is the path of a route, such as /v1/topics/{topic}/tasks/{id}:promote.
type template struct {
	segments []string // between slashes, the last without its verb
	verb     string   // with its colon; empty when there is none
}

func templateOf(path string) template {
	segments := strings.Split(path, "/")
	last := len(segments) - 1
	name, verb, found := strings.Cut(segments[last], ":")
	if found {
		verb = ":" + verb
	}
	segments[last] = name
	return template{segments, verb}
}

// match reports whether an escaped path is of the template.
func (t template) match(path []string) bool {
	if len(path) != len(t.segments) {
		return false
	}
	for i, want := range t.segments {
		got, ok := t.segment(path, i)
		if !ok || got != want && !isParam(want) {
			return false
		}
	}
	return true
}

// segment is a part of a path without the verb. It is false when the path has another verb, or
// nothing else there.
func (t template) segment(path []string, i int) (string, bool) {
	if t.verb == "" || i < len(path)-1 {
		return path[i], true
	}
	before, found := strings.CutSuffix(path[i], t.verb)
	return before, found && before != ""
}

// params are what a path that matches has for the names in the template.
func (t template) params(path []string) map[string]string {
	params := make(map[string]string)
	for i, want := range t.segments {
		if !isParam(want) {
			continue
		}
		value, _ := t.segment(path, i)
		if plain, err := url.PathUnescape(value); err == nil { // who parsed the URL checked it
			value = plain
		}
		params[want[1:len(want)-1]] = value
	}
	return params
}

func isParam(segment string) bool { return strings.HasPrefix(segment, "{") }
