// Package service has the use cases in plain Go. A Service has a type for each noun: tasks,
// the finder, bulk edits, dead letters, topics, watches, delivery and the fleet. Each takes
// the roles of the store that it uses. The package knows neither gRPC nor actors' messages:
// the edge translates requests into its calls, and it reaches topics through the runtime's
// Node.
package service
