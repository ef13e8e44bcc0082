package conn

import (
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// requestID is the metadata with the id that a server gave a call which failed.
const requestID = "ddq-request-id"

// Failure is the error of a call that failed, with the id that the server gave it.
type Failure struct {
	error
	Request string
}

// Unwrap returns the error as gRPC has it.
func (f *Failure) Unwrap() error { return f.error }

// GRPCStatus is that of the error, whose message is not changed.
func (f *Failure) GRPCStatus() *status.Status { return status.Convert(f.error) }

// failed returns the error of a call, as a Failure where the server gave it an id.
func failed(err error, trailer metadata.MD) error {
	if ids := trailer.Get(requestID); len(ids) > 0 && ids[0] != "" {
		return &Failure{err, ids[0]}
	}
	return err
}

// stream is one whose failure has the id that the server gave it.
type stream struct{ grpc.ClientStream }

func (s stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return failed(err, s.Trailer())
}
