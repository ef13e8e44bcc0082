// Package terminal is how commands talk to people and scripts: results as a table or as
// JSON, progress, and text that is safe to show. It knows no server and no task.
package terminal
