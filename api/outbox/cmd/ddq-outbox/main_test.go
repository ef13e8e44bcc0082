//go:build linux

package main

import (
	"context"
	"strings"
	"testing"
)

// call runs a command line without a database.
func call(env []string, args ...string) (code int, out, err string) {
	var o, e strings.Builder
	code = run(context.Background(), streams{&o, &e, env}, args)
	return code, o.String(), e.String()
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	for _, c := range []struct {
		env, args []string
		want      string
	}{
		{nil, nil, "a command is required"},
		{nil, []string{"relays"}, "unknown command"},
		{nil, []string{"status", "--dns", "x"}, "unknown flag"},
		{nil, []string{"status", "-o", "xml"}, "table or json"},
		{nil, []string{"status", "--dsn", "postgres://a:b:c"}, "--dsn"},
		{nil, []string{"retry"}, "requires at least 1 arg"},
		{nil, []string{"retry", "one"}, "not the number of a task"},
		{nil, []string{"relay", "--token-file", "/nowhere"}, "--token-file"},
		{nil, []string{"relay", "--token-file", "main.go"}, "there is no token"},
		{nil, []string{"relay", "--tls-cert", "/nowhere"}, "go together"},
		{nil, []string{"relay", "--tls-ca", "main.go"}, "no certificate"},
		{[]string{"DDQ_POLL=soon"}, []string{"relay"}, "in the environment"},
		{[]string{"DDQ_OUTPUT=xml"}, []string{"status"}, "table or json"},
	} {
		if code, _, err := call(c.env, c.args...); code != exitUsage || !strings.Contains(err, c.want) {
			t.Errorf("%v %v: code %d, %s", c.env, c.args, code, err)
		}
	}
}

func TestADatabaseThatIsNotThereIsAFailure(t *testing.T) {
	code, _, err := call(nil, "status", "--dsn", "postgres://nobody@127.0.0.1:1/none?connect_timeout=5")
	if code != exitFailed || !strings.Contains(err, "ddq-outbox status: ") {
		t.Errorf("code %d, %s", code, err)
	}
}

func TestInstallPrintsTheSchema(t *testing.T) {
	code, out, _ := call(nil, "install", "--print")
	if code != exitOK || !strings.HasPrefix(out, "begin;\n") || !strings.Contains(out, "create table ddq_outbox.task") {
		t.Errorf("code %d, %s", code, out)
	}
}
