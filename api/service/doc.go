// Package service has the use cases in plain Go. A Service has a type for each noun: tasks,
// the finder, bulk edits, dead letters, topics, delivery and the fleet; watches, schedules,
// their calendars, workflows, audiences and forecasts have packages of their own. Each takes
// the roles of the store that it uses. The package knows neither gRPC nor actors' messages:
// the edge translates requests into its calls, and it reaches topics through the runtime's
// Node.
//
// The files are in layers, and none needs one that is above it:
//
//	service.go                                          all use cases, wired
//	schedules, audiences                                what those packages have done by this one
//	tasks, enqueue, edit, cancel, wait, find, count,    the use cases: a file for each, and
//	bulk, deadletters, topics, subscribe, fleet         none calls another noun's
//	router │ former, admission, smoothing               the way of an enqueue to its shards
//	lookup, walk, explain │ reader, indexscan           what several of them read by
//	task, filter, topicchange │ validate, fingerprint   what is asked for, and its check
package service
