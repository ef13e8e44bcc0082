package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
)

const (
	kindToken   = "token"
	kindBinding = "binding"
	kindLogin   = "session"

	kindNamespace = "namespace"
)

// records are those of the store's registry, sealed with the keys of the fleet where it has some.
type records struct {
	store.Registry
	keys *auth.ClusterKeys // nil: records are not sealed
}

var errSeal = errors.New("it is not sealed with a key of this fleet")

// read reads a record into what it is of, and returns what is in it.
func (r *records) read(record *store.Record, into any) (value []byte, err error) {
	value, by := r.open(record)
	if by < 0 {
		return nil, errSeal
	}
	return value, json.Unmarshal(value, into)
}

// open returns what is in a record, and the place of the key that it is sealed with; -1 when that is
// none of the fleet's.
func (r *records) open(record *store.Record) (value []byte, by int) {
	if r.keys == nil {
		return record.Value, 0
	}
	for i, k := range r.keys.All() {
		if value, ok := k.Open(record.Kind, record.Name, record.Value); ok {
			return value, i
		}
	}
	return nil, -1
}

// write stores a record of something, and returns it as it is now. The value of was is what was in it, opened; nil: there
// was none. What of knows nothing of stays in it.
func (r *records) write(ctx context.Context, was store.Record, of any) (store.Record, error) {
	value, err := withUnknown(was.Value, of)
	if err != nil {
		return was, err
	}
	if r.keys != nil {
		value = r.keys.First().Seal(was.Kind, was.Name, value)
	}
	was.Value = value
	was.Version, err = r.PutRecord(ctx, was)
	return was, err
}

// Of 10,000 tokens, as many logins and as many bindings, one namespace has some only, and the last are for the default
// namespace: no tenant takes them from others. Each node counts what it knows, so several at once may make a few more.
const (
	mostOfNamespace = 500
	ofDefault       = 1000
	mostForgotten   = 100 // at a time
)

// crowded reports whether a namespace that has own of all the records of a kind may have no more.
func crowded(namespace string, own, all int) bool {
	return cmp.Or(namespace, auth.DefaultNamespace) != auth.DefaultNamespace && (own >= mostOfNamespace || all >= store.MaxRecords-ofDefault)
}

func tooManyTokens() *problem.Error {
	return &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_TOKENS", Message: "there are as many of these as there may be, in the namespace or in all"}
}

// changed is the end of every change of a token or a binding.
func changed(err error) error {
	switch {
	case errors.Is(err, store.ErrVersion):
		return tokenChanged()
	case errors.Is(err, store.ErrRegistryFull):
		return tooManyTokens()
	case errors.Is(err, store.ErrBadRecord):
		return badGrant(err)
	case err != nil:
		return problem.AsError(err)
	}
	return nil
}
