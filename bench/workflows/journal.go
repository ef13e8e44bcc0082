package workflows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// failsEvery is one of how many tasks fails its first attempt, when half of its names are kept.
const failsEvery = 10

// journalLine is what tasks with a journal came to.
type journalLine struct {
	Shape       string `json:"shape"`
	Store       string `json:"store"`
	Tasks       int    `json:"tasks"`
	Names       int    `json:"names"` // of each
	Handlers    int    `json:"handlers"`
	Checkpoints int    `json:"checkpoints"` // that were answered

	Seconds          float64              `json:"seconds"`
	CheckpointsPerS  float64              `json:"checkpoints_per_s"`
	OnceMS           lateness.Percentiles `json:"once_ms"` // how long a call takes that keeps something
	CPU              result.Roles         `json:"cpu_s"`
	CPUPerCheckpoint float64              `json:"cpu_us_per_checkpoint"` // with its part of what the tasks take

	Forgotten  int    `json:"forgotten"`   // names that ran again after they were kept, or returned something else
	NeverEnded int    `json:"never_ended"` // tasks
	Machine    string `json:"machine"`
}

// violation is what the shape broke; nil when nothing.
func (l *journalLine) violation() error {
	if l.Forgotten+l.NeverEnded == 0 {
		return nil
	}
	return fmt.Errorf("workflows %s: %d names forgotten, %d tasks never ended", l.Shape, l.Forgotten, l.NeverEnded)
}

// journal has one worker keep what names return, in tasks of some names each, one name after the
// other.
func (s *show) journal(ctx context.Context) (*journalLine, error) {
	n := max(1, s.Marks/s.Names)
	if _, err := s.keep(ctx, "journal-warm", max(1, n/10)); err != nil {
		return nil, err
	}
	return s.keep(ctx, shapeJournal, n)
}

// keep plays n tasks of a topic.
func (s *show) keep(ctx context.Context, topic string, n int) (*journalLine, error) {
	books := newJournalBooks(n, s.Names)
	defer s.work(ctx, topic, 1, books.handle)()
	begun, before := time.Now(), s.usage()
	err := s.enqueueAll(ctx, n, func(i int) client.Task {
		return client.Task{
			Topic: topic, Payload: binary.BigEndian.AppendUint32(nil, uint32(i)), // #nosec G115 -- a number of tasks
			Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: 10 * time.Millisecond},
		}
	})
	if err != nil {
		return nil, err
	}
	if err := books.wait(ctx); err != nil {
		return nil, err
	}
	line := &journalLine{Shape: topic, Store: s.Store, Tasks: n, Names: s.Names, Handlers: handlers, CPU: s.usage().Minus(before), Machine: result.Machine()}
	books.read(line, begun)
	line.CPUPerCheckpoint = perUnit(line.CPU, max(1, line.Checkpoints))
	return line, nil
}

// errHalfway is how some tasks end their first attempt.
var errHalfway = errors.New("half of the names are kept")

// handle keeps all names of a task. Those of an attempt before have to come back as they were.
func (b *journalBooks) handle(ctx context.Context, t sdk.Task) error {
	task := int(binary.BigEndian.Uint32(t.Payload))
	for name := range b.names {
		if t.Attempt == 1 && task%failsEvery == 0 && name == b.names/2 {
			return errHalfway
		}
		want, ran, begun := fmt.Sprintf("%d of %d", name, task), false, time.Now()
		got, err := t.Once(ctx, strconv.Itoa(name), func(context.Context) ([]byte, error) {
			ran = true
			return []byte(want), nil
		})
		if err != nil {
			return err
		}
		b.write(task, name, ran, string(got) == want, time.Since(begun))
	}
	b.end(task, time.Now())
	return nil
}
