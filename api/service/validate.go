package service

import (
	"cmp"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/text"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// limits check requests.
type limits actors.Limits

// CheckID allows visible ASCII.
func (l *limits) CheckID(id string) *problem.Error {
	if id == "" {
		return problem.BadField("id", "BAD_ID", "id is required")
	}
	if len(id) > l.ID {
		return problem.BadField("id", "NAME_TOO_LONG", "id has %d bytes; at most %d are allowed", len(id), l.ID)
	}
	if !text.Visible(id) {
		return problem.BadField("id", "BAD_ID", "id must be visible ASCII without spaces")
	}
	return nil
}

func (l *limits) checkTask(t *NewTask) *problem.Error {
	if t.Task.ID != "" {
		if err := l.CheckID(t.Task.ID); err != nil {
			return err
		}
	}
	if err := checkIdempotency(&t.Task); err != nil {
		return err
	}
	if err := l.checkContents(&t.Task, t.ExpireAfter); err != nil {
		return err
	}
	if err := checkFingerprint(t.PayloadFingerprint); err != nil {
		return err
	}
	return checkOrdering(&t.Task)
}

// A fingerprint of a payload is a hash: shorter ones would be those of two payloads too often.
const minFingerprint, maxFingerprint = 16, 32

// checkFingerprint allows none.
func checkFingerprint(of []byte) *problem.Error {
	if n := len(of); n > 0 && (n < minFingerprint || n > maxFingerprint) {
		return problem.BadField("payload_fingerprint", "BAD_FINGERPRINT", "payload_fingerprint has %d bytes; it must have %d to %d", n, minFingerprint, maxFingerprint)
	}
	return nil
}

// checkContents checks what a task brings, and an edit may change.
func (l *limits) checkContents(t *store.Task, expireAfter time.Duration) *problem.Error {
	if err := l.CheckAttributes(t.Attributes); err != nil {
		return err
	}
	if t.MaxRetries < -1 || t.MaxRetries > l.MaxRetries {
		return problem.BadField("max_retries", "OUT_OF_RANGE_FIELD", "max_retries must be 0 to %d", l.MaxRetries)
	}
	if t.Backoff != nil {
		if err := checkBackoff(*t.Backoff); err != nil {
			return err
		}
	}
	if expireAfter < 0 {
		return problem.BadField("expire_after", "BAD_TIME", "expire_after must not be negative")
	}
	if err := checkTraits(t.Traits); err != nil {
		return err
	}
	if t.HandlerTimeout < 0 || t.HandlerTimeout > maxHandlerTimeout {
		return problem.BadField("handler_timeout_ms", "OUT_OF_RANGE_FIELD", "handler_timeout_ms must be 1 to %d", maxHandlerTimeout.Milliseconds())
	}
	return l.checkVisibility(t.Visibility)
}

// maxHandlerTimeout is the longest that a task may let a handler run: a leap year.
const maxHandlerTimeout = 366 * 24 * time.Hour

// checkTraits allows none.
func checkTraits(t *store.Traits) *problem.Error {
	switch {
	case t == nil:
		return nil
	case t.Priority < 0 || t.Priority > store.MaxPriority:
		return problem.BadField("priority", "OUT_OF_RANGE_FIELD", "priority must be 0 to %d", store.MaxPriority)
	case t.FairnessWeight < 0 || t.FairnessWeight > store.MaxWeight:
		return problem.BadField("fairness_weight", "OUT_OF_RANGE_FIELD", "fairness_weight must be 0 to %d", store.MaxWeight)
	case t.FairnessWeight > 0 && t.FairnessKey == "":
		return problem.BadField("fairness_weight", "BAD_KEY", "fairness_weight is that of a fairness_key, which is not given")
	}
	return cmp.Or(text.CheckKey("fairness_key", t.FairnessKey), text.CheckKey("rate_key", t.RateKey), text.CheckKey("concurrency_key", t.ConcurrencyKey),
		text.CheckKey("ordering_key", t.OrderingKey))
}

// CheckAttributes allows none.
func (l *limits) CheckAttributes(attributes []store.Attribute) *problem.Error {
	if len(attributes) > l.Attributes {
		return problem.BadField("attributes", "BAD_ATTRIBUTES", "%d attributes; at most %d are allowed", len(attributes), l.Attributes)
	}
	for i, a := range attributes {
		switch {
		case a.Key == "" || len(a.Key) > l.AttributeKey:
			return problem.BadField("attributes", "BAD_ATTRIBUTES", "the key of an attribute must have 1 to %d bytes", l.AttributeKey)
		case len(a.Value) > l.AttributeVal:
			return problem.BadField("attributes", "BAD_ATTRIBUTES", "attribute %q has %d bytes; at most %d are allowed", a.Key, len(a.Value), l.AttributeVal)
		case !utf8.ValidString(a.Key) || !utf8.ValidString(a.Value):
			return problem.BadField("attributes", "BAD_ATTRIBUTES", "attributes must be UTF-8")
		}
		for _, b := range attributes[:i] {
			if a.Key == b.Key {
				return problem.BadField("attributes", "BAD_ATTRIBUTES", "attribute %q is given twice", a.Key)
			}
		}
	}
	return nil
}

// checkVisibility allows 0, which leaves it to the topic.
func (l *limits) checkVisibility(d time.Duration) *problem.Error {
	if d != 0 && (d < l.MinVisibility || d > l.MaxVisibility) {
		return problem.BadField("visibility_timeout_ms", "OUT_OF_RANGE_FIELD", "visibility_timeout_ms must be %d to %d",
			l.MinVisibility.Milliseconds(), l.MaxVisibility.Milliseconds())
	}
	return nil
}

// checkName checks what is shown to people as it came; an empty one is fine.
func (l *limits) checkName(field, name string) *problem.Error {
	return text.CheckNote(field, name, l.ID, "BAD_NAME")
}

func checkBackoff(b store.Backoff) *problem.Error {
	switch {
	case b.Kind < store.BackoffFixed || b.Kind > store.BackoffExponential:
		return problem.BadField("backoff.kind", "BAD_ENUM", "backoff.kind is required")
	case b.Max < 0:
		return problem.BadField("backoff.max_ms", "OUT_OF_RANGE_FIELD", "backoff.max_ms must not be negative")
	}
	return problem.FirstInvalid(actors.BackoffBounds(b))
}

// checkAgainst applies the topic's own limits.
func (t *NewTask) checkAgainst(topic *store.Topic, now store.Millis) *problem.Error {
	if topic.EnqueuePaused {
		return problem.EnqueuePaused(topic.Name)
	}
	return t.checkBounds(topic, now)
}

// checkBounds applies those that say what a task may be, and not whether the topic takes any.
func (t *NewTask) checkBounds(topic *store.Topic, now store.Millis) *problem.Error {
	if n := len(t.Task.Payload); n > topic.MaxPayload {
		return errPayload(n, topic.MaxPayload)
	}
	return t.When.check(topic, now)
}

func errPayload(n, most int) *problem.Error {
	return problem.BadField("payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", n, most)
}

func checkExpiry(expires, due store.Millis) *problem.Error {
	if expires != 0 && expires <= due {
		return errExpiry()
	}
	return nil
}

func errExpiry() *problem.Error {
	return problem.BadField("expire_time", "BAD_TIME", "expire_time must be after the due time")
}

func (w When) check(topic *store.Topic, now store.Millis) *problem.Error {
	field, delay := "delay", w.Delay
	if w.At != 0 {
		// Times too far apart for a Duration count as its largest.
		field, delay = "execute_time", w.At.Sub(min(now, w.At))
		if (w.At - now) > store.Millis(topic.MaxDelay.Milliseconds()) {
			delay = topic.MaxDelay + 1
		}
	}
	switch {
	case w.At < 0:
		return problem.BadField(field, "BAD_TIME", "execute_time must not be before 1970")
	case w.At == 0 && w.Delay < 0:
		return problem.BadField(field, "BAD_DELAY", "delay must not be negative")
	case delay > topic.MaxDelay:
		return &problem.Error{Kind: problem.OutOfRange, Reason: "DELAY_TOO_LONG", Field: field,
			Message: "due farther ahead than the topic's max delay of " + topic.MaxDelay.String()}
	}
	return nil
}

// checkIdempotency allows no key.
func checkIdempotency(t *store.Task) *problem.Error {
	k := t.Key
	switch {
	case k == nil:
		return nil
	case k.Text == "" || len(k.Text) > place.MaxKeyBytes:
		return problem.BadField("idempotency.key", "BAD_KEY", "idempotency.key has %d bytes; 1 to %d are allowed", len(k.Text), place.MaxKeyBytes)
	case !utf8.ValidString(k.Text):
		return problem.BadField("idempotency.key", "BAD_KEY", "idempotency.key must be UTF-8")
	case k.Window < 0 || k.Window > place.MaxWindow:
		return problem.BadField("idempotency.window_ms", "OUT_OF_RANGE_FIELD", "idempotency.window_ms must be 1 to %d", place.MaxWindow.Milliseconds())
	case t.Traits.Ordering() == "" && t.ID != "" && !place.MadeFor(t.ID, k.Text):
		return problem.BadField("id", "BAD_ID", "a task with an idempotency key gets its id from the server, or one that is made for the key: a UUID "+
			"whose third group is %s and whose last one begins with %s", place.KeyedMark, place.HashOfKey(k.Text))
	}
	for _, r := range k.Text {
		if !unicode.IsPrint(r) {
			return problem.BadField("idempotency.key", "BAD_KEY", "idempotency.key must be printable text")
		}
	}
	return nil
}

// checkOrdering allows no key.
func checkOrdering(t *store.Task) *problem.Error {
	key := t.Traits.Ordering()
	if key == "" || t.ID == "" || place.MadeFor(t.ID, key) {
		return nil
	}
	return problem.BadField("ordering_key", "BAD_ID", "a task with an ordering_key gets its id from the server, or one that is made for the key: a UUID "+
		"whose third group is %s and whose last one begins with %s", place.KeyedMark, place.HashOfKey(key))
}
