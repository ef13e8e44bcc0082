package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
)

// resealPasses bounds the passes over the records: nodes that reseal at the same time pass each
// other, and a record that somebody changes is left to the next pass.
const resealPasses = 10

var errResealed = errors.New("records change all the time")

// UseKeys exchanges the keys of the fleet: the first one signs and seals from now on. The former ones
// count until every record is sealed with the new first one, also after an error. Then the caller
// tries again. It is not called concurrently.
func (a *Access) UseKeys(ctx context.Context, keys []auth.ClusterKey) error {
	current := a.config.Keys
	switch {
	case current == nil:
		return errors.New("the fleet was started without keys")
	case len(keys) == 0:
		return errors.New("no key of the fleet is given")
	}
	all := append(keys[:len(keys):len(keys)], current.All()...)
	current.Use(all) // keys that are there twice do no harm, and go below
	if err := a.registry.reseal(ctx); err != nil {
		return err
	}
	current.Use(keys)
	return nil
}

// reseal seals every record with the first key that is sealed with another one of the fleet, so
// that the others can be given up.
func (r *records) reseal(ctx context.Context) error {
	if r.keys == nil {
		return nil
	}
	for range resealPasses {
		left, err := r.resealOnce(ctx)
		if err != nil || left == 0 {
			return err
		}
	}
	return errResealed
}

// resealOnce returns how many records were not sealed with the first key when it looked.
func (r *records) resealOnce(ctx context.Context) (left int, err error) {
	for _, kind := range []string{kindToken, kindBinding, kindLogin, kindNamespace} {
		all, _, err := r.Records(ctx, kind)
		if err != nil {
			return 0, fmt.Errorf("read records to seal them anew: %w", err)
		}
		for i := range all {
			done, err := r.resealOne(ctx, &all[i])
			if err != nil {
				return 0, fmt.Errorf("seal a record anew: %w", err)
			}
			if !done {
				left++
			}
		}
	}
	return left, nil
}

// resealOne reports whether there was nothing to do. A record that no key opens stays as it is.
func (r *records) resealOne(ctx context.Context, record *store.Record) (done bool, err error) {
	value, by := r.open(record)
	if by <= 0 {
		return true, nil
	}
	next := *record
	next.Value = r.keys.First().Seal(record.Kind, record.Name, value)
	if _, err := r.PutRecord(ctx, next); err != nil && !errors.Is(err, store.ErrVersion) {
		return false, err
	}
	return false, nil
}
