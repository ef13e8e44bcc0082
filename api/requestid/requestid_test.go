package requestid_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/requestid"
)

const (
	own   = "0192f0c1-0000-7000-8000-00000000000a"
	other = "0192f0c1-0000-7000-8000-00000000000b"
)

func sent(ids ...string) context.Context {
	md := metadata.MD{}
	md.Append(requestid.Key, ids...)
	return metadata.NewIncomingContext(context.Background(), md)
}

func TestIDThatACallCameWith(t *testing.T) {
	inHTTP := auth.WithOrigin(sent(other), auth.Origin{Request: own})
	for what, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"none":             {context.Background(), ""},
		"other metadata":   {metadata.NewIncomingContext(context.Background(), metadata.Pairs("x", own)), ""},
		"its own":          {sent(own), own},
		"in upper case":    {sent(strings.ToUpper(own)), own},
		"two":              {sent(own, other), own},
		"empty":            {sent(""), ""},
		"no UUID":          {sent(strings.Repeat("x", 36)), ""},
		"in braces":        {sent("{" + own + "}"), ""},
		"with line breaks": {sent(own + "\n"), ""},
		"of its request":   {inHTTP, own},
		"an origin only":   {auth.WithOrigin(context.Background(), auth.Origin{}), ""},
	} {
		if got := requestid.Given(c.ctx); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestAFailureHasOneID(t *testing.T) {
	cause := errors.New("cause")
	id, named := requestid.Name(context.Background(), cause)
	if requestid.Read(id) != id || id[14] != '7' || !errors.Is(named, cause) || named.Error() != "cause" {
		t.Errorf("%q, %v", id, named)
	}
	if again, same := requestid.Name(sent(own), named); again != id || same != named {
		t.Errorf("named again: %q, %v", again, same)
	}
	if got, bare := requestid.Split(sent(own), named); got != id || bare != cause {
		t.Errorf("split: %q, %v", got, bare)
	}
	around := fmt.Errorf("around: %w", named)
	if got, bare := requestid.Split(sent(own), around); got != id || bare != around {
		t.Errorf("split of one around it: %q, %v", got, bare)
	}
	if got, bare := requestid.Split(sent(own), cause); got != own || bare != cause {
		t.Errorf("split of one without: %q, %v", got, bare)
	}
}

func TestAnEditedFailureKeepsItsID(t *testing.T) {
	edit := func(err error) error { return fmt.Errorf("edited %w", err) }
	id, named := requestid.Name(context.Background(), errors.New("cause"))
	if got, bare := requestid.Split(sent(own), requestid.Edit(named, edit)); got != id || bare.Error() != "edited cause" {
		t.Errorf("%q, %v", got, bare)
	}
	if got, bare := requestid.Split(sent(own), requestid.Edit(errors.New("cause"), edit)); got != own || bare.Error() != "edited cause" {
		t.Errorf("without an id: %q, %v", got, bare)
	}
}
