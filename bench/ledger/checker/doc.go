// Package checker checks what the clients of a run wrote down against what ddq promises.
//
//	ledger.Writer ── *.ledger ──▶ Read ──▶ History ── evidence ──▶ rules ──▶ Verdict
//	(each client)                         (stories)                         (offences, figures)
//
// From the bottom up, and no file knows those above it:
//
//   - Stories: a history has one story for each task, made of its events: calls with their
//     answers, deliveries with their settlements, and how it was found in the end. A story
//     may be asked how often the task was created, when it was due, and what ended it.
//     Package clock bounds what the clock of the store said.
//   - Evidence: a history, and the times in which faults may have undone something. A task
//     is a story with its evidence: it says when a hold began and ended at the earliest, and
//     keeps offences.
//   - Rules, a file each (rule_*.go): functions that look at a task, or at all evidence, and
//     complain. They know neither one another nor who calls them. What several of them need
//     is below them: intervals of holds, rates, in package states the life that the
//     changes of a task tell, and in package flow when the steps of a workflow can have been.
//   - Check calls the rules, and makes the verdict: offences and figures, and the times of the
//     run. Package verdict makes phases of these and the points of a chart, which package
//     chart draws.
//
// To add a rule, write a function in a file of its own and name it in check.go: in taskRules
// when it is about each task by itself, in runRules when it is about several tasks, a topic
// or a watch; in scheduleRules, audienceRules and workflowRules when it is about one of those.
// A new kind of violation goes into violation.go of package verdict, and what has to be written
// down for it into event.go of package ledger.
package checker
