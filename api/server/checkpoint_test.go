package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// checkpoint adds an entry to the journal of a task of the topic orders.
func (r *rig) checkpoint(d *ddqv1.Delivery, name string, value []byte) (*ddqv1.CheckpointResponse, error) {
	return r.queue.Checkpoint(r.Context(), &ddqv1.CheckpointRequest{Topic: "orders", Checkpoint: &ddqv1.Checkpoint{
		TaskId: d.Task.Id, HoldToken: d.HoldToken, Name: name, Value: value,
	}})
}

// kept calls do with a task that is held, and checks that the hold lives on.
func kept(do func(r *rig, d *ddqv1.Delivery) error) func(r *rig) error {
	return func(r *rig) error {
		_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "orders"})
		must(r, err)
		d := r.take("orders")
		refused := do(r, d)
		if err := r.finish(d, func(*ddqv1.Ack) {}); err != nil {
			r.Errorf("the task is not held any more: %v", err)
		}
		return refused
	}
}

// noted is a checkpoint of a held task.
func noted(name string, size int) func(r *rig) error {
	return kept(func(r *rig, d *ddqv1.Delivery) error {
		_, err := r.checkpoint(d, name, make([]byte, size))
		return err
	})
}

// under is a checkpoint under another token, which edit makes of that of the hold.
func under(edit func(r *rig, d *ddqv1.Delivery)) func(r *rig) error {
	return kept(func(r *rig, d *ddqv1.Delivery) error {
		other := proto.CloneOf(d)
		edit(r, other)
		_, err := r.checkpoint(other, "n", nil)
		return err
	})
}

func full(r *rig, d *ddqv1.Delivery) error {
	for i := range 1000 {
		_, err := r.checkpoint(d, fmt.Sprint(i), nil)
		must(r, err)
	}
	_, err := r.checkpoint(d, "one more", nil)
	return err
}

func heavy(r *rig, d *ddqv1.Delivery) error {
	for i := range 3 {
		_, err := r.checkpoint(d, fmt.Sprint(i), make([]byte, 256<<10))
		must(r, err)
	}
	_, err := r.checkpoint(d, "3", make([]byte, 256<<10))
	return err
}

var checkpointRefusals = []refusal{
	{"no name", noted("", 1), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"a long name", noted(strings.Repeat("n", 129), 1), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"a name with a line feed", noted("a\nb", 1), codes.InvalidArgument, "BAD_NAME", "name", "", 0},
	{"a large value", noted("n", 256<<10+1), codes.InvalidArgument, "RESULT_TOO_LARGE", "value", "", 0},
	{"1,001 names", kept(full), codes.ResourceExhausted, "JOURNAL_FULL", "value", "", 0},
	{"over 1 MiB", kept(heavy), codes.ResourceExhausted, "JOURNAL_FULL", "value", "", 0},
	{"no token", under(func(_ *rig, d *ddqv1.Delivery) { d.HoldToken = nil }), codes.InvalidArgument, "BAD_TOKEN", "hold_token", "", 0},
	{"another token", under(func(_ *rig, d *ddqv1.Delivery) { d.HoldToken[len(d.HoldToken)-1]++ }), codes.FailedPrecondition, "HOLD_LOST", "hold_token", "", 0},
	{"another task", under(func(_ *rig, d *ddqv1.Delivery) { d.Task.Id = "absent" }), codes.FailedPrecondition, "HOLD_LOST", "hold_token", "", 0},
	{"no task", under(func(_ *rig, d *ddqv1.Delivery) { d.Task.Id = "" }), codes.InvalidArgument, "BAD_ID", "task_id", "", 0},
	{"a task that is done", func(r *rig) error {
		var done *ddqv1.Delivery
		must(r, kept(func(_ *rig, d *ddqv1.Delivery) error { done = d; return nil })(r))
		_, err := r.checkpoint(done, "n", nil)
		return err
	}, codes.FailedPrecondition, "HOLD_LOST", "hold_token", "", 0},
	{"an unknown topic", func(r *rig) error {
		_, err := r.queue.Checkpoint(r.Context(), &ddqv1.CheckpointRequest{Topic: "absent", Checkpoint: &ddqv1.Checkpoint{TaskId: "a", HoldToken: []byte("t"), Name: "n"}})
		return err
	}, codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"nothing", func(r *rig) error {
		_, err := r.queue.Checkpoint(r.Context(), &ddqv1.CheckpointRequest{})
		return err
	}, codes.InvalidArgument, "BAD_ID", "task_id", "", 0},
}

// The task of a checkpoint that is refused stays held.
func TestEveryRefusalOfACheckpointHasItsCodeAndDetails(t *testing.T) {
	testRefusals(t, checkpointRefusals)
}

// journalOf is the journal of a delivery, by name.
func journalOf(d *ddqv1.Delivery) string {
	entries := make(map[string]string, len(d.Journal))
	for _, e := range d.Journal {
		entries[e.Name] = string(e.Value)
	}
	return fmt.Sprint(entries)
}

func TestAttemptsAfterACheckpointHaveTheJournal(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for _, id := range []string{"a", "plain"} {
			_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "orders", Id: id})
			must(r, err)
		}
		first := map[string]*ddqv1.Delivery{}
		for range 2 {
			d := r.take("orders")
			if len(d.Journal) != 0 {
				t.Errorf("a first attempt of %s has the journal %v", d.Task.Id, d.Journal)
			}
			first[d.Task.Id] = d
		}
		a := first["a"]
		for i, want := range []bool{false, true} { // the same again
			got, err := r.checkpoint(a, "charge", []byte(fmt.Sprint("paid ", i)))
			must(r, err)
			if got.Already != want {
				t.Errorf("already is %v at call %d", got.Already, i)
			}
		}
		for _, d := range first {
			_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "orders", Nack: &ddqv1.Nack{TaskId: d.Task.Id, HoldToken: d.HoldToken, DelayMs: proto.Int64(0)}})
			must(r, err)
		}
		want := map[string]string{"a": "map[charge:paid 0]", "plain": "map[]"}
		for range 2 {
			d := r.take("orders")
			if got := journalOf(d); got != want[d.Task.Id] {
				t.Errorf("journal of %s is %s, want %s", d.Task.Id, got, want[d.Task.Id])
			}
			must(r, r.finish(d, func(*ddqv1.Ack) {}))
		}
	})
}

// TestATaskShowsItsJournal in the order in which it was kept, and not in lists, until it is done.
func TestATaskShowsItsJournal(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "orders", Id: "a"})
		d := r.take("orders")
		began := time.Now()
		for _, name := range []string{"ship", "charge", "mail"} {
			time.Sleep(time.Second)
			_, err := r.checkpoint(d, name, []byte("of "+name))
			must(r, err)
		}
		shown := func() (entries []string) {
			got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "orders", Id: "a"})
			if status.Code(err) == codes.NotFound {
				return nil
			}
			must(r, err)
			for _, e := range got.Task.Journal {
				entries = append(entries, fmt.Sprintf("%s %d %q after %v", e.Name, e.Size, e.Value, e.KeptAt.AsTime().Sub(began).Round(time.Second)))
			}
			return entries
		}
		want := []string{`ship 7 "of ship" after 1s`, `charge 9 "of charge" after 2s`, `mail 7 "of mail" after 3s`}
		if got := shown(); !slices.Equal(got, want) {
			t.Errorf("shown %q, want %q", got, want)
		}
		listed, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "orders"})
		must(r, err)
		if len(listed.Tasks) != 1 || len(listed.Tasks[0].Journal) != 0 {
			t.Errorf("listed %v", listed.Tasks)
		}
		must(r, r.finish(d, func(*ddqv1.Ack) {}))
		if got := shown(); got != nil {
			t.Errorf("shown %q of a task that is done", got)
		}
	})
}

// TestCheckpointsOfAFrame: they are answered with the frame, by name, and the next stream has them.
func TestCheckpointsOfAFrame(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(10)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		d := s.delivery()
		entry := func(name string, token []byte) *ddqv1.Checkpoint {
			return &ddqv1.Checkpoint{TaskId: "a", HoldToken: token, Name: name, Value: []byte("of " + name)}
		}
		s.send(&ddqv1.SubscribeRequest{Sequence: 3, Checkpoints: []*ddqv1.Checkpoint{
			entry("one", d.HoldToken), entry("two", d.HoldToken), entry("", d.HoldToken), entry("three", []byte("?")), entry("one", d.HoldToken),
		}})
		answer := s.next().Settled
		if len(answer) != 1 || answer[0].Sequence != 3 {
			r.Fatalf("got %v", answer)
		}
		outcomes := map[string]string{}
		for _, result := range answer[0].Results {
			outcomes[result.Name] = result.Error.GetReason()
			if result.Already {
				outcomes[result.Name] = "already"
			}
		}
		if got := fmt.Sprint(outcomes); got != "map[:BAD_NAME one:already three:BAD_TOKEN]" {
			t.Errorf("answered %s", got)
		}
		s.send(&ddqv1.SubscribeRequest{Sequence: 4, Nacks: []*ddqv1.Nack{{TaskId: "a", HoldToken: d.HoldToken, Release: true}}})
		for again := (*ddqv1.Delivery)(nil); again == nil; {
			if f := s.next(); len(f.Deliveries) > 0 {
				again = f.Deliveries[0]
				if got := journalOf(again); got != "map[one:of one two:of two]" || again.Task.RetryCount != 0 {
					t.Errorf("the attempt after a release has the journal %s, and is retry %d", got, again.Task.RetryCount)
				}
			}
		}
	})
}
