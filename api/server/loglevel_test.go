package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// logging asks for the log level of a node, of this one when it has no name.
func logging(edit func(*ddqv1.SetLogLevelRequest), name string) func(*rig) error {
	return func(r *rig) error {
		req := &ddqv1.SetLogLevelRequest{Name: name, Level: ddqv1.LogLevel_LOG_LEVEL_DEBUG}
		if name == "" {
			req.Name = r.service.Node().Config().Node
		}
		edit(req)
		_, err := r.admin.SetLogLevel(r.Context(), req)
		return err
	}
}

// logged are the lines of a log.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer // guarded by mu
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

// take returns the lines since it was last called that have a text.
func (l *logged) take(text string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.out.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	l.out.Reset()
	return lines
}

// loggingBubble runs test in fake time on a node that logs from Info on.
func loggingBubble(t *testing.T, test func(r *rig, log *logged)) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logged)
		r := newRigLogging(t, slog.New(slog.NewTextHandler(log, nil)), insecure.NewCredentials(), Config{}, actors.Config{Node: "n1"})
		defer r.close()
		test(r, log)
	})
}

func TestTasksOfOneTopicAreLoggedForAWhile(t *testing.T) {
	loggingBubble(t, func(r *rig, log *logged) {
		round := func(id string) []string {
			r.mustAck("mail", r.hold("mail", id))
			r.mustAck("sms", r.hold("sms", id))
			synctest.Wait()
			return log.take("msg=\"task ")
		}
		if lines := round("before"); len(lines) != 0 {
			t.Errorf("before it was asked for: %q", lines)
		}
		must(r, logging(func(q *ddqv1.SetLogLevelRequest) { q.Topic, q.ForMs = "mail", 60_000 }, "")(r))
		if on := log.take("lines of tasks on"); len(on) != 1 {
			t.Errorf("the log says %q", on)
		}
		lines := round("during")
		for i, want := range []string{"task enqueued", "task held", "task sent", "task settled"} {
			if len(lines) != 4 || !strings.Contains(lines[i], fmt.Sprintf("msg=%q topic=mail", want)) || !strings.Contains(lines[i], "task=during node=n1") {
				t.Fatalf("lines are %q", lines)
			}
		}
		if !strings.Contains(lines[2], "attempt=1") || !strings.Contains(lines[2], "late=") || !strings.Contains(lines[3], "outcome=acked") {
			t.Errorf("lines are %q", lines)
		}
		time.Sleep(time.Minute)
		if lines := round("after"); len(lines) != 0 {
			t.Errorf("after a minute: %q", lines)
		}
	})
}

func TestLinesOfTasksTellHowTheyGoOn(t *testing.T) {
	loggingBubble(t, func(r *rig, log *logged) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "mail", Id: "first"})
		must(r, logging(func(q *ddqv1.SetLogLevelRequest) { q.Topic = "mail" }, "")(r))
		d := r.retrieve("mail")
		_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "mail", Nack: &ddqv1.Nack{TaskId: "first", HoldToken: d.HoldToken}})
		must(r, err)
		time.Sleep(2 * time.Minute) // until it is held and its hold has expired
		r.retrieve("mail")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		all := strings.Join(log.take("msg=\"task "), "\n")
		for _, want := range []string{"outcome=failed", "attempt=2", "msg=\"task recovered\"", "outcome=\"hold expired\""} {
			if !strings.Contains(all, want) {
				t.Errorf("no %s in\n%s", want, all)
			}
		}
		must(r, logging(func(q *ddqv1.SetLogLevelRequest) { q.Topic, q.Level = "mail", 0 }, "")(r))
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "mail", Id: "second"})
		if lines := log.take("second"); len(lines) != 0 {
			t.Errorf("once it was ended: %q", lines)
		}
	})
}

func TestANodeSaysWhatItLogs(t *testing.T) {
	loggingBubble(t, func(r *rig, _ *logged) {
		now := func() *ddqv1.NodeLogs {
			t.Helper()
			list, err := r.admin.ListNodes(r.Context(), &ddqv1.ListNodesRequest{})
			must(r, err)
			return list.Nodes[0].Logs
		}
		says := func(when string, want *ddqv1.NodeLogs) {
			t.Helper()
			if got := now(); !proto.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "mail", Id: "a"})
		info := ddqv1.LogLevel_LOG_LEVEL_INFO
		says("at first", &ddqv1.NodeLogs{Level: info})
		must(r, logging(func(q *ddqv1.SetLogLevelRequest) { q.Topic, q.ForMs = "mail", 60_000 }, "")(r))
		must(r, logging(func(q *ddqv1.SetLogLevelRequest) { q.Level, q.ForMs = ddqv1.LogLevel_LOG_LEVEL_WARN, 30_000 }, "")(r))
		at := time.Now().UnixMilli()
		mail := []*ddqv1.TopicLogs{{Topic: "mail", UntilUnixMs: at + 60_000}}
		says("with both", &ddqv1.NodeLogs{Level: ddqv1.LogLevel_LOG_LEVEL_WARN, UntilUnixMs: at + 30_000, Topics: mail})
		_, err := r.service.Node().Peer().SetLogLevel(fleet.LogLevel{Level: new(slog.LevelDebug), Topic: "acme/mail", For: time.Hour})
		must(r, err)
		time.Sleep(30 * time.Second)
		says("when one has ended, and what another namespace has", &ddqv1.NodeLogs{Level: info, Topics: mail})
		time.Sleep(30 * time.Second)
		says("when both have ended", &ddqv1.NodeLogs{Level: info})
		list, err := r.admin.ListNodes(r.Context(), &ddqv1.ListNodesRequest{WithoutLoad: true})
		if err != nil || list.Nodes[0].Logs != nil {
			t.Errorf("without load: %v, %v", list, err)
		}
	})
}

func TestTheLevelOfANodeEndsByItself(t *testing.T) {
	loggingBubble(t, func(r *rig, log *logged) {
		enqueued := func(id string) int {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: id})
			return len(log.take("task enqueued"))
		}
		must(r, logging(func(*ddqv1.SetLogLevelRequest) {}, "")(r))
		if enqueued("a") != 1 {
			t.Error("tasks are not logged at debug")
		}
		time.Sleep(5*time.Minute - time.Millisecond)
		if enqueued("b") != 1 {
			t.Error("it has ended too early")
		}
		time.Sleep(time.Millisecond)
		if enqueued("c") != 0 {
			t.Error("it has not ended")
		}
		must(r, logging(func(*ddqv1.SetLogLevelRequest) {}, "")(r))
		must(r, logging(func(q *ddqv1.SetLogLevelRequest) { q.Level = 0 }, "")(r))
		if enqueued("d") != 0 {
			t.Error("it was not ended")
		}
	})
}
