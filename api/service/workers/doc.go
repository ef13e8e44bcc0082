// Package workers lists who takes tasks: the subscriptions of workers, and the calls that wait for
// tasks, at every node of the fleet. Each node knows its own, in memory; nothing asks the store for them.
package workers
