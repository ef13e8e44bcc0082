// Package pulse is what has happened to the tasks of a topic of late: how many were enqueued,
// delivered, acked, failed and dead-lettered in each step of the last minute and of the last hour,
// and how late the deliveries were. It is plain bookkeeping: time is an argument, and whoever has a
// Pulse guards it.
//
// A node counts what it does itself. What the fleet did is the sum of what its nodes report, step by
// step: steps begin at multiples of their length on the store's clock, which all nodes follow.
package pulse
