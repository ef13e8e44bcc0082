package auth

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Secret is text that is not printed, logged or written as JSON. Behind a pointer it is not
// shown either where it is in a field that package fmt cannot ask.
type Secret struct{ text *string }

// NewSecret keeps text from being shown by accident.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.Reveal() == "" }

const shown = "[secret]"

// String hides the text.
func (Secret) String() string { return shown }

// GoString hides the text from %#v.
func (Secret) GoString() string { return shown }

// Format hides the text from every verb of package fmt.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// LogValue hides the text from logs.
func (Secret) LogValue() slog.Value { return slog.StringValue(shown) }

// MarshalJSON hides the text from results.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(shown) }

// MarshalText hides the text from every other encoding.
func (Secret) MarshalText() ([]byte, error) { return []byte(shown), nil }
