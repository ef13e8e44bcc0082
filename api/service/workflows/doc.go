// Package workflows has the use cases of workflows. What they need of topics and tasks comes in
// by Topics and Tasks.
//
// The files are in layers, and none needs one that is above it:
//
//	submit, change, list, steps, wait, watch   the use cases
//	workflows │ quota                          where workflows are, and how many
//	check                                      what is asked for
//	problems                                   what is refused
//
// Any node answers: a workflow is read from its cells, stepped, and put back if nobody else has
// changed it meanwhile. That is package actors/workflow/access; the rules are actors/workflow's.
package workflows
