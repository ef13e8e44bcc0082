package main

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/api/worker"
)

// attempts counts the deliveries of tasks that are numbered from 0.
type attempts struct {
	given   map[try]bool // what was delivered
	highest []int        // by task; 0: it was not delivered yet
	tasks   int          // that were delivered, once or more
	early   int          // deliveries before the due time
	repeats int          // those under a higher attempt than before: legal
	doubles []try        // those under an attempt that was given before
}

// try is one attempt of a task, which is delivered once. One that was overtaken on its way, in
// this process as well, may come after the next.
type try struct{ task, attempt int }

func newAttempts(tasks int) attempts {
	return attempts{given: map[try]bool{}, highest: make([]int, tasks)}
}

// deliver notes a delivery, and whether it is the first of its task. A producer whose answer died with a server
// repeats, and what is done by then is a task once more: what comes before the producer has an answer is no double.
func (a *attempts) deliver(i int, task *worker.Task, now time.Time, answered bool) (first bool) {
	this, last := try{i, task.Attempt}, a.highest[i]
	switch {
	case a.given[this]:
		a.doubles = append(a.doubles, this)
	case last == 0:
		a.tasks++
	case task.Attempt > last:
		a.repeats++
	}
	if answered {
		a.given[this] = true
	}
	a.highest[i] = max(last, task.Attempt)
	if now.Before(task.Due) {
		a.early++
	}
	return last == 0
}

// numberOf is the number that is the id of a task.
func numberOf(task *worker.Task) (i int) {
	if _, err := fmt.Sscan(task.ID, &i); err != nil {
		panic(err)
	}
	return i
}
