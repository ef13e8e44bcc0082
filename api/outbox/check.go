package outbox

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
)

// Limits of a task, which are those of the protocol. What a topic allows is for the server to
// say: a row that is refused there is kept with the reason.
const (
	MaxPayload = 1 << 20 // bytes

	maxKey        = 128 // bytes
	maxAttributes = 32
	maxName       = 64    // bytes of the name of an attribute
	maxValue      = 1_024 // bytes of its value
	maxRetries    = 1_000
	minVisibility = time.Second
	maxVisibility = 12 * time.Hour
	maxDuration   = 366 * 24 * time.Hour
	maxPriority   = 9
	maxWeight     = 1_000
)

// MinWindow is the shortest window of an idempotency key of the caller's: how long a repeat
// of the relay has to be known.
const MinWindow = 10 * time.Minute

var topics = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// check refuses what could never be enqueued, with the errors that the server would answer.
// The caller's transaction is as it was then.
func check(t client.Task) error {
	return cmp.Or(checkContents(t), checkIdentity(t))
}

// checkContents leaves out what a row has of its own: its id and its key.
func checkContents(t client.Task) error {
	if _, err := t.Request(); err != nil { // what contradicts itself
		return err
	}
	for _, rule := range []func(client.Task) error{checkTopic, checkSize, checkAttributes, checkTimes, checkNumbers, checkKeys} {
		if err := rule(t); err != nil {
			return err
		}
	}
	return nil
}

func invalid(field, reason, format string, args ...any) error {
	return &client.Error{Code: codes.InvalidArgument, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

func outOfRange(field, format string, args ...any) error {
	return invalid(field, "OUT_OF_RANGE_FIELD", field+" must be "+format, args...)
}

func checkTopic(t client.Task) error {
	switch {
	case t.Topic == "":
		return invalid("topic", "BAD_NAME", "topic is required")
	case len(t.Topic) > maxKey:
		return invalid("topic", "NAME_TOO_LONG", "topic has %d bytes; at most %d are allowed", len(t.Topic), maxKey)
	case !topics.MatchString(t.Topic):
		return invalid("topic", "BAD_NAME", "topic must match %s", topics)
	}
	return nil
}

// checkIdentity refuses what a repeat of the relay could not be known by.
func checkIdentity(t client.Task) error {
	if t.ID != "" {
		return invalid("id", "BAD_ID", "an outbox makes the id; give the task an idempotency key to make it one with others")
	}
	k := t.Idempotency
	if k == nil {
		return nil
	}
	if err := checkKey(k.Key); err != nil {
		return err
	}
	switch {
	case k.Window < MinWindow || k.Window > maxDuration:
		return outOfRange("idempotency.window_ms", "%d to %d in an outbox, whose relay may enqueue a task again after it is done",
			MinWindow.Milliseconds(), maxDuration.Milliseconds())
	case k.OnConflict != 0 && k.OnConflict != client.ConflictReturn && k.OnConflict != client.ConflictReject:
		return invalid("idempotency.on_conflict", "BAD_ENUM", "idempotency.on_conflict must be return or reject in an outbox, whose relay may enqueue a task again after it was replaced")
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "" || len(key) > maxKey:
		return invalid("idempotency.key", "BAD_KEY", "idempotency.key has %d bytes; 1 to %d are allowed", len(key), maxKey)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }):
		return invalid("idempotency.key", "BAD_KEY", "idempotency.key must be printable text")
	}
	return nil
}

func checkSize(t client.Task) error {
	if n := len(t.Payload); n > MaxPayload {
		return invalid("payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", n, MaxPayload)
	}
	return nil
}

func checkAttributes(t client.Task) error {
	if len(t.Attributes) > maxAttributes {
		return invalid("attributes", "BAD_ATTRIBUTES", "%d attributes; at most %d are allowed", len(t.Attributes), maxAttributes)
	}
	for name, value := range t.Attributes {
		switch {
		case name == "" || len(name) > maxName:
			return invalid("attributes", "BAD_ATTRIBUTES", "the key of an attribute must have 1 to %d bytes", maxName)
		case len(value) > maxValue:
			return invalid("attributes", "BAD_ATTRIBUTES", "attribute %q has %d bytes; at most %d are allowed", name, len(value), maxValue)
		case !storable(name) || !storable(value):
			return invalid("attributes", "BAD_ATTRIBUTES", "attributes must be UTF-8 without the character 0")
		}
	}
	return nil
}

// storable tells whether a database keeps a text as it is.
func storable(text string) bool {
	return utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

func checkTimes(t client.Task) error {
	switch {
	case t.Delay < 0:
		return invalid("delay", "BAD_DELAY", "delay must not be negative")
	case t.Slack < 0:
		return invalid("slack", "BAD_DELAY", "slack must not be negative")
	case t.ExpireAfter < 0:
		return invalid("expire_after", "BAD_TIME", "expire_after must not be negative")
	case !t.Expires.IsZero() && !t.Due.IsZero() && !t.Expires.After(t.Due):
		return invalid("expire_time", "BAD_TIME", "expire_time must be after the due time")
	}
	return cmp.Or(checkTime("execute_time", t.Due), checkTime("latest_time", t.Latest), checkTime("expire_time", t.Expires))
}

// checkTime allows none.
func checkTime(field string, t time.Time) error {
	if t.IsZero() || t.UnixMilli() >= 0 && t.UTC().Year() <= maxYear {
		return nil
	}
	return invalid(field, "BAD_TIME", "%s must be of the years 1970 to %d", field, maxYear)
}

// maxYear is the last that all databases and the protocol have; a delay may add to it.
const maxYear = 9998

func checkNumbers(t client.Task) error {
	switch {
	case t.MaxRetries != nil && (*t.MaxRetries < 0 || *t.MaxRetries > maxRetries):
		return outOfRange("max_retries", "0 to %d", maxRetries)
	case t.VisibilityTimeout != 0 && (t.VisibilityTimeout < minVisibility || t.VisibilityTimeout > maxVisibility):
		return outOfRange("visibility_timeout_ms", "%d to %d", minVisibility.Milliseconds(), maxVisibility.Milliseconds())
	case t.HandlerTimeout < 0 || t.HandlerTimeout > maxDuration:
		return outOfRange("handler_timeout_ms", "1 to %d", maxDuration.Milliseconds())
	case t.Priority < 0 || t.Priority > maxPriority:
		return outOfRange("priority", "0 to %d", maxPriority)
	case t.FairnessWeight < 0 || t.FairnessWeight > maxWeight:
		return outOfRange("fairness_weight", "0 to %d", maxWeight)
	case t.FairnessWeight > 0 && t.FairnessKey == "":
		return invalid("fairness_weight", "BAD_KEY", "fairness_weight is that of a fairness_key, which is not given")
	case t.Backoff != nil && (t.Backoff.Kind < client.BackoffFixed || t.Backoff.Kind > client.BackoffExponential):
		return invalid("backoff.kind", "BAD_ENUM", "backoff.kind is required")
	}
	return nil
}

func checkKeys(t client.Task) error {
	for _, k := range []struct{ field, key string }{
		{"fairness_key", t.FairnessKey}, {"rate_key", t.RateKey}, {"concurrency_key", t.ConcurrencyKey}, {"ordering_key", t.OrderingKey},
	} {
		switch {
		case len(k.key) > maxKey:
			return invalid(k.field, "NAME_TOO_LONG", "%s has %d bytes; at most %d are allowed", k.field, len(k.key), maxKey)
		case !storable(k.key):
			return invalid(k.field, "BAD_KEY", "%s must be UTF-8 without the character 0", k.field)
		}
	}
	return nil
}
