// Package newtask reads what callers ask for when they enqueue: by itself, in a schedule, or with
// an ack.
package newtask
