package access

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
)

func badBinding(err error) *problem.Error {
	return &problem.Error{Kind: problem.Invalid, Reason: "BAD_BINDING", Field: "binding", Message: err.Error()}
}

func noBinding() *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_BINDING", Field: "name", Message: "no such binding"}
}

// Bindings are those of the registry.
type Bindings struct {
	registry *registry
	callers  *callers // they have their grants by them
}

func (bs *Bindings) kind() string { return kindBinding }

func (bs *Bindings) learn(records []store.Record) { bs.callers.bind(bs.open(records)) }

// open leaves out what cannot be believed. The order is that of names.
func (bs *Bindings) open(records []store.Record) auth.Bindings {
	all := make(auth.Bindings, 0, len(records))
	for i := range records {
		b, err := bs.openOne(&records[i])
		if err != nil {
			bs.registry.log.Error("record of a binding cannot be believed: it does not count", "binding", records[i].Name, "err", err)
			continue
		}
		all = append(all, b)
	}
	return all
}

func (bs *Bindings) openOne(r *store.Record) (*auth.Binding, error) {
	b := new(auth.Binding)
	if _, err := bs.registry.read(r, b); err != nil {
		return nil, err
	}
	if b.Name != r.Name {
		return nil, errors.New("it is that of another binding")
	}
	return b, nil
}

// within reports whether a principal may make and end a binding. A binding has no end, so who makes
// one must have none either.
func within(by *auth.Principal, b *auth.Binding) bool {
	return by.Expires.IsZero() && by.Grants.Cover(b.Grants)
}

// find returns the record of a binding, and the binding; nil when there is none.
func (bs *Bindings) find(ctx context.Context, name string) (*auth.Binding, int64, error) {
	records, _, err := bs.registry.Records(ctx, kindBinding)
	if err != nil {
		return nil, 0, problem.AsError(err)
	}
	i := slices.IndexFunc(records, func(r store.Record) bool { return r.Name == name })
	if i < 0 {
		return nil, 0, nil
	}
	b, err := bs.openOne(&records[i])
	if err != nil { // whoever wrote it has not the key of the fleet: it may be replaced
		b = &auth.Binding{Name: name}
	}
	return b, records[i].Version, nil
}

// room says why a namespace may have no binding more.
func (bs *Bindings) room(ctx context.Context, namespace string) error {
	records, _, err := bs.registry.Records(ctx, kindBinding)
	if err != nil {
		return problem.AsError(err)
	}
	own := 0
	for _, b := range bs.open(records) {
		if b.Grants.Home() == namespace {
			own++
		}
	}
	if crowded(namespace, own, len(records)) {
		return tooManyTokens()
	}
	return nil
}

// Bind makes a binding, or replaces the one of that name.
func (bs *Bindings) Bind(ctx context.Context, by *auth.Principal, b *auth.Binding) (*auth.Binding, error) {
	if err := b.Check(); err != nil {
		return nil, badBinding(err)
	}
	old, version, err := bs.find(ctx, b.Name)
	if err != nil {
		return nil, err
	}
	if !within(by, b) || old != nil && !within(by, old) {
		return nil, &problem.Error{Kind: problem.Denied, Reason: "BEYOND_GRANTS", Message: "the binding would allow more than you may, or for longer"}
	}
	if old == nil {
		if err := bs.room(ctx, b.Grants.Home()); err != nil {
			return nil, err
		}
	}
	put := *b
	put.Created, put.CreatedBy = time.Now().UTC().Truncate(time.Millisecond), by.Name
	_, err = bs.registry.write(ctx, store.Record{Kind: kindBinding, Name: put.Name, Version: version}, &put)
	return &put, bs.registry.changed(ctx, err)
}

// Unbind ends a binding, and the sessions of those that have other grants without it.
func (bs *Bindings) Unbind(ctx context.Context, by *auth.Principal, name string) error {
	b, version, err := bs.find(ctx, name)
	if err != nil {
		return err
	}
	if b == nil || !by.Grants.Cover(b.Grants) {
		return noBinding()
	}
	return bs.registry.changed(ctx, bs.registry.DeleteRecord(ctx, kindBinding, name, version))
}

// List returns those whose grants a principal has, by name.
func (bs *Bindings) List(ctx context.Context, by *auth.Principal) (auth.Bindings, error) {
	records, _, err := bs.registry.Records(ctx, kindBinding)
	if err != nil {
		return nil, problem.AsError(err)
	}
	return slices.DeleteFunc(bs.open(records), func(b *auth.Binding) bool { return !by.Grants.Cover(b.Grants) }), nil
}
