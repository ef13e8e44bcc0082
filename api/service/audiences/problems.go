package audiences

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
)

func noAudience(name string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_AUDIENCE", Field: "name", Message: fmt.Sprintf("there is no audience %q", name)}
}

func audienceExists(name string) *problem.Error {
	return &problem.Error{Kind: problem.Exists, Reason: "AUDIENCE_EXISTS", Field: "name", Message: fmt.Sprintf("audience %q exists with other settings", name)}
}

func audienceInUse(name, by string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "AUDIENCE_IN_USE", Field: "name", Message: fmt.Sprintf("audience %q has %s", name, by)}
}

func audienceFull(most int64) *problem.Error {
	return &problem.Error{Kind: problem.Exhausted, Reason: "AUDIENCE_FULL", Field: "recipients", Message: fmt.Sprintf("the audience has no room: %d recipients are possible", most)}
}

func noRecipient(id string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_RECIPIENT", Field: "id", Message: fmt.Sprintf("there is no recipient %q", id)}
}

func noKind(field, name string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_KIND", Field: field, Message: fmt.Sprintf("the audience has no kind %q", name)}
}

func badRecipient(field, reason string) *problem.Error {
	return problem.BadField(field, "BAD_RECIPIENT", "%s %s", field, reason)
}

// replaced is of a replacement that another one has taken the place of.
func replaced(generation int64) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "REPLACEMENT_OVER", Field: "generation", Message: fmt.Sprintf("replacement %d is over, or another one has begun", generation)}
}

// contended is of a shard that others change all the time.
func contended() *problem.Error {
	return &problem.Error{Kind: problem.Unavailable, Reason: "BUSY", Message: "others change the same recipients", RetryAfter: problem.RetrySoon}
}
