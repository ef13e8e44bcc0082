// Package operation is ddq operation, and the flags by which other commands start one.
package operation
