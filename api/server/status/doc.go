// Package status turns errors of use cases into what callers see: a gRPC status with
// details, or the error of one item of a batch. It is the only place that knows codes.
package status
