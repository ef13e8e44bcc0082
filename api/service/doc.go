// Package service has the use cases in plain Go: validate, route, edit, find, watch,
// topics, dead letters, the fleet. It knows neither gRPC nor actors' messages: the edge
// translates requests into its calls, and it reaches topics through the runtime's Node.
package service
