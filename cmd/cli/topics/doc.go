// Package topics has the commands for topics: their policies and limits, what is in them, and
// their pauses.
package topics
