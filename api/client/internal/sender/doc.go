// Package sender sends the tasks of many callers to the server and returns an answer
// for each: all over one stream ([Pipeline]), or each caller's in calls of their own
// ([Unary]).
//
// A [Call] ends with an [Answer] for each [Request]. The package repeats nothing:
// package client knows which failures may be repeated. Errors are gRPC status errors;
// those that arise here, such as that of a closed pipeline, have a status too.
package sender
