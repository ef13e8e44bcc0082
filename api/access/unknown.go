package access

import (
	"encoding/json"
	"reflect"
)

// object is an object of JSON.
type object map[string]json.RawMessage

// withUnknown encodes what a pointer points at, with those fields of an object of before that its type does not
// know: nodes of a later version wrote them. before may be nil.
func withUnknown(before []byte, of any) ([]byte, error) {
	now, err := json.Marshal(of)
	if err != nil || before == nil {
		return now, err
	}
	as := reflect.New(reflect.TypeOf(of).Elem()).Interface()
	if err := json.Unmarshal(before, as); err != nil {
		return nil, err
	}
	known, err := json.Marshal(as)
	if err != nil {
		return nil, err
	}
	return merged(before, known, now)
}

// merged adds to an object the fields of before that are not in it, but for those that are known to have been
// left out, and so within its objects.
func merged(before, known, now []byte) ([]byte, error) {
	all := [3]object{}
	for i, raw := range [...][]byte{before, known, now} {
		if json.Unmarshal(raw, &all[i]) != nil || all[i] == nil {
			return now, nil // no object
		}
	}
	for name, was := range all[0] {
		knows, is := all[1][name]
		put, stays := all[2][name]
		switch {
		case is && stays:
			both, err := merged(was, knows, put)
			if err != nil {
				return nil, err
			}
			all[2][name] = both
		case !is && !stays:
			all[2][name] = was
		}
	}
	return json.Marshal(all[2])
}
