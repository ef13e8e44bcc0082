// Package engine is what actors run on: mailboxes, the pool of goroutines, restarts
// after a panic, and store calls that come back as messages, in batches. It is the home of the
// actor library, and knows nothing of tasks.
package engine
