// Package schedule is the pure core of what comes again: what becomes of a schedule at
// an event, with no clock and no store.
//
//	timetable ──names──▶ occurrence ──lead──▶ made ahead ──due──▶ running ──ended for good──▶ done | failed
//	                        │                     └ edit, pause, delete, trigger: taken back while pending
//	                        └── decided against ──▶ skipped (reason)
//
// Each occurrence of an active schedule is decided once: a run is made of it, or there is a
// reason why not. Step decides as far as it can, and says what is to be changed in the
// same commit that stores the schedule it returns: so a run and the decision that made
// it are there together, or not at all.
//
// A run is made some seconds ahead of its time, as a task that is not due yet. Where runs
// may not overlap, one is made ahead only while none is open; else the decision waits
// for the end of the open one, or for the occurrence itself, whichever is first. So
// making ahead shows in nothing but a task that is there a little earlier.
package schedule
