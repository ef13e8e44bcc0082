package watches_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/position"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/watches"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// lives checks that changes tell the lives of tasks: nothing missing, nothing twice.
type lives struct {
	*testing.T
	at    map[int]int64       // position by shard
	state map[string]string   // by task: pending, running, done, dead or gone
	kinds map[string][]string // by task
}

func newLives(t *testing.T) *lives {
	return &lives{t, make(map[int]int64), make(map[string]string), make(map[string][]string)}
}

// TakeIn checks one change after those before it.
func (l *lives) takeIn(c watches.ShardChange) {
	l.Helper()
	if at, known := l.at[c.Shard]; known && c.Position != at+1 {
		l.Fatalf("position %d of shard %d comes after %d", c.Position, c.Shard, at)
	}
	l.at[c.Shard] = c.Position
	from, to := map[store.ChangeKind]string{
		store.ChangeEnqueued: " done dead gone", store.ChangeUpdated: "pending", store.ChangeHeld: "pending",
		store.ChangeReleased: "running", store.ChangeRetrying: "running", store.ChangeDone: "running", store.ChangeCancelRequested: "running",
		store.ChangeDead: "running pending", store.ChangeDeleted: "pending dead", store.ChangeRequeued: "dead",
	}[c.Kind], map[store.ChangeKind]string{
		store.ChangeHeld: "running", store.ChangeCancelRequested: "running", store.ChangeDone: "done", store.ChangeDead: "dead", store.ChangeDeleted: "gone",
	}[c.Kind]
	if !slices.Contains(strings.Split(from, " "), l.state[c.ID]) {
		l.Fatalf("%s is %q, and then %v: %v", c.ID, l.state[c.ID], c.Kind, l.kinds[c.ID])
	}
	l.state[c.ID] = cmp.Or(to, "pending")
	l.kinds[c.ID] = append(l.kinds[c.ID], c.Kind.String())
}

// watched creates a topic that is watched.
func watched(t *testing.T, s *service.Service, name string, shards, most int) {
	t.Helper()
	_, err := s.Topics.Create(t.Context(), name, service.TopicChange{Shards: &shards, WatchRetention: new(time.Hour), WatchMax: &most})
	if err != nil {
		t.Fatal(err)
	}
}

func beginWatch(t *testing.T, s *service.Service, o watches.Options) *watches.Watch {
	t.Helper()
	w, err := s.Watches.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	first, err := w.Next(t.Context())
	if err != nil || len(first.Changes) > 0 || first.Cursor == nil {
		t.Fatalf("the first frame is %+v, %v", first, err)
	}
	return w
}

// watchFor reads frames until one comes that is not about changes.
func watchFor(t *testing.T, w *watches.Watch) (changes []watches.ShardChange, cursor []byte) {
	t.Helper()
	for {
		frame, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if cursor = frame.Cursor; len(frame.Changes) == 0 {
			return changes, cursor
		}
		changes = append(changes, frame.Changes...)
	}
}

func told(changes []watches.ShardChange) (lines []string) {
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%v %s", c.Kind, c.ID))
	}
	return lines
}

// BullMQ's QueueEvents and River's subscriptions tell what happens; what happened while
// nobody listened, River does not tell.
func TestWatchTellsWhatHappens(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 1, 0)
		w := beginWatch(t, s, watches.Options{Topic: "mail"})
		defer w.Close()
		worker := servicetest.Subscribe(t, s, "mail", 2)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		worker.SettleWith(subscription.Settlement{Kind: subscription.SettleAck}, worker.TakeOne())
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "b", time.Hour))
		if _, err := s.Tasks.Delete(t.Context(), "mail", "b"); err != nil {
			t.Fatal(err)
		}
		changes, cursor := watchFor(t, w)
		if got, want := told(changes), []string{"enqueued a", "held a", "done a", "enqueued b", "deleted b"}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		if c := changes[1]; c.State() != store.StateRunning || c.Attempt != 1 || c.Shard != 0 || c.Position != 2 || c.Worker != "w" {
			t.Errorf("the hold is told as %+v", c)
		}
		quiet := beginWatch(t, s, watches.Options{Topic: "mail", Cursor: cursor})
		defer quiet.Close()
		if again, _ := watchFor(t, quiet); len(again) > 0 {
			t.Errorf("told again: %v", told(again))
		}
		all := beginWatch(t, s, watches.Options{Topic: "mail", Oldest: true})
		defer all.Close()
		if again, _ := watchFor(t, all); !slices.Equal(told(again), told(changes)) {
			t.Errorf("from the oldest: %v", told(again))
		}
	})
}

func TestWatchBeginsWithTheLastChanges(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 1, 0)
		for _, id := range []string{"a", "b", "c"} {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", id, time.Hour))
		}
		for last, want := range map[int][]string{0: nil, 1: {"enqueued c"}, 2: {"enqueued b", "enqueued c"}, 1000: {"enqueued a", "enqueued b", "enqueued c"}} {
			w := beginWatch(t, s, watches.Options{Topic: "mail", Last: last})
			if got, _ := watchFor(t, w); !slices.Equal(told(got), want) {
				t.Errorf("the last %d: %v, want %v", last, told(got), want)
			}
			w.Close()
		}
		for _, o := range []watches.Options{{Last: -1}, {Last: 1001}, {Last: 1, Oldest: true}, {Last: 1, Cursor: []byte("x")}} {
			o.Topic = "mail"
			if _, err := s.Watches.Open(t.Context(), o); problem.FromStore(err).Field != "last" {
				t.Errorf("%+v: %v", o, err)
			}
		}
	})
}

func TestWatchGoesOnBehindEachChange(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 4, 0)
		w := beginWatch(t, s, watches.Options{Topic: "mail"})
		defer w.Close()
		begin := w.At().Cursor("mail", true)
		for i := range 40 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint("t", i), time.Hour))
		}
		changes, _ := watchFor(t, w)
		if len(changes) != 40 {
			t.Fatalf("told %v", told(changes))
		}
		seen := make(map[int]int64)
		for i, c := range changes {
			seen[c.Shard] = c.Position
			cursor := slices.Clone(begin)
			for shard, last := range seen { // as the SDK does in the midst of a frame
				cursor = position.Append(cursor, shard, last)
			}
			rest := beginWatch(t, s, watches.Options{Topic: "mail", Cursor: cursor})
			behind, _ := watchFor(t, rest)
			rest.Close()
			if len(behind) != len(changes)-1-i {
				t.Fatalf("%d changes behind change %d of %d", len(behind), i, len(changes))
			}
		}
	})
}

func TestWatchLooksForSomeChangesOnly(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 2, 0)
		w := beginWatch(t, s, watches.Options{Topic: "mail", Filter: watches.Filter{IDs: []string{"t3", "t7"}, Kinds: []store.ChangeKind{store.ChangeDeleted}}})
		defer w.Close()
		for i := range 10 {
			id := fmt.Sprint("t", i)
			servicetest.EnqueueOne(t, s, servicetest.After("mail", id, time.Hour))
			if i != 7 {
				if _, err := s.Tasks.Delete(t.Context(), "mail", id); err != nil {
					t.Fatal(err)
				}
			}
		}
		changes, cursor := watchFor(t, w)
		if got := told(changes); !slices.Equal(got, []string{"deleted t3"}) {
			t.Errorf("told %v", got)
		}
		rest := beginWatch(t, s, watches.Options{Topic: "mail", Cursor: cursor})
		defer rest.Close()
		if behind, _ := watchFor(t, rest); len(behind) > 0 {
			t.Errorf("the cursor is before what was not looked for: %v", told(behind))
		}
	})
}

// watchedByTenant creates topic mail, which is watched and indexes attribute tenant.
func watchedByTenant(t *testing.T, s *service.Service) {
	t.Helper()
	topic := s.Node().Config().Topic
	topic.Name, topic.Watch.Retention, topic.Indexed = "mail", time.Hour, store.NewIndexSet("tenant")
	if _, err := s.Node().Store().PutTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
}

func TestWatchByAttribute(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watchedByTenant(t, s)
		acme := watches.Filter{Attributes: []store.Attribute{{Key: "tenant", Value: "acme"}}}
		w := beginWatch(t, s, watches.Options{Topic: "mail", Filter: acme})
		defer w.Close()
		for i, tenant := range []string{"acme", "other", "", "acme"} {
			task := servicetest.After("mail", fmt.Sprint("t", i), time.Hour)
			if tenant != "" {
				task.Task.Attributes = []store.Attribute{{Key: "path", Value: "/"}, {Key: "tenant", Value: tenant}}
			}
			servicetest.EnqueueOne(t, s, task)
			if _, err := s.Tasks.Delete(t.Context(), "mail", task.Task.ID); err != nil {
				t.Fatal(err)
			}
		}
		changes, cursor := watchFor(t, w)
		got := told(changes)
		if slices.Sort(got); !slices.Equal(got, []string{"deleted t0", "deleted t3", "enqueued t0", "enqueued t3"}) {
			t.Errorf("told %v", got)
		}
		for _, c := range changes {
			if !slices.Equal(c.Attributes, acme.Attributes) {
				t.Errorf("%s has %v", c.ID, c.Attributes)
			}
		}
		path := watches.Filter{Attributes: []store.Attribute{{Key: "path", Value: "/"}}}
		if _, err := s.Watches.Open(t.Context(), watches.Options{Topic: "mail", Cursor: cursor, Filter: path}); servicetest.Reason(err) != "NOT_INDEXED" {
			t.Errorf("an attribute that is not indexed: %v", err)
		}
		topic, err := s.Node().Store().GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		topic.Indexed = store.NewIndexSet("path")
		if topic, err = s.Node().Store().PutTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		if err := s.Node().Topics().Configure(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the tail looks
		if _, err := w.Next(t.Context()); servicetest.Reason(err) != "NOT_INDEXED" {
			t.Errorf("an attribute that is not indexed any more: %v", err)
		}
	})
}

func TestAWatcherThatIsTooSlowIsToldSo(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 1, 1000)
		slow, quick := beginWatch(t, s, watches.Options{Topic: "mail"}), beginWatch(t, s, watches.Options{Topic: "mail"})
		defer slow.Close()
		defer quick.Close()
		behind := beginWatch(t, s, watches.Options{Topic: "mail"})
		defer behind.Close()
		synctest.Wait() // the tail begins here
		total := 0
		for round := range 6 { // what the tail keeps, and then more than the log does
			var batch []service.NewTask
			for i := range 900 {
				batch = append(batch, servicetest.After("mail", fmt.Sprintf("r%d-%d", round, i), time.Hour))
			}
			if _, err := s.Tasks.Enqueue(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			for total < 900*(round+1) {
				changes, _ := watchFor(t, quick)
				total += len(changes)
			}
			if round == 1 {
				if late, _ := watchFor(t, behind); len(late) != 1800 {
					t.Fatalf("the one that was behind got %d changes", len(late))
				}
			}
		}
		if _, err := slow.Next(t.Context()); servicetest.Reason(err) != "CURSOR_EXPIRED" {
			t.Errorf("the slow one got %v", err)
		}
	})
}

func TestWatchEndsWithTheLog(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Watches.Open(t.Context(), watches.Options{Topic: "mail"}); servicetest.Reason(err) != "NOT_WATCHED" {
			t.Errorf("a topic without a log: %v", err)
		}
		configure := func(retention time.Duration) {
			if _, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{WatchRetention: &retention}); err != nil {
				t.Fatal(err)
			}
		}
		configure(time.Hour)
		w := beginWatch(t, s, watches.Options{Topic: "mail"})
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		changes, cursor := watchFor(t, w)
		if len(changes) != 1 {
			t.Errorf("told %v", told(changes))
		}
		configure(0)
		for range 2 {
			if _, err := w.Next(t.Context()); servicetest.Reason(err) != "NOT_WATCHED" {
				t.Errorf("after the log has ended: %v", err)
			}
		}
		w.Close()
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "b", time.Hour))
		configure(time.Hour)
		if _, err := s.Watches.Open(t.Context(), watches.Options{Topic: "mail", Cursor: cursor}); servicetest.Reason(err) != "CURSOR_EXPIRED" {
			t.Errorf("a cursor of the log before: %v", err)
		}
		again := beginWatch(t, s, watches.Options{Topic: "mail"})
		if err := s.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		if _, err := again.Next(t.Context()); servicetest.Reason(err) != "NO_TOPIC" && servicetest.Reason(err) != "NOT_WATCHED" {
			t.Errorf("after the topic is deleted: %v", err)
		}
		again.Close()
		if n := s.Watches.Tails(); n > 0 {
			t.Errorf("%d tails are left", n)
		}
	})
}

func TestWatchForgetsWhatIsOld(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 1, 0)
		w := beginWatch(t, s, watches.Options{Topic: "mail"})
		defer w.Close()
		begin := w.At().Cursor("mail", true)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 48*time.Hour))
		time.Sleep(30 * time.Minute)
		rest := beginWatch(t, s, watches.Options{Topic: "mail", Cursor: begin})
		if changes, _ := watchFor(t, rest); len(changes) != 1 {
			t.Errorf("within the retention: %v", told(changes))
		}
		rest.Close()
		time.Sleep(31 * time.Minute)
		if _, err := s.Watches.Open(t.Context(), watches.Options{Topic: "mail", Cursor: begin}); servicetest.Reason(err) != "CURSOR_EXPIRED" {
			t.Errorf("after the retention: %v", err)
		}
	})
}

// Watchers at all nodes hear the same, while shards change hands and numbers, and one
// goes from node to node.
func TestCursorOfShardsThatTheTopicNeverHadIsRefused(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 4, 1000)
		first := beginWatch(t, s, watches.Options{Topic: "mail"})
		_, cursor := watchFor(t, first)
		first.Close()
		for shard, ok := range map[int]bool{3: true, 4: false, actors.MaxShardNumber: false} {
			w, err := s.Watches.Open(t.Context(), watches.Options{Topic: "mail", Cursor: position.Append(slices.Clone(cursor), shard, 0)})
			if ok != (err == nil) {
				t.Errorf("shard %d of 4: %v", shard, err)
			}
			if w != nil {
				w.Close()
			}
			if e := new(problem.Error); !ok && (!errors.As(err, &e) || e.Reason != "BAD_CURSOR") {
				t.Errorf("shard %d of 4: %v, want BAD_CURSOR", shard, err)
			}
		}
	})
}

func TestWatchOverOwnersAndReshards(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		watched(t, a, "mail", 6, 0)
		wanders := beginWatch(t, a, watches.Options{Topic: "mail"})
		stays := beginWatch(t, f.Nodes["b"].Sys, watches.Options{Topic: "mail"})
		defer stays.Close()
		all, other := newLives(t), newLives(t)
		w := f.Work(f.Nodes["b"], "mail", 100)
		names := []string{"c", "b", "a"}
		for round := range 6 {
			w.Enqueue(f.Nodes["a"], "mail", fmt.Sprint("t", round, "-"), 60, 2*time.Second)
			w.Run(500 * time.Millisecond)
			switch round {
			case 1:
				f.Kill(f.Nodes["c"])
			case 2:
				f.Reshard(f.Nodes["b"], "mail", 3)
			case 4:
				f.Reshard(f.Nodes["a"], "mail", 8)
			}
			w.Run(8 * time.Second)
			changes, cursor := watchFor(t, wanders)
			for _, c := range changes {
				all.takeIn(c)
			}
			wanders.Close()
			next := f.Nodes[names[1+round%2]].Sys
			wanders = beginWatch(t, next, watches.Options{Topic: "mail", Cursor: cursor})
		}
		wanders.Close()
		w.Done(5 * time.Second)
		changes, _ := watchFor(t, stays)
		for _, c := range changes {
			other.takeIn(c)
		}
		if len(all.state) != 360 || len(other.state) != 360 {
			t.Errorf("told of %d and %d tasks", len(all.state), len(other.state))
		}
		for id, state := range all.state {
			if state != "done" || !slices.Equal(all.kinds[id], other.kinds[id]) {
				t.Errorf("%s is %s: %v and %v", id, state, all.kinds[id], other.kinds[id])
			}
		}
		got, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil || !place.Resharding(&got) {
			t.Errorf("the logs of former shards are gone: %+v, %v", got, err)
		}
		servicetest.Idle(time.Hour + time.Minute)
		if got, err = f.Store.GetTopic(t.Context(), "mail"); err != nil || place.Resharding(&got) {
			t.Errorf("former shards are left: %+v, %v", got, err)
		}
	})
}

func TestWatchIsChecked(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		watched(t, s, "mail", 1, 0)
		for field, o := range map[string]watches.Options{
			"topic":  {Topic: "no name"},
			"cursor": {Topic: "mail", Cursor: []byte("x")},
			"from":   {Topic: "mail", Cursor: []byte("x"), Oldest: true},
			"ids":    {Topic: "mail", Filter: watches.Filter{IDs: []string{"a b"}}},
		} {
			_, err := s.Watches.Open(t.Context(), o)
			if e, ok := err.(*problem.Error); !ok || e.Field != field || e.Kind != problem.Invalid {
				t.Errorf("%s: %v", field, err)
			}
		}
		for field, c := range map[string]service.TopicChange{
			"policy.watch_retention_ms": {WatchRetention: new(time.Millisecond)},
			"policy.watch_max_events":   {WatchMax: new(7)},
		} {
			_, err := s.Topics.Configure(t.Context(), "mail", c)
			if e, ok := err.(*problem.Error); !ok || e.Field != field || e.Kind != problem.Invalid {
				t.Errorf("%s: %v", field, err)
			}
		}
	})
}

// TestAFailoverThatLostChangesIsNoticed: the server that takes over gives positions that were told to other changes.
func TestAFailoverThatLostChangesIsNoticed(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		s := f.Nodes["a"].Sys
		watched(t, s, "mail", 1, 0)
		w := beginWatch(t, s, watches.Options{Topic: "mail"})
		defer w.Close()
		enqueue := func(id string) (cursor []byte) {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", id, time.Hour))
			changes, cursor := watchFor(t, w)
			if got := told(changes); !slices.Equal(got, []string{"enqueued " + id}) {
				t.Fatalf("told %v", got)
			}
			return cursor
		}
		kept := enqueue("t0")
		f.Store.Restore(f.Store.Clone()) // nothing is lost
		replica := f.Store.Clone()
		lost := enqueue("t1")
		f.Store.Restore(replica)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "t2", time.Hour)) // where t1 was
		if frame, err := w.Next(t.Context()); servicetest.Reason(err) != "CURSOR_EXPIRED" {
			t.Errorf("a watch goes on with %v, %v", told(frame.Changes), err)
		}
		if _, err := s.Watches.Open(t.Context(), watches.Options{Topic: "mail", Cursor: lost}); servicetest.Reason(err) != "CURSOR_EXPIRED" {
			t.Errorf("it goes on behind what was lost: %v", err)
		}
		again := beginWatch(t, s, watches.Options{Topic: "mail", Cursor: kept})
		defer again.Close()
		if changes, _ := watchFor(t, again); !slices.Equal(told(changes), []string{"enqueued t2"}) {
			t.Errorf("behind what was kept it is told %v", told(changes))
		}
	})
}
