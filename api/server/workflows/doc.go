// Package workflows answers WorkflowService: it translates requests for the use cases of package
// api/service/workflows, and their answers back.
//
// definition.go has what is submitted, both ways, and status.go how workflows stand. What it
// needs of the server that it is part of comes in by Edge.
package workflows
