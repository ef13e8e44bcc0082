// Package batch enqueues for those who have many tasks and do not wait for each.
package batch
