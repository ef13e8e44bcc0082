// Package watches follows the changes of topics. A Watch is one watcher: where it is in the log
// of each shard, and what it looks for. All watchers of a topic at a node share a tail, which
// reads what is new once for all of them. A watcher that is farther back than the tail keeps
// reads the store at its own pace.
package watches
