package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/protobuf/proto"
)

// query are the parameters of a route that is written by hand.
type query struct{ url.Values }

func queryOf(r *http.Request) (query, *problem) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, malformed("", "the query cannot be read: "+err.Error())
	}
	return query{values}, nil
}

// take removes a parameter that may be given once, and returns its value.
func (q query) take(name string) (value string, p *problem) {
	values := q.Values[name]
	q.Del(name)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", malformed(name, "is given more than once")
}

// span is a parameter that is a time span such as 30s, in milliseconds; 0 when it is not
// given.
func (q query) span(name string) (ms int64, p *problem) {
	text, p := q.take(name)
	if text == "" || p != nil {
		return 0, p
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, malformed(name, "is a time span such as 30s or 1m30s")
	}
	if d < 0 {
		return 0, refuse(http.StatusBadRequest, "OUT_OF_RANGE_FIELD", name, "must not be negative")
	}
	return ceil(d, time.Millisecond), nil
}

// number is a parameter that is a whole number; 0 when it is not given.
func (q query) number(name string) (int32, *problem) {
	text, p := q.take(name)
	if text == "" || p != nil {
		return 0, p
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, malformed(name, "is a whole number")
	}
	return int32(n), nil
}

// flag is a parameter that is 1 or 0.
func (q query) flag(name string) (bool, *problem) {
	switch text, p := q.take(name); {
	case p != nil:
		return false, p
	case text == "1" || text == "true":
		return true, nil
	case text == "" || text == "0" || text == "false":
		return false, nil
	}
	return false, malformed(name, "is 1 or 0")
}

// into puts the rest of the parameters into m, which has fields of their names. Those of
// besides are not for the query.
func (q query) into(m proto.Message, besides ...string) *problem {
	for name := range q.Values {
		field := fieldOf(m.ProtoReflect().Descriptor(), name)
		if first, _, _ := strings.Cut(field, "."); field == "" || slices.Contains(besides, first) {
			return malformed(name, "is not a parameter of the query")
		}
	}
	if err := runtime.PopulateQueryParameters(m, q.Values, utilities.NewDoubleArray(nil)); err != nil {
		return malformed(parameter(err.Error()), err.Error())
	}
	return nil
}

// none refuses parameters that nothing has taken.
func (q query) none() *problem {
	for name := range q.Values {
		return malformed(name, "is not a parameter of the query")
	}
	return nil
}
