package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// noon plus some milliseconds.
func noon(ms int) time.Time {
	return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
}

// told are the lines of a story, without the date.
func told(events []eventView) (lines []string) {
	for i := range events {
		lines = append(lines, strings.TrimPrefix(events[i].line(), "2030-01-01T12:"))
	}
	return lines
}

func wantLines(t *testing.T, name string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestStoryOfTheLog(t *testing.T) {
	story := func(task client.Snapshot, changes ...client.TaskChange) (lines []string) {
		s := story{task: task}
		for i := range changes {
			lines = append(lines, told(s.take(&changes[i]))...)
		}
		return lines
	}
	enqueued := client.TaskChange{Kind: client.ChangeEnqueued, Time: noon(0), Due: noon(1000)}
	wantLines(t, "late, failed and done", story(
		client.Snapshot{ID: "a", Attempts: []client.Attempt{{Number: 1, Node: "n1", Worker: "w1", Error: "refused"}, {Number: 2, Node: "n2", Worker: "w2"}}},
		enqueued,
		client.TaskChange{Kind: client.ChangeHeld, Time: noon(1002), Attempt: 1, Worker: "w1"},
		client.TaskChange{Kind: client.ChangeRetrying, Time: noon(5310), Due: noon(6400), Outcome: client.AttemptFailed},
		client.TaskChange{Kind: client.ChangeHeld, Time: noon(6400), Attempt: 2, Worker: "w2"},
		client.TaskChange{Kind: client.ChangeDone, Time: noon(6500), Outcome: client.AttemptAcked},
	),
		"00:00.000Z  enqueued          due 2030-01-01T12:00:01.000Z",
		"00:01.000Z  due",
		"00:01.002Z  held              by n1 for w1  2.0 ms late  attempt 1",
		"00:05.310Z  failed            after 4.308s  refused  due 2030-01-01T12:00:06.400Z  attempt 1",
		"00:06.400Z  due",
		"00:06.400Z  held              by n2 for w2  0.0 ms late  attempt 2",
		"00:06.500Z  acked             after 100.0 ms  attempt 2",
	)
	wantLines(t, "held ahead, and dead", story(client.Snapshot{}, enqueued,
		client.TaskChange{Kind: client.ChangeHeld, Time: noon(980), Attempt: 1, Worker: "w1"},
		client.TaskChange{Kind: client.ChangeDead, Time: noon(1500), Reason: client.DeadReasonPermanent, Outcome: client.AttemptFailed},
	),
		"00:00.000Z  enqueued          due 2030-01-01T12:00:01.000Z",
		"00:00.980Z  held              for w1  attempt 1",
		"00:01.000Z  due",
		"00:01.500Z  dead              after 500.0 ms  permanent  attempt 1",
	)
	wantLines(t, "moved before it was due, and deleted", story(client.Snapshot{}, enqueued,
		client.TaskChange{Kind: client.ChangeUpdated, Time: noon(500), Due: noon(9000), Version: 2},
		client.TaskChange{Kind: client.ChangeDeleted, Time: noon(2000)},
	),
		"00:00.000Z  enqueued          due 2030-01-01T12:00:01.000Z",
		"00:00.500Z  updated           version 2  due 2030-01-01T12:00:09.000Z",
		"00:02.000Z  deleted",
	)
	wantLines(t, "an error that is not for a terminal", story(
		client.Snapshot{Attempts: []client.Attempt{{Number: 1, Error: "\x1b[2Jno"}}},
		client.TaskChange{Kind: client.ChangeHeld, Time: noon(0), Attempt: 1, Worker: "w"},
		client.TaskChange{Kind: client.ChangeReleased, Time: noon(10), Due: noon(20), Outcome: client.AttemptReleased},
	),
		"00:00.000Z  held              for w  attempt 1",
		"00:00.010Z  released          after 10.0 ms  \\u001b[2Jno  due 2030-01-01T12:00:00.020Z  attempt 1",
	)
}

func TestStoryOfTheTask(t *testing.T) {
	dead := client.Snapshot{
		ID: "a", Topic: "mail", CreatedAt: noon(0), Due: noon(3000), State: client.StateDead, DeadReason: client.DeadReasonMaxRetries, FinishedAt: noon(3100),
		Attempts: []client.Attempt{
			{Number: 3, Node: "n1", Worker: "w1", Started: noon(1000), Ended: noon(1200), Outcome: client.AttemptFailed, Error: "refused"},
			{Number: 4, Node: "n1", Worker: "w1", Started: noon(3002), Ended: noon(3100), Outcome: client.AttemptHoldExpired},
		},
	}
	s := story{task: dead}
	wantLines(t, "dead", told(s.recalled()),
		"00:00.000Z  enqueued",
		"00:01.000Z  held              by n1 for w1  attempt 3",
		"00:01.200Z  failed            after 200.0 ms  refused  attempt 3",
		"00:03.000Z  due",
		"00:03.002Z  held              by n1 for w1  2.0 ms late  attempt 4",
		"00:03.100Z  hold_expired      after 98.0 ms  attempt 4",
		"00:03.100Z  dead              max_retries",
	)
	gaps := strings.Join(s.gaps(false), "\n")
	if !strings.Contains(gaps, "ddq topic set mail --watch-retention 1h") || !strings.Contains(gaps, "attempts 1 to 2 are not remembered") {
		t.Errorf("what is not known: %s", gaps)
	}
	if len(s.gaps(true)) != 0 {
		t.Errorf("a log knows all: %v", s.gaps(true))
	}

	s = story{task: client.Snapshot{ID: "b", CreatedAt: noon(0), Due: noon(3000), State: client.StateScheduled, Schedule: "nightly", Occurrence: noon(2000)}}
	wantLines(t, "a run that waits", told(s.recalled()),
		"00:00.000Z  enqueued          by schedule nightly, for 2030-01-01T12:00:02.000Z",
		"00:03.000Z  due",
	)
}

func TestStoryNamesTracesOfAttempts(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	done := client.Snapshot{
		ID: "a", Topic: "mail", CreatedAt: noon(0), Due: noon(3000), State: client.StateDone, FinishedAt: noon(3100),
		Attempts: []client.Attempt{
			{Number: 1, Node: "n1", Worker: "w1", Due: noon(990), Started: noon(1000), Ended: noon(1200), Outcome: client.AttemptFailed, Error: "refused"},
			{Number: 2, Node: "n1", Worker: "w1", Due: noon(3000), Started: noon(3002), Ended: noon(3100), Outcome: client.AttemptAcked, TraceID: id},
		},
	}
	s := story{task: done, traces: "https://traces.example.com/{trace_id}"}
	wantLines(t, "done", told(s.recalled()),
		"00:00.000Z  enqueued",
		"00:00.990Z  due",
		"00:01.000Z  held              by n1 for w1  10.0 ms late  attempt 1",
		"00:01.200Z  failed            after 200.0 ms  refused  attempt 1",
		"00:03.000Z  due",
		"00:03.002Z  held              by n1 for w1  2.0 ms late  attempt 2",
		"00:03.100Z  acked             after 98.0 ms  attempt 2  trace https://traces.example.com/"+id,
	)
	if gaps := strings.Join(s.gaps(false), "\n"); strings.Contains(gaps, "earlier attempts") {
		t.Errorf("what is known is not known: %s", gaps)
	}
	s = story{task: done}
	s.take(&client.TaskChange{Kind: client.ChangeHeld, Time: noon(3002), Attempt: 2, Worker: "w1"})
	wantLines(t, "of the log", told(s.take(&client.TaskChange{Kind: client.ChangeDone, Time: noon(3100), Outcome: client.AttemptAcked})),
		"00:03.100Z  acked             after 98.0 ms  attempt 2  trace "+id,
	)
}

// TestStoryEndsWithTheTask: a change that made the task what it is is the last one of its log.
func TestStoryEndsWithTheTask(t *testing.T) {
	waiting := client.Snapshot{ID: "a", State: client.StateScheduled, Due: noon(100), Version: 2}
	running := client.Snapshot{ID: "a", State: client.StateRunning, Attempts: []client.Attempt{{Number: 2}}}
	done := client.Snapshot{ID: "a", State: client.StateDone, FinishedAt: noon(50)}
	for _, test := range []struct {
		name   string
		task   client.Snapshot
		change client.TaskChange
		last   bool
	}{
		{"enqueued, and edited since", waiting, client.TaskChange{State: client.StateScheduled, Due: noon(50), Version: 1}, false},
		{"edited", waiting, client.TaskChange{State: client.StateScheduled, Due: noon(100), Version: 2}, true},
		{"the attempt before", running, client.TaskChange{State: client.StateRunning, Attempt: 1}, false},
		{"held", running, client.TaskChange{State: client.StateRunning, Attempt: 2}, true},
		{"asked to end since", client.Snapshot{ID: "a", State: client.StateRunning, CancelRequested: true, Attempts: running.Attempts}, client.TaskChange{State: client.StateRunning, Attempt: 2}, false},
		{"done", done, client.TaskChange{State: client.StateDone, Time: noon(50)}, true},
		{"done in a life of before", done, client.TaskChange{State: client.StateDone, Time: noon(40)}, false},
		{"gone", client.Snapshot{}, client.TaskChange{}, false},
	} {
		s := story{task: test.task}
		if got := s.isTold(&test.change); got != test.last {
			t.Errorf("%s: last %v", test.name, got)
		}
	}
}
