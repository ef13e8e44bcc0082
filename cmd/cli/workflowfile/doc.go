// Package workflowfile reads workflows, and what acks add to them, as people write them: the message
// of the API in YAML or JSON, and shorter where that is clear. It knows no commands.
package workflowfile
