package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// requestKey is under which the request of an answer is found.
type requestKey struct{}

// answer gives an answer its status and headers before the gateway writes it.
func answer(ctx context.Context, w http.ResponseWriter, m proto.Message) error {
	switch a := m.(type) {
	case *ddqv1.EnqueueResponse:
		enqueued(w, a)
	case *ddqv1.EnqueueBatchResponse:
		batched(w, a)
	case *ddqv1.GetTaskResponse:
		tag(w, a.GetTask().GetVersion())
	case *ddqv1.UpdateTaskResponse:
		tag(w, a.Version)
	case *ddqv1.RescheduleTaskResponse:
		tag(w, a.Version)
	case *ddqv1.PromoteTaskResponse:
		tag(w, a.Version)
	case *ddqv1.DescribeTopicResponse:
		tag(w, a.GetTopic().GetVersion())
	case *ddqv1.ConfigureTopicResponse:
		tag(w, a.GetTopic().GetVersion())
	case *ddqv1.CreateTopicResponse:
		tag(w, a.GetTopic().GetVersion())
		w.Header().Set("Location", "/v1/topics/"+url.PathEscape(a.GetTopic().GetName()))
		w.WriteHeader(http.StatusCreated)
	case *ddqv1.CreateAudienceResponse:
		w.Header().Set("Location", Prefix+"audiences/"+url.PathEscape(a.GetAudience().GetName()))
		w.WriteHeader(http.StatusCreated)
	case *ddqv1.StartOperationResponse:
		w.Header().Set("Location", operationPath(a.GetOperation()))
		w.WriteHeader(http.StatusAccepted)
	case *ddqv1.CreateTokenResponse, *ddqv1.RotateTokenResponse, *ddqv1.CreateNamespaceResponse:
		w.WriteHeader(http.StatusCreated)
	case *ddqv1.PutScheduleResponse:
		tag(w, a.Version)
		if a.Outcome == ddqv1.PutOutcome_PUT_OUTCOME_CREATED {
			w.WriteHeader(http.StatusCreated)
		}
	case *ddqv1.GetScheduleResponse:
		tag(w, a.GetSchedule().GetVersion())
	case *ddqv1.PauseScheduleResponse:
		tag(w, a.GetSchedule().GetVersion())
	case *ddqv1.ResumeScheduleResponse:
		tag(w, a.GetSchedule().GetVersion())
	case *ddqv1.SubmitWorkflowResponse:
		submitted(w, a)
	case *ddqv1.WaitWorkflowResponse:
		w.Header().Set("Ddq-Settled", strconv.FormatBool(a.Ended))
	case *ddqv1.DeleteTaskResponse, *ddqv1.DeleteTopicResponse, *ddqv1.DeleteScheduleResponse, *ddqv1.DeleteAudienceResponse,
		*ddqv1.DeleteWorkflowResponse, *ddqv1.RevokeTokenResponse, *ddqv1.DeleteBindingResponse, *ddqv1.DeleteNamespaceResponse:
		w.Header().Del("Content-Type") // of the body that there is not
		w.WriteHeader(http.StatusNoContent)
	case *ddqv1.CancelTaskResponse:
		return cancelled(w, a)
	case *ddqv1.WaitTaskResponse:
		w.Header().Set("Ddq-Settled", strconv.FormatBool(a.Settled))
	case interface{ GetNextPageToken() string }:
		link(ctx, w, a.GetNextPageToken())
	}
	return nil
}

func operationPath(o *ddqv1.Operation) string {
	return Prefix + "topics/" + url.PathEscape(o.GetRequest().GetTopic()) + "/operations/" + o.GetId()
}

func taskPath(topic, id string) string {
	return "/v1/topics/" + url.PathEscape(topic) + "/tasks/" + url.PathEscape(id)
}

func enqueued(w http.ResponseWriter, a *ddqv1.EnqueueResponse) {
	w.Header().Set("Location", taskPath(a.Topic, a.Id))
	if !a.Deduplicated {
		w.WriteHeader(http.StatusAccepted)
	}
}

func submitted(w http.ResponseWriter, a *ddqv1.SubmitWorkflowResponse) {
	w.Header().Set("Location", Prefix+"topics/"+url.PathEscape(a.Topic)+"/workflows/"+url.PathEscape(a.Id))
	if !a.Deduplicated {
		w.WriteHeader(http.StatusAccepted)
	}
}

// batched is 202 when all tasks are stored, and else says how many are not.
func batched(w http.ResponseWriter, a *ddqv1.EnqueueBatchResponse) {
	failed := 0
	for _, result := range a.Results {
		if result.Error != nil {
			failed++
		}
	}
	if failed == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Ddq-Failed", strconv.Itoa(failed))
}

func cancelled(w http.ResponseWriter, a *ddqv1.CancelTaskResponse) error {
	switch a.Outcome {
	case ddqv1.CancelOutcome_CANCEL_OUTCOME_REQUESTED:
		w.WriteHeader(http.StatusAccepted)
	case ddqv1.CancelOutcome_CANCEL_OUTCOME_TOO_LATE:
		return &problemError{&problem{
			Status: http.StatusConflict, Code: codeNames[codes.FailedPrecondition], Reason: "TOO_LATE",
			Detail: "the task ended before its worker was told, or in spite of it", State: stateName(a.State),
		}}
	}
	return nil
}

// tag is of what is edited, not of the whole answer: it is for If-Match.
func tag(w http.ResponseWriter, version int64) {
	if version > 0 {
		w.Header().Set("ETag", etag(strconv.FormatInt(version, 10)))
	}
}

// link says where the next page of a list is, if there is one.
func link(ctx context.Context, w http.ResponseWriter, token string) {
	r, ok := ctx.Value(requestKey{}).(*http.Request)
	if token == "" || !ok || r.Method != http.MethodGet {
		return
	}
	query := r.URL.Query()
	query.Set("page_token", token)
	w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+query.Encode()+`>; rel="next"`)
}
