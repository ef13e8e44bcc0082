package service_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// minutely is a schedule of the topic report, for an audience unless that has no name.
func minutely(users string) schedules.Definition {
	d := schedules.Definition{Topic: "report", Name: "minutely", Spec: schedule.Spec{
		Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "* * * * *"}}}, History: schedules.DefaultHistory,
		Template: schedule.Template{Task: store.Task{MaxRetries: -1}},
	}}
	if users != "" {
		d.Audience = &schedule.Target{Name: users, Window: 10 * time.Minute, Grain: time.Second, Quiet: uint8(audience.Defer)}
	}
	return d
}

func millis() store.Millis { return store.Millis(time.Now().UnixMilli()) }

// deletion is a test that deletes the topic report.
type deletion struct {
	*testing.T
	*service.Service
}

func (d deletion) put(s schedules.Definition) {
	d.Helper()
	if _, err := d.Schedules.Put(d.Context(), s, nil); err != nil {
		d.Fatal(err)
	}
}

// refused checks that the topic stays without force, and goes with it.
func (d deletion) refused(why string) {
	d.Helper()
	if err := d.Topics.Delete(d.Context(), "report", false); servicetest.ReasonOf(err) != "TOPIC_NOT_EMPTY" {
		d.Errorf("a topic that has %s: %v", why, err)
	}
	d.forced()
}

func (d deletion) forced() {
	d.Helper()
	if err := d.Topics.Delete(d.Context(), "report", true); err != nil {
		d.Fatal(err)
	}
}

// A schedule goes with its topic, and so do its open run and the one that was made ahead. Another
// topic of the name has none of it, and nothing is made any more.
func TestSchedulesGoWithTheirTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		d, w := deletion{t, s}, servicetest.Subscribe(t, s, "report", 100)
		open := minutely("")
		open.Overlap, open.Timetable.Entries = schedule.Allow, []timetable.Entry{{Every: 10 * time.Second}}
		d.put(open)
		servicetest.Idle(11 * time.Second)
		held := w.TakeOne()
		servicetest.Idle(5 * time.Second) // the next one is there ahead of its time
		status, err := s.Topics.Describe(t.Context(), "report")
		if err != nil || status.Depth.Running != 1 || status.Depth.Scheduled != 1 {
			t.Fatalf("before the deletion: %+v, %v", status.Depth, err)
		}
		d.forced()
		if _, err := s.Schedules.Get(t.Context(), "report", "minutely"); servicetest.ReasonOf(err) != "NO_TOPIC" {
			t.Errorf("its schedule: %v", err)
		}
		if _, err := s.Delivery.Settle(t.Context(), "report", []subscription.Settlement{{Kind: subscription.SettleAck, ID: held.Task.ID, Token: held.Token}}); servicetest.ReasonOf(err) != "NO_TOPIC" {
			t.Errorf("an ack of its open run: %v", err)
		}

		servicetest.EnqueueOne(t, s, nextTask("report", "later"))
		again := servicetest.Subscribe(t, s, "report", 100)
		servicetest.Idle(time.Second)
		again.Settle(subscription.SettleAck, again.Gets("later")["later"])
		servicetest.Idle(time.Hour)
		again.Gets()
		if _, err := s.Schedules.Get(t.Context(), "report", "minutely"); servicetest.ReasonOf(err) != "NO_SCHEDULE" {
			t.Errorf("the schedule in another topic of the name: %v", err)
		}
		d.put(minutely(""))
		found, err := s.Schedules.Get(t.Context(), "report", "minutely")
		if err != nil || found.Version() != 1 || len(found.Open)+len(found.History) != 0 {
			t.Errorf("another schedule of the name: %+v, %v", found, err)
		}
	})
}

// What a topic has besides tasks keeps it from being deleted without force.
func TestTopicIsNotEmptyWithoutTasks(t *testing.T) {
	for why, fill := range map[string]func(d deletion){
		"a schedule": func(d deletion) { d.put(minutely("")) },
		"a workflow": func(d deletion) {
			_, err := d.Workflows.Submit(d.Context(), &workflows.Submit{Topic: "report", Definition: graph.Definition{
				Steps: []graph.Step{{Name: "a", Wait: &graph.Wait{Signal: "go"}}},
			}})
			if err != nil {
				d.Fatal(err)
			}
		},
		"tasks for another topic": func(d deletion) {
			w := servicetest.Subscribe(d.T, d.Service, "report", 100)
			configure(d.T, d.Service, "audit", func(c *store.Topic) { c.EnqueuePaused = true })
			servicetest.EnqueueOne(d.T, d.Service, nextTask("report", "first"))
			if _, err := ackNext(d.T, d.Service, "report", w.Gets("first")["first"], nextTask("audit", "waits")); err != nil {
				d.Fatal(err)
			}
		},
		"tasks that could not be delivered": func(d deletion) {
			w := servicetest.Subscribe(d.T, d.Service, "report", 100)
			configure(d.T, d.Service, "audit", func(c *store.Topic) { c.EnqueuePaused = true })
			servicetest.EnqueueOne(d.T, d.Service, nextTask("report", "first"))
			if _, err := ackNext(d.T, d.Service, "report", w.Gets("first")["first"], nextTask("audit", "too large by then")); err != nil {
				d.Fatal(err)
			}
			configure(d.T, d.Service, "audit", func(c *store.Topic) { c.EnqueuePaused, c.MaxPayload = false, 3 })
			servicetest.Idle(20 * time.Second)
			if page, _, err := d.DeadLetters.List(d.Context(), "report", service.DeadFilter{}, 10, ""); len(page) != 1 || err != nil {
				d.Fatalf("undeliverable are %v, %v", page, err)
			}
		},
	} {
		t.Run(why, func(t *testing.T) {
			servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
				d := deletion{t, s}
				fill(d)
				servicetest.Idle(time.Second)
				d.refused(why)
			})
		})
	}
}

// What has arrived behind a reshard, and is nowhere else, is lost with the topic.
func TestTopicInWhichSomethingArrivesIsNotEmpty(t *testing.T) {
	topic, spec := &store.Topic{Name: "report", Shards: 1}, minutely("").Spec
	spec.Overlap, spec.CatchUp, spec.Grace = schedule.Skip, schedule.Last, time.Minute
	body, err := schedule.Encode(&schedule.Schedule{Name: "moved", Life: 1, Phase: schedule.Active, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	moves, err := schedule.MoveOut(schedule.Look{Cell: store.Cell{ID: schedule.CellID("moved"), Version: 1, Body: body}, Topic: topic}, schedule.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for why, p := range map[string]store.Parcel{
		"a schedule that moves":                  moves.Send[0],
		"an end for a workflow of another topic": {To: store.CellID(store.CellHome) + "other/w", Body: []byte("x")},
	} {
		t.Run(why, func(t *testing.T) {
			servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
				n := f.Nodes["a"]
				configure(t, n.Sys, "report", func(c *store.Topic) { c.Shards = 1 })
				status, err := n.Sys.Topics.Describe(t.Context(), "report")
				if err != nil {
					t.Fatal(err)
				}
				// The shard would take it from the in-box at once.
				n.Store.AroundCommits(func(context.Context, servicetest.Committing) (store.Stamp, []store.CommitResult, error) {
					return store.Stamp{}, nil, store.ErrUnavailable
				})
				p.Topic = ""
				if _, _, err := f.Store.Commit(t.Context(), store.Shard{Topic: "report", Life: status.Topic.Life}, nil, []store.Commit{{Send: []store.Parcel{p}}}); err != nil {
					t.Fatal(err)
				}
				deletion{t, n.Sys}.refused(why)
			})
		})
	}
}

// Whoever is told that the store cannot be reached believes that nothing was deleted. When some of the topic
// is, he is told that nobody knows.
func TestADeletionThatStopsHalfWayIsUnknown(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		n, want := f.Nodes["a"], "STORE_DOWN"
		for at := 1; ; at++ {
			configure(t, n.Sys, "report", func(c *store.Topic) { c.Shards = 2 })
			calls := 0
			n.Store.OnDelete(func(bool) error {
				if calls++; calls == at {
					return store.ErrUnavailable
				}
				return nil
			})
			err := n.Sys.Topics.Delete(t.Context(), "report", true)
			if calls < at { // nothing failed
				if at != 6 || err != nil {
					t.Errorf("a deletion has %d calls, and ends with %v", calls, err)
				}
				return
			}
			if servicetest.ReasonOf(err) != want {
				t.Errorf("after %d of its calls the deletion ends with %v, want %s", at-1, err, want)
			}
			want = "AMBIGUOUS"
		}
	})
}

// A topic whose schedule was deleted is as empty as one that never had any.
func TestTopicWhoseSchedulesAreGoneIsEmpty(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		d, w := deletion{t, s}, servicetest.Subscribe(t, s, "report", 100)
		d.put(minutely(""))
		servicetest.Idle(time.Minute)
		w.Settle(subscription.SettleAck, w.TakeOne())
		servicetest.Idle(time.Second)
		if _, err := s.Schedules.Delete(t.Context(), "report", "minutely", schedules.Deletion{}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		if err := s.Topics.Delete(t.Context(), "report", false); err != nil {
			t.Error(err)
		}
	})
}

// A run of an audience is cancelled with the topic that it is in: it takes none of the places of
// those that may be open, and keeps nobody from deleting the audience.
func TestRunsOfAudiencesAreCancelledWithTheirTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		d := deletion{t, s}
		if _, err := s.Audiences.Create(t.Context(), audiences.Spec{Name: "users", Shards: 2}, millis()); err != nil {
			t.Fatal(err)
		}
		var batch []audiences.Recipient
		for i := range 500 {
			batch = append(batch, audiences.Recipient{ID: fmt.Sprint("user-", i)})
		}
		if _, err := s.Audiences.Put(t.Context(), "users", 0, batch); err != nil {
			t.Fatal(err)
		}
		for round := range 20 {
			d.put(minutely("users"))
			servicetest.Idle(2 * time.Minute)
			runs, err := s.Audiences.Runs(t.Context(), "users", millis())
			if err != nil || len(runs) == 0 || runs[0].Ended != 0 || runs[0].Made() == 0 {
				t.Fatalf("round %d: runs are %+v, %v", round, runs, err)
			}
			d.forced()
			servicetest.Idle(time.Second)
			after, err := s.Audiences.Run(t.Context(), "users", runs[0].Walk.Run, millis())
			if err != nil || after.Lost || !after.Cancelled || after.Ended == 0 {
				t.Fatalf("round %d: after the deletion the run is %+v, %v", round, after, err)
			}
		}
		if err := s.Audiences.Delete(t.Context(), "users", millis()); err != nil {
			t.Error(err)
		}
	})
}
