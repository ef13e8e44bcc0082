package rest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// maxBody is what a request may bring, but for imports: a batch and what frames it.
const maxBody = 6 << 20

// readPerMiB is how long a MiB of a body may take.
const readPerMiB = 30 * time.Second

// limitTime bounds how long the body of a request may take, wherever the request goes: also what nobody reads
// is waited for, before the next request of its connection.
func limitTime(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	size := r.ContentLength
	if size < 0 || size > maxBody {
		size = maxBody
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readPerMiB * time.Duration(ceil(time.Duration(size), 1<<20)))) // where that is possible
	r.Body = &timedBody{r.Body, control}
}

// timedBody lifts the deadline at its end: the answer may take longer.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // none was set where that is not possible
	}
	return n, err
}

// limitBody bounds how much of a body is read.
func limitBody(w http.ResponseWriter, r *http.Request) *body {
	return &body{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody)}
}

// optional are the calls that need to be told nothing but what the path says.
var optional = []protoreflect.Name{
	"RetrieveRequest", "AckRequest", "NackRequest", "ExtendRequest", "CheckpointRequest", "PromoteTaskRequest", "CancelTaskRequest", "AcquireTokensRequest",
	"ListTasksRequest", "PurgeTopicRequest", "ResumeTopicRequest", "DrainNodeRequest", "UndrainNodeRequest", "SetLogLevelRequest", "PlanRebalanceRequest",
	"PauseScheduleRequest", "ResumeScheduleRequest", "TriggerScheduleRequest", "CancelBackfillRequest", "BeginReplacementRequest", "CancelRunRequest", "EndReplacementRequest",
	"CancelWorkflowRequest", "PauseWorkflowRequest", "ResumeWorkflowRequest", "RetryWorkflowRequest", "SkipStepRequest",
	"StopOperationRequest",
}

// checkParams refuses names in a path that are empty: to calls that would mean any.
func checkParams(params map[string]string) *problem {
	for name, value := range params {
		if value == "" {
			return refuse(http.StatusBadRequest, reasonOf(name), name, "must not be empty")
		}
	}
	return nil
}

// checkRequest refuses what no message could say.
func checkRequest(rt *route, r *http.Request, params map[string]string) *problem {
	if p := checkQuery(rt, r, params); p != nil {
		return p
	}
	if rt.body == "" {
		return nil
	}
	if r.ContentLength == 0 {
		if slices.Contains(optional, rt.input.Name()) {
			return nil
		}
		return malformed("", "a body is required")
	}
	return checkType(r, "application/json")
}

// checkType refuses a body that is not what the route takes.
func checkType(r *http.Request, want string) *problem {
	given, err := r.Header.Get("Content-Type"), error(nil)
	if given != want {
		given, _, err = mime.ParseMediaType(given)
	}
	if err != nil || given != want {
		return refuse(http.StatusUnsupportedMediaType, "BAD_TYPE", "", "the Content-Type of the body has to be "+want)
	}
	return checkEncoding(r)
}

func checkEncoding(r *http.Request) *problem {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse(http.StatusUnsupportedMediaType, "BAD_ENCODING", "", "the body must not be encoded")
	}
	return nil
}

// checkQuery refuses what the gateway would pass over in silence.
func checkQuery(rt *route, r *http.Request, params map[string]string) *problem {
	if r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return malformed("", "the query cannot be read: "+err.Error())
	}
	for name, values := range query {
		field := fieldOf(rt.input, name)
		_, inPath := params[field]
		if field == "" || inPath || rt.body == "*" || rt.body != "" && strings.HasPrefix(field+".", rt.body+".") {
			return malformed(name, "is not a parameter of the query")
		}
		if slices.ContainsFunc(values, func(v string) bool { return strings.ContainsRune(v, 0) }) {
			return malformed(name, "has a zero byte")
		}
	}
	return nil
}

// fieldOf is the path of a field as the proto spells it, or "" when there is none.
func fieldOf(m protoreflect.MessageDescriptor, name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if m == nil {
			return ""
		}
		field := m.Fields().ByName(protoreflect.Name(part))
		if field == nil {
			field = m.Fields().ByJSONName(part)
		}
		if field == nil {
			return ""
		}
		parts[i], m = string(field.Name()), field.Message()
	}
	return strings.Join(parts, ".")
}

// editsOf are what the headers of a request stand for. Where there is no body to put it
// in, it goes to the query.
func editsOf(rt *route, r *http.Request) (edits []edit, p *problem) {
	version, p := ifMatch(rt, r)
	if p != nil {
		return nil, p
	}
	switch {
	case version == 0:
	case rt.body == "*":
		edits = append(edits, setVersion(version))
	default:
		query := r.URL.Query()
		if query.Has("if_version") {
			return nil, refuse(http.StatusBadRequest, "BAD_ETAG", "if_version", "is in the query and in If-Match")
		}
		query.Set("if_version", strconv.FormatInt(version, 10))
		where := *r.URL
		where.RawQuery = query.Encode()
		r.URL = &where
	}
	key, p := idempotencyKey(rt, r)
	if p != nil {
		return nil, p
	}
	if key != "" {
		edits = append(edits, setKey(key))
	}
	token, p := holdToken(r)
	if p != nil {
		return nil, p
	}
	if token != nil && slices.Contains([]string{"ack", "nack", "extend", "checkpoint"}, rt.body) {
		edits = append(edits, setToken(token))
	}
	if rt.input.Name() == "EnqueueRequest" && len(r.Header["Traceparent"]) > 0 {
		edits = append(edits, setTrace(r.Header))
	}
	if rt.input.Name() == "UpdateTaskRequest" {
		edits = append(edits, maskOfBody)
	}
	return edits, nil
}

var versionTag = regexp.MustCompile(`^"v([1-9][0-9]{0,18})"$`)

func etag(version string) string { return `"v` + version + `"` }

// ifMatch is the version that a task or topic must have, 0 for any.
func ifMatch(rt *route, r *http.Request) (int64, *problem) {
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		return 0, nil
	}
	bad := refuse(http.StatusBadRequest, "BAD_ETAG", "If-Match", `is one tag as ETag gave it, such as "v3"`)
	if rt.input.Fields().ByName("if_version") == nil {
		bad.Detail = "is not for this request"
		return 0, bad
	}
	match := versionTag.FindStringSubmatch(given[0])
	if len(given) > 1 || match == nil {
		return 0, bad
	}
	version, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return 0, bad
	}
	return version, nil
}

func setVersion(version int64) edit {
	return func(m proto.Message, fields map[string]json.RawMessage) *problem {
		if _, also := fields["if_version"]; also {
			return refuse(http.StatusBadRequest, "BAD_ETAG", "if_version", "is in the body and in If-Match")
		}
		field := m.ProtoReflect().Descriptor().Fields().ByName("if_version")
		m.ProtoReflect().Set(field, protoreflect.ValueOfInt64(version))
		return nil
	}
}

// keyWindow is how long a key of the header Idempotency-Key is taken.
const keyWindow = 24 * time.Hour

// idempotencyKey is the key under which a request may be repeated, "" for none.
func idempotencyKey(rt *route, r *http.Request) (string, *problem) {
	given := r.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return "", nil
	}
	bad := refuse(http.StatusBadRequest, "BAD_KEY", "Idempotency-Key", "is one key of 1 to 128 printable characters")
	if rt.input != nil && rt.input.Name() != "EnqueueRequest" {
		bad.Detail = "is not for this request"
		return "", bad
	}
	if len(given) > 1 || given[0] == "" || len(given[0]) > 128 || strings.ContainsFunc(given[0], func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", bad
	}
	return given[0], nil
}

func setKey(key string) edit {
	return func(m proto.Message, _ map[string]json.RawMessage) *problem {
		e, ok := m.(*ddqv1.EnqueueRequest)
		if !ok {
			return nil
		}
		if e.Idempotency != nil || e.Id != "" {
			return refuse(http.StatusBadRequest, "BAD_KEY", "Idempotency-Key", "excludes id and idempotency in the request")
		}
		e.Idempotency = keyOf(key)
		return nil
	}
}

// keyOf makes the same request again the first task, and another one under the key an error.
func keyOf(key string) *ddqv1.Idempotency {
	return &ddqv1.Idempotency{
		Key: key, Scope: ddqv1.IdempotencyScope_IDEMPOTENCY_SCOPE_WINDOW,
		WindowMs: keyWindow.Milliseconds(), OnConflict: ddqv1.OnConflict_ON_CONFLICT_REJECT,
	}
}

// setTrace gives a task the trace context that the headers have, unless the body has one.
func setTrace(h http.Header) edit {
	return func(m proto.Message, _ map[string]json.RawMessage) *problem {
		e, ok := m.(*ddqv1.EnqueueRequest)
		parents := h.Values("Traceparent")
		if !ok || len(parents) != 1 || e.Traceparent != "" || e.Tracestate != "" { // of two, neither counts
			return nil
		}
		e.Traceparent = strings.ToValidUTF8(parents[0], "?")
		e.Tracestate = strings.ToValidUTF8(strings.Join(h.Values("Tracestate"), ","), "?")
		return nil
	}
}

const holdTokenHeader = "Ddq-Hold-Token" //nolint:gosec // the name of a header

// holdToken is the proof of a hold that came in a header, nil for none.
func holdToken(r *http.Request) ([]byte, *problem) {
	given := r.Header.Values(holdTokenHeader)
	if len(given) == 0 {
		return nil, nil
	}
	token, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(given[0], "="))
	if err != nil || len(given) > 1 || len(token) == 0 {
		return nil, refuse(http.StatusBadRequest, "BAD_TOKEN", holdTokenHeader, "is one token as it was handed out")
	}
	return token, nil
}

func setToken(token []byte) edit {
	return func(m proto.Message, fields map[string]json.RawMessage) *problem {
		if _, also := fields["hold_token"]; also {
			return refuse(http.StatusBadRequest, "BAD_TOKEN", "hold_token", "is in the body and in the header")
		}
		field := m.ProtoReflect().Descriptor().Fields().ByName("hold_token")
		m.ProtoReflect().Set(field, protoreflect.ValueOfBytes(token))
		return nil
	}
}

// maskOfBody makes an update change what the body names, if that does not say itself.
func maskOfBody(m proto.Message, fields map[string]json.RawMessage) *problem {
	update, ok := m.(*ddqv1.UpdateTaskRequest)
	if !ok || update.UpdateMask != nil {
		return nil
	}
	update.UpdateMask = &fieldmaskpb.FieldMask{}
	own := update.ProtoReflect().Descriptor().Fields()
	for name := range fields {
		switch name {
		case "topic", "id", "if_version", "update_mask":
			continue
		}
		if own.ByName(protoreflect.Name(name)) != nil {
			update.UpdateMask.Paths = append(update.UpdateMask.Paths, name)
		}
	}
	slices.Sort(update.UpdateMask.Paths)
	return nil
}
