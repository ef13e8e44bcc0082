// Package loglevel decides what a node logs: from which level on, and for which topics a line
// for each thing that happens to a task. Both can be changed for a while, and are then as they
// were configured again.
//
// The lines of tasks are at debug: the node writes them for every topic while it logs that
// level, and else for the topics that were asked for. Around the store of a node stands a
// Store that writes a line for what each call came to; the actor of a worker has it write what
// is sent. While nothing is asked for, a call costs a look at a pointer and at the level.
package loglevel
