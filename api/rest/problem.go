package rest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// problem is an error as RFC 9457 has it. Numbers of 64 bits are text, as in all JSON
// of the API.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Reason     string `json:"reason"`
	Detail     string `json:"detail"`
	Field      string `json:"field,omitempty"`
	State      string `json:"state,omitempty"`   // of the task that is in the way
	ID         string `json:"id,omitempty"`      // of that task
	Version    string `json:"version,omitempty"` // of that task
	RetryAfter string `json:"retry_after_ms,omitempty"`
	Incident   string `json:"incident,omitempty"` // under which the log has more
	RequestID  string `json:"request_id,omitempty"`
}

const typePrefix = "https://ddq.dev/errors/"

// statusClosed is what a client that went before its answer does not see.
const statusClosed = 499

// codeNames are the names of codes as the protocol spells them.
var codeNames = map[codes.Code]string{
	codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE",
	codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

var codeStatus = map[codes.Code]int{
	codes.Canceled: statusClosed, codes.Unknown: http.StatusInternalServerError, codes.InvalidArgument: http.StatusBadRequest,
	codes.DeadlineExceeded: http.StatusGatewayTimeout, codes.NotFound: http.StatusNotFound, codes.AlreadyExists: http.StatusConflict,
	codes.PermissionDenied: http.StatusForbidden, codes.ResourceExhausted: http.StatusTooManyRequests,
	codes.FailedPrecondition: http.StatusConflict, codes.Aborted: http.StatusConflict, codes.OutOfRange: http.StatusBadRequest,
	codes.Unimplemented: http.StatusNotImplemented, codes.Internal: http.StatusInternalServerError,
	codes.Unavailable: http.StatusServiceUnavailable, codes.DataLoss: http.StatusInternalServerError,
	codes.Unauthenticated: http.StatusUnauthorized,
}

// reasonStatus are the reasons whose status is not that of their code.
var reasonStatus = map[string]int{
	"PAYLOAD_TOO_LARGE": http.StatusRequestEntityTooLarge,
	"RESULT_TOO_LARGE":  http.StatusRequestEntityTooLarge,
	"CURSOR_EXPIRED":    http.StatusGone,
	"TASK_GONE":         http.StatusGone,
}

// refuse is a request that is not right as HTTP has it.
func refuse(status int, reason, field, detail string) *problem {
	return &problem{Status: status, Code: codeNames[codes.InvalidArgument], Reason: reason, Field: field, Detail: detail}
}

// malformed is a request whose text cannot be read as what it should be.
func malformed(field, detail string) *problem {
	return refuse(http.StatusBadRequest, "MALFORMED", field, detail)
}

// problemOf is what the client sees of the error of a call.
func problemOf(err error) *problem {
	st := status.Convert(err)
	p := &problem{Status: cmp.Or(codeStatus[st.Code()], http.StatusInternalServerError), Code: codeNames[st.Code()], Detail: st.Message()}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			p.Reason, p.ID, p.Version, p.Incident = d.Reason, d.Metadata["id"], d.Metadata["version"], d.Metadata["incident"]
			p.State = strings.ToUpper(d.Metadata["state"])
		case *errdetails.BadRequest:
			for _, violation := range d.FieldViolations {
				p.Field = violation.Field
			}
		case *errdetails.RetryInfo:
			p.RetryAfter = strconv.FormatInt(ceil(d.RetryDelay.AsDuration(), time.Millisecond), 10)
		}
	}
	p.Status = cmp.Or(reasonStatus[p.Reason], p.Status)
	if p.Reason == "AMBIGUOUS" {
		p.Detail += "; repeating it with the same id is safe"
	}
	p.Reason = cmp.Or(p.Reason, p.Code)
	return p
}

// For the headers of a request that change what an error means.
func (p *problem) asAsked(r *http.Request) *problem {
	switch {
	case p.Reason == "KEY_TAKEN" && r.Header.Get("Idempotency-Key") != "":
		p.Status = http.StatusUnprocessableEntity
	case p.Reason == "VERSION_MISMATCH" && r.Header.Get("If-Match") != "":
		p.Status = http.StatusPreconditionFailed
	}
	return p
}

// write answers with p. The request's id is what the guard has put into the headers.
func (p *problem) write(w http.ResponseWriter, r *http.Request) {
	h, own := w.Header(), p.named(w)
	h.Set("Content-Type", "application/problem+json")
	if ms, err := strconv.ParseInt(p.RetryAfter, 10, 64); err == nil && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable) {
		h.Set("Retry-After", strconv.FormatInt(ceil(time.Duration(ms)*time.Millisecond, time.Second), 10))
	}
	if p.Status == http.StatusRequestTimeout { // the rest of the body is not to be taken for a request
		h.Set("Connection", "close")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.Status == http.StatusPreconditionFailed && p.Version != "" {
		h.Set("ETag", etag(p.Version))
	}
	text, err := json.Marshal(own)
	if err != nil { // text and numbers always marshal
		panic(err)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}

// named is p with what follows from the rest.
func (p *problem) named(w http.ResponseWriter) *problem {
	own := *p
	own.Type = typePrefix + p.Reason
	own.Title = cmp.Or(http.StatusText(p.Status), "Client Closed Request")
	own.RequestID = w.Header().Get(requestIDHeader)
	return &own
}

// ceil is how many units d takes.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
