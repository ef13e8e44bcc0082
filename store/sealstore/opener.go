package sealstore

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// opener opens what is stored of a topic.
type opener struct {
	keys  *Keys
	name  string // of the topic
	topic []byte // the same, once something is opened
	known bool   // by keys that are known: nobody is asked for others
}

func (k *Keys) opener(topic string) opener { return opener{keys: k, name: topic} }

// find returns the key of that id.
func (o *opener) find(ctx context.Context, id KeyID) (*dataKey, error) {
	if !o.known {
		return o.keys.find(ctx, id)
	}
	if one := (*o.keys.known.Load())[id]; one != nil {
		return one, nil
	}
	return nil, ErrUnknownKey
}

// bare opens what is said to be sealed, in the same memory. Empty stays so.
func (o *opener) bare(ctx context.Context, b []byte) ([]byte, error) {
	if len(b) == 0 {
		return b, nil
	}
	if len(b) < store.EncryptedBytes {
		return nil, o.spoilt()
	}
	key, err := o.find(ctx, KeyID(b))
	if err != nil {
		return nil, err
	}
	if o.topic == nil {
		o.topic = []byte(o.name)
	}
	plain, err := key.open(o.topic, b)
	if err != nil {
		return nil, o.spoilt()
	}
	return plain, nil
}

// spoilt counts what does not open.
func (o *opener) spoilt() error {
	o.keys.corrupt.Add(1)
	return errCorrupt
}

// value opens what is sealed behind the mark, in the same memory, and returns what is not as it is.
func (o *opener) value(ctx context.Context, b []byte) ([]byte, error) {
	if !marked(b) {
		return b, nil
	}
	if sealed, err := o.keys.seals(ctx, KeyID(b[1:])); err != nil || !sealed {
		return b, err
	}
	return o.bare(ctx, b[1:])
}

func (o *opener) text(ctx context.Context, text string) (string, error) {
	if len(text) == 0 || text[0] != mark {
		return text, nil
	}
	plain, err := o.value(ctx, []byte(text))
	return string(plain), err
}

// shown is text for people: where it cannot be read, it says so.
func (o *opener) shown(ctx context.Context, text string) string {
	plain, err := o.text(ctx, text)
	if err != nil {
		return "encrypted: " + err.Error()
	}
	return plain
}

// task opens the body of a task. It stays Encrypted unless all of it opens.
func (o *opener) task(ctx context.Context, t *store.Task) error {
	t.LastError = o.shown(ctx, t.LastError)
	if err := o.journal(ctx, t.Journal); err != nil {
		return err
	}
	if !t.Encrypted {
		return nil
	}
	payload, err := o.bare(ctx, t.Payload)
	if err != nil {
		return err
	}
	if err := o.origin(ctx, t); err != nil {
		return err
	}
	t.Payload, t.Encrypted = payload, false
	return nil
}

// origin opens what a task has of its run and its step, which the store may share with others.
func (o *opener) origin(ctx context.Context, t *store.Task) error {
	if r := t.RunOf; r != nil && len(r.RecipientData) > 0 {
		data, err := o.bare(ctx, bytes.Clone(r.RecipientData))
		if err != nil {
			return err
		}
		run := *r
		run.RecipientData = data
		t.RunOf = &run
	}
	if t.StepOf == nil {
		return nil
	}
	step := *t.StepOf
	step.Inputs, step.Journal = slices.Clone(step.Inputs), slices.Clone(step.Journal)
	t.StepOf = &step
	return o.step(ctx, &step)
}

// step opens the bytes of a step, which is a copy.
func (o *opener) step(ctx context.Context, step *store.StepOf) (err error) {
	if step.Input, err = o.bare(ctx, bytes.Clone(step.Input)); err != nil {
		return err
	}
	for i := range step.Inputs {
		in := &step.Inputs[i]
		failure, err := o.bare(ctx, []byte(in.Error))
		if err != nil {
			return err
		}
		in.Error = string(failure)
		if in.Result, err = o.bare(ctx, bytes.Clone(in.Result)); err != nil {
			return err
		}
	}
	for i := range step.Journal {
		e := &step.Journal[i]
		if e.Value, err = o.bare(ctx, bytes.Clone(e.Value)); err != nil {
			return err
		}
	}
	return nil
}

// journal opens the entries of a journal that are sealed.
func (o *opener) journal(ctx context.Context, entries []store.JournalEntry) (err error) {
	for i := range entries {
		e := &entries[i]
		if !e.Encrypted {
			continue
		}
		if e.Value, err = o.bare(ctx, e.Value); err != nil {
			return err
		}
		e.Encrypted = false
	}
	return nil
}

// cells opens the bodies of cells. One that does not open is no body of anything.
func (o *opener) cells(ctx context.Context, cells []store.Cell) error {
	for i := range cells {
		body, err := o.value(ctx, cells[i].Body)
		switch {
		case err == nil:
			cells[i].Body = body
		case !errors.Is(err, errCorrupt):
			return err
		}
	}
	return nil
}

func (o *opener) parcels(ctx context.Context, parcels []store.Parcel) error {
	for i := range parcels {
		p := &parcels[i]
		body, err := o.value(ctx, p.Body)
		switch {
		case err == nil:
			p.Body = body
		case !errors.Is(err, errCorrupt):
			return err
		}
		if p.Ended == nil {
			continue
		}
		if p.Ended, err = o.ended(ctx, p.Ended); err != nil {
			return err
		}
	}
	return nil
}

// ended opens what the end of a task left, in a copy. Of one that does not open nobody can say
// what it was: the task has failed.
func (o *opener) ended(ctx context.Context, of *store.Ended) (*store.Ended, error) {
	e := *of
	e.Error = o.shown(ctx, of.Error)
	result, err := o.value(ctx, bytes.Clone(of.Result))
	if err == nil {
		e.Result = result
		e.Say, err = o.value(ctx, bytes.Clone(of.Say))
	}
	if errors.Is(err, errCorrupt) {
		e.Kind, e.Reason, e.Result, e.Say = store.ChangeDead, store.ReasonCorrupt, nil, nil
		e.Error, err = "the result cannot be read: "+errCorrupt.Error(), nil
	}
	return &e, err
}
