// Package flow goes through the graph of a workflow, as what clients wrote down lets it go: it
// bounds when each step can have begun and ended.
//
// All it says are the earliest moments at which something can have been so, whatever nobody was
// answered. It knows graphs and clocks, and asks for everything else (Facts); what is wrong with a
// workflow that was earlier the rules of package checker say.
package flow
