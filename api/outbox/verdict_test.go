package outbox

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
)

func TestWhatBecomesOfARowFollowsFromTheError(t *testing.T) {
	var rows []row
	var errs []error
	add := func(err error) {
		rows, errs = append(rows, row{seq: int64(len(rows))}), append(errs, err)
	}
	add(nil)
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		add(&client.Error{Code: code, Reason: "R", Message: "m"})
	}
	add(errors.New("other"))
	o := judge(rows, errs)
	want := []refusal{{int64(codes.InvalidArgument), "R", "m"}, {int64(codes.AlreadyExists), "R", "m"}, {int64(codes.OutOfRange), "R", "m"}}
	if !slices.Equal(o.landed, []int64{0}) || !reflect.DeepEqual(o.refused, want) || len(o.later) != len(rows)-4 {
		t.Errorf("got %+v", o)
	}
}
