package faults

import "github.com/ddq-io/ddq/bench/faults/stand"

// onRedis are the stores that are a single redis-server.
func onRedis() []string { return []string{stand.RedisEverysec, stand.RedisAlways} }

// onAnyRedis are the stores of a fleet, whose kind does not matter to a fault.
func onAnyRedis() []string { return append(onRedis(), replicated()...) }

// everywhere are the stores whose kind does not matter to a fault.
func everywhere() []string { return append(onAnyRedis(), stand.Embedded) }

func replicated() []string { return []string{stand.RedisSentinel, stand.RedisCluster} }

// replicatedFast are those that do not wait.
func replicatedFast() []string { return []string{stand.RedisSentinelFast, stand.RedisClusterFast} }
