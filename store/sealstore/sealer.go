package sealstore

import (
	"crypto/rand"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// sealer seals what one call brings to a topic. Without a key it leaves everything as it is. It changes
// nothing that it is given.
type sealer struct {
	key    *dataKey // nil: nothing is sealed
	topic  []byte
	nonces []byte // random, of seals to come
}

// expect makes nonces for so many seals: together they cost a fraction of what they cost one by one.
func (s *sealer) expect(n int) {
	s.nonces = make([]byte, n*nonceBytes)
	rand.Read(s.nonces) // never fails
}

// seal appends plain, sealed, to b.
func (s *sealer) seal(b, plain []byte) []byte {
	if len(s.nonces) == 0 {
		s.expect(1)
	}
	nonce := s.nonces[:nonceBytes]
	s.nonces = s.nonces[nonceBytes:]
	return s.key.seal(b, nonce, s.topic, plain)
}

// value seals b behind the mark. What is empty stays so.
func (s *sealer) value(b []byte) []byte {
	if s.key == nil || len(b) == 0 {
		return b
	}
	return s.seal(append(make([]byte, 0, 1+store.EncryptedBytes+len(b)), mark), b)
}

func (s *sealer) text(text string) string {
	if s.key == nil || text == "" {
		return text
	}
	return string(s.value([]byte(text)))
}

// bare seals b where it is said that it is sealed. What is empty stays so.
func (s *sealer) bare(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	return s.seal(make([]byte, 0, store.EncryptedBytes+len(b)), b)
}

// tasks returns the tasks with their bodies sealed, in memory of few allocations.
func (s *sealer) tasks(tasks []*store.Task) []*store.Task {
	if s.key == nil || len(tasks) == 0 {
		return tasks
	}
	size := 0
	for _, t := range tasks {
		size += store.EncryptedBytes + len(t.Payload)
	}
	s.expect(len(tasks))
	buf := make([]byte, 0, size)
	copies, sealed := make([]store.Task, len(tasks)), make([]*store.Task, len(tasks))
	for i, t := range tasks {
		copies[i], sealed[i] = *t, &copies[i]
		buf = s.task(&copies[i], buf)
	}
	return sealed
}

// task seals the body of t, which is a copy: the payload goes behind buf.
func (s *sealer) task(t *store.Task, buf []byte) []byte {
	if len(t.Payload) == 0 && !hasMore(t) {
		return buf
	}
	start := len(buf)
	buf = s.seal(buf, t.Payload)
	t.Payload, t.Encrypted = buf[start:len(buf):len(buf)], true
	if r := t.RunOf; r != nil && len(r.RecipientData) > 0 {
		run := *r
		run.RecipientData = s.bare(r.RecipientData)
		t.RunOf = &run
	}
	if t.StepOf != nil {
		t.StepOf = s.step(t.StepOf)
	}
	return buf
}

// hasMore reports whether there is something to seal besides the payload.
func hasMore(t *store.Task) bool {
	return t.RunOf != nil && len(t.RunOf.RecipientData) > 0 || t.StepOf != nil && (len(t.StepOf.Input) > 0 || len(t.StepOf.Inputs) > 0 || len(t.StepOf.Journal) > 0)
}

func (s *sealer) step(of *store.StepOf) *store.StepOf {
	step := *of
	step.Input = s.bare(of.Input)
	step.Inputs, step.Journal = slices.Clone(of.Inputs), slices.Clone(of.Journal)
	for i := range step.Inputs {
		in := &step.Inputs[i]
		in.Result, in.Error = s.bare(in.Result), string(s.bare([]byte(in.Error)))
	}
	for i := range step.Journal {
		step.Journal[i].Value = s.bare(step.Journal[i].Value)
	}
	return &step
}

func (s *sealer) acks(acks []store.Ack) []store.Ack {
	if s.key == nil || len(acks) == 0 {
		return acks
	}
	sealed := slices.Clone(acks)
	for i := range sealed {
		a := &sealed[i]
		a.Result, a.Say = s.value(a.Result), s.value(a.Say)
	}
	return sealed
}

func (s *sealer) nacks(nacks []store.Nack) []store.Nack {
	if s.key == nil {
		return nacks
	}
	sealed := slices.Clone(nacks)
	for i := range sealed {
		sealed[i].Error, sealed[i].Say = s.text(sealed[i].Error), s.value(sealed[i].Say)
	}
	return sealed
}

func (s *sealer) checkpoints(checkpoints []store.Checkpoint) []store.Checkpoint {
	if s.key == nil {
		return checkpoints
	}
	sealed := slices.Clone(checkpoints)
	for i := range sealed {
		e := &sealed[i].JournalEntry
		e.Value = s.seal(make([]byte, 0, store.EncryptedBytes+len(e.Value)), e.Value)
		e.Encrypted = true
	}
	return sealed
}

func (s *sealer) commit(c *store.Commit) store.Commit {
	sealed := *c
	sealed.Puts, sealed.Send = slices.Clone(c.Puts), slices.Clone(c.Send)
	for i := range sealed.Puts {
		sealed.Puts[i].Body = s.value(sealed.Puts[i].Body)
	}
	for i := range sealed.Send {
		s.parcel(&sealed.Send[i])
	}
	sealed.Acks, sealed.Adds = s.acks(c.Acks), s.tasks(c.Adds)
	return sealed
}

func (s *sealer) parcel(p *store.Parcel) {
	p.Body = s.value(p.Body)
	if p.Ended != nil {
		ended := *p.Ended
		ended.Error, ended.Result, ended.Say = s.text(ended.Error), s.value(ended.Result), s.value(ended.Say)
		p.Ended = &ended
	}
}
