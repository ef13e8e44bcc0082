// Package timers has the timers of a shard. Due times and deadlines are on the clock of the
// machine whose store has the shard, and the node's wheel goes by another one: Timers shifts its
// queues by how far the two are apart. A TaskWheel is the queues of tasks; Alarms are moments.
package timers
