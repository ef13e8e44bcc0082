package sealstore_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/sealstore"
)

// BenchmarkTask adds, holds and acks tasks 256 at a time, plain and sealed; an operation is one task.
func BenchmarkTask(b *testing.B) {
	for _, size := range []int{100, 1024} {
		for _, name := range []string{"plain", "sealed"} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				inner := openMemory(b)
				s := store.Store(inner)
				if name == "sealed" {
					s = sealed(b, inner)
				}
				lives(b, s, bytes.Repeat([]byte("x"), size))
			})
		}
	}
}

// lives takes tasks through their lives.
func lives(b *testing.B, s store.Store, payload []byte) {
	const batch = 256
	session := store.Session{Node: "a", Start: store.NewToken(), TTL: time.Hour, Begin: true}
	if _, err := s.RenewSession(b.Context(), session); err != nil {
		b.Fatal(err)
	}
	_, fence, err := s.Claim(b.Context(), mail, session)
	if err != nil {
		b.Fatal(err)
	}
	tasks, holds, acks := make([]*store.Task, batch), make([]store.Hold, batch), make([]store.Ack, batch)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%batch != 0 {
			continue
		}
		for i := range tasks {
			id, token := fmt.Sprintf("%d", i), store.NewToken()
			tasks[i] = &store.Task{ID: id, Payload: payload, Due: 1, MaxRetries: -1, Fingerprint: 7}
			holds[i], acks[i] = store.Hold{ID: id, Token: token, Visibility: time.Hour}, store.Ack{ID: id, Token: token}
		}
		if _, _, err := s.Add(b.Context(), mail, tasks); err != nil {
			b.Fatal(err)
		}
		_, results, err := s.Hold(b.Context(), mail, fence, holds)
		if err != nil || results[0].Status != store.OK || len(results[0].Task.Payload) != len(payload) {
			b.Fatal(results[0], err)
		}
		if _, _, err := s.Ack(b.Context(), mail, acks, 0); err != nil {
			b.Fatal(err)
		}
	}
}

var _ sealstore.Inner = (*sealstore.Store)(nil)
