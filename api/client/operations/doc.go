// Package operations has nodes change many tasks for callers that do not wait for it. A client.Client
// has its calls.
package operations
