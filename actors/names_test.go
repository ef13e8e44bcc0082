package actors_test

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/actors"
)

func TestNamesOfTopics(t *testing.T) {
	const long = 128
	for name, want := range map[string]string{
		"mail":                                "",
		"acme/mail":                           "",
		"0-a/" + strings.Repeat("a", long):    "",
		"":                                    "BAD_NAME",
		"/mail":                               "BAD_NAME",
		"acme/":                               "BAD_NAME",
		"acme//mail":                          "BAD_NAME",
		"a/b/c":                               "BAD_NAME",
		"default/mail":                        "BAD_NAME", // would be another topic than mail
		"Acme/mail":                           "BAD_NAME",
		"-a/mail":                             "BAD_NAME",
		"a_b/mail":                            "BAD_NAME",
		"acme:mail":                           "BAD_NAME",
		"..":                                  "BAD_NAME",
		"acme/..":                             "BAD_NAME",
		"ma}il":                               "BAD_NAME",
		"m\u0430il":                           "BAD_NAME", // an a that is Cyrillic
		strings.Repeat("a", 64) + "/mail":     "BAD_NAME",
		"acme/" + strings.Repeat("a", long+1): "NAME_TOO_LONG",
	} {
		got := ""
		if e := actors.CheckTopicName("topic", name); e != nil {
			got = e.Reason
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
