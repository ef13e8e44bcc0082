// Package workflows is `ddq bench workflows`: workflows of several shapes, tasks that enqueue with
// their ack, and tasks with a journal, on one server, through the public client. What handlers did is
// held against what ddq promises, in the books of each shape, and what it came to is a line of JSON.
package workflows
