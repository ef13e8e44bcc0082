// Package trail reads the audit logs of all nodes of a fleet as one. Each node reads its own; nothing
// here knows what a record says.
package trail
