// Package workflows has the commands of ddq workflow.
package workflows
