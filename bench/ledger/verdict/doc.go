// Package verdict is what came of checking a run: the promises that were broken, by whom and
// when, and how long the run made its clients wait.
//
// It knows no rule. Package checker complains to it and gives it the times of the run (Run),
// of which it makes phases and the points of a chart. It prints itself, as text and as JSON.
package verdict
