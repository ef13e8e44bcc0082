package tasks

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	g "maragu.dev/gomponents"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// graveyard has dead letters without end, of two errors; a page of them takes a while.
type graveyard struct {
	ddqv1.AdminServiceClient
	takes time.Duration
}

func (y graveyard) ListDeadLetters(ctx context.Context, r *ddqv1.ListDeadLettersRequest, _ ...grpc.CallOption) (*ddqv1.ListDeadLettersResponse, error) {
	select {
	case <-time.After(y.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	first, _ := strconv.Atoi(r.GetPageToken())
	list := &ddqv1.ListDeadLettersResponse{NextPageToken: strconv.Itoa(first + int(r.GetPageSize()))}
	for i := range int(r.GetPageSize()) {
		id := fmt.Sprint("order-", first+i)
		why := "no template for " + id
		if i%4 == 0 {
			why = fmt.Sprint("timeout after ", i, "s")
		}
		list.Tasks = append(list.Tasks, &ddqv1.Task{Id: id, DeadReason: ddqv1.DeadReason_DEAD_REASON_MAX_RETRIES, LastError: why})
	}
	return list, nil
}

// TestVeryManyDeadLettersAreExaminedInPart: the first, as many as there is time for, and the page says so.
func TestVeryManyDeadLettersAreExaminedInPart(t *testing.T) {
	for takes, examined := range map[time.Duration]int{0: mostExamined, examineFor/4 + time.Millisecond: 3 * examinedOnce} {
		synctest.Test(t, func(t *testing.T) {
			p := &grouping{deadPage: deadPage{Topic: "mail"}}
			if err := (&section{admin: graveyard{takes: takes}}).examine(t.Context(), p, nil); err != nil {
				t.Fatal(err)
			}
			if p.examined != examined || !p.more || len(p.all) != 2 || p.all[0].count != examined*3/4 || p.all[0].print != "no template for #" {
				t.Errorf("%d examined, %d groups, more: %v", p.examined, len(p.all), p.more)
			}
			var text strings.Builder
			if err := (g.Group{p.list()}).Render(&text); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), "Only the first") || strings.Contains(text.String(), "<form") {
				t.Error(text.String())
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := &grouping{deadPage: deadPage{Topic: "mail"}}
		if err := (&section{admin: graveyard{takes: time.Hour}}).examine(t.Context(), p, nil); err == nil {
			t.Error("a server that does not answer has no dead letters")
		}
	})
}
