package shard

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/shard/timers"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// sendDue comes from the wheel: tasks of this millisecond that are held are to be sent.
type sendDue struct{ ms int64 }

// unsentTask is a task that was held ahead of its due time, for a subscription.
type unsentTask struct {
	sub *subscription.Subscriber
	subscription.HeldTask
}

// unsentTasks are those that wait for their due times to be sent.
type unsentTasks struct {
	*shardState
	alarms timers.Alarms // of the milliseconds in byDue
	byDue  map[store.Millis][]unsentTask
	n      int
}

func (u *unsentTasks) open() {
	u.alarms = u.OpenAlarms(func(ms int64) { u.post(&sendDue{ms}) })
	u.byDue = make(map[store.Millis][]unsentTask)
}

func (u *unsentTasks) close() {
	u.CloseAlarms(u.alarms)
	clear(u.byDue)
	u.n = 0
}

func (u *unsentTasks) len() int { return u.n }

func (u *unsentTasks) add(tasks ...unsentTask) {
	for _, t := range tasks {
		due := t.Task.Due
		if len(u.byDue[due]) == 0 {
			u.alarms.Set(due)
		}
		u.byDue[due] = append(u.byDue[due], t)
		u.n++
	}
}

// take returns the tasks that are due in a millisecond.
func (u *unsentTasks) take(due store.Millis) []unsentTask {
	tasks := u.byDue[due]
	delete(u.byDue, due)
	u.alarms.Clear(due)
	u.n -= len(tasks)
	return tasks
}

// all returns every task, in order of due time.
func (u *unsentTasks) all() (all []unsentTask) {
	for _, tasks := range ordered.All(u.byDue, cmp.Compare) {
		all = append(all, tasks...)
	}
	return all
}

// takeIf takes out the tasks for which which says so.
func (u *unsentTasks) takeIf(which func(*unsentTask) bool) (taken []unsentTask) {
	for due, tasks := range ordered.All(u.byDue, cmp.Compare) {
		if !slices.ContainsFunc(tasks, func(t unsentTask) bool { return which(&t) }) {
			continue
		}
		u.take(due)
		for i := range tasks {
			if which(&tasks[i]) {
				taken = append(taken, tasks[i])
			} else {
				u.add(tasks[i])
			}
		}
	}
	return taken
}
