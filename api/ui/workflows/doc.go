// Package workflows shows workflows: all of them, and one as a graph with why each step waits.
package workflows
