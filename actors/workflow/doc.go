// Package workflow is the pure core of workflows: what becomes of a graph of steps at an
// event, with no clock and no store.
//
//	Definition ── Check ──▶ Submit ──▶ Workflow ── Apply(events) ──▶ Workflow, Effects ── Commit ──▶ store.Commit
//
// A graph.Definition is what is submitted: named steps, and what each of them waits for. It is
// data, and never changes. An ack may grow a workflow: it adds steps below the one that it is of
// (graph.Growth).
//
// A Workflow has the state of each unit. A unit is a copy of a step, or the step itself where
// it has no copies. Apply applies events to it and settles it: it makes the units whose
// conditions are met, and skips those whose conditions cannot be met any more. What it
// decides and the tasks that it makes are one commit, so both are there or neither.
//
//	workflow  RUNNING ⇄ PAUSED ──▶ DONE | FAILING ──▶ UNDOING ──▶ FAILED | CANCELLING ──▶ UNDOING ──▶ CANCELLED
//	unit      WAITING ──▶ MADE ──▶ DONE | FAILED | CANCELLED;  SKIPPED;  UNDOING ──▶ UNDONE | UNDO_FAILED
//
// A retry brings a workflow back to RUNNING, also after its end.
//
// Invariants of a Workflow after each Apply:
//   - a unit is made only while the conditions of its step are met
//   - a workflow that is open has a unit that is made, a time to wake, or is paused
//   - an end is applied to the making that it is of: a later try has another id
package workflow
