// Package tasks shows tasks: those of a topic, its dead letters, and one with its timeline and what can be done to it.
package tasks
