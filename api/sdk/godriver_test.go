//go:build linux

package sdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
)

// drives is set in the environment of this test's binary when it is the driver of the Go SDK.
const drives = "DDQ_SDK_DRIVER"

// goItself is the Go SDK. Its driver is this test's binary, and knows the calls that TestValues makes.
func goItself() language {
	return language{name: "go", driver: []string{os.Args[0]}, env: []string{drives + "=go"}, speaksGRPC: true}
}

// goDriver does what a test says, one line of JSON a call.
type goDriver struct {
	mu     sync.Mutex // of what is said
	client *client.Client
	begun  int // handlers; guarded by changed.L
	all    *sync.Cond
}

func driveGo() {
	d := &goDriver{all: sync.NewCond(new(sync.Mutex))}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var request struct {
			Call string
			Args struct {
				URL, Topic, ID, Place, Value string
				Concurrency                  int
			}
		}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			panic(err)
		}
		a := &request.Args
		var answer any
		var err error
		switch request.Call {
		case "client":
			d.client, err = client.Dial(a.URL, client.Config{DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}})
		case "values":
			answer = goValueNames(a.Place)
		case "put":
			answer, err = d.put(a.Topic, a.ID, a.Place, a.Value)
		case "go": // in place of a handler that others wait for
			d.begins()
		case "work":
			go d.work(a.Topic, a.Concurrency)
		default:
			err = fmt.Errorf("no call %q", request.Call)
		}
		if err != nil {
			var e *client.Error
			reason := ""
			if errors.As(err, &e) {
				reason = e.Reason
			}
			d.say(map[string]any{"error": map[string]any{"text": err.Error(), "reason": reason}})
			continue
		}
		d.say(map[string]any{"ok": answer})
	}
}

func (d *goDriver) say(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n')) // whoever reads it has ended
}

// goValues are the values of values.json that there are where all is text or bytes.
var goValues = map[string]string{
	"text":                "Grüße 😀",
	"no text":             "",
	"half a character":    "caf\xe9.txt",
	"a character of zero": "a\x00b",
	"an escape":           "\x1b]0;x\x07\u202e",
	"10 MB":               strings.Repeat("x", 10_000_000),
	"bytes":               "\x00\xff",
	"hostile":             "", // an error that panics
}

// goValueNames are the values that a place can have.
func goValueNames(place string) (names []string) {
	failure := place == "error" || place == "permanent"
	text := strings.HasSuffix(place, "id") || strings.HasSuffix(place, "attribute") || strings.HasSuffix(place, "key") || place == "name"
	for name := range goValues {
		if name == "hostile" && !failure || name == "bytes" && (failure || text) {
			continue
		}
		names = append(names, name)
	}
	return names
}

func (d *goDriver) put(topic, id, place, name string) (any, error) {
	value, task := goValues[name], client.Task{Topic: topic, ID: id, Delay: time.Hour}
	switch place {
	case "payload":
		task.Payload = []byte(value)
	case "attribute":
		task.Attributes = map[string]string{"of": value}
	case "id":
		task.ID = value
	}
	r, err := d.client.Enqueue(context.Background(), task)
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": r.ID}, nil
}

func (d *goDriver) work(topic string, concurrency int) {
	c := worker.Config{Topic: topic, Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler)}
	err := worker.New(d.client.Conn(), c, worker.HandlerFunc(d.handle)).Run(context.Background())
	d.say(map[string]any{"event": "failed", "text": fmt.Sprint(err)})
}

func (d *goDriver) begins() {
	d.all.L.Lock()
	defer d.all.L.Unlock()
	d.begun++
	d.all.Broadcast()
}

// handle has a value at a place of the outcome of a task, as all others do at the same moment.
func (d *goDriver) handle(ctx context.Context, t worker.Task) error {
	place, name := t.Attributes["place"], t.Attributes["value"]
	value := goValues[name]
	of, err := strconv.Atoi(t.Attributes["of"])
	if err != nil {
		return err
	}
	d.say(map[string]any{"event": "begin", "id": t.ID, "attempt": t.Attempt})
	d.begins()
	d.all.L.Lock()
	for d.begun < of {
		d.all.Wait()
	}
	d.all.L.Unlock()
	next := client.Task{Topic: t.Topic, ID: "next-" + t.ID, Delay: time.Hour}
	switch place {
	case "error", "permanent":
		err := errors.New(value)
		if name == "hostile" {
			err = hostile{}
		}
		if place == "permanent" {
			return worker.Permanent(err)
		}
		return err
	case "next":
		next.Payload = []byte(value)
		return t.Enqueue(next)
	case "next id":
		next.ID, next.Payload = value, []byte("from "+t.ID)
		return t.Enqueue(next)
	case "next attribute":
		next.Attributes = map[string]string{"of": value}
		return t.Enqueue(next)
	case "next key":
		next.FairnessKey = value
		return t.Enqueue(next)
	case "result":
		return t.SetResult([]byte(value))
	}
	kept := value
	if place == "name" {
		name, kept = value, "kept"
	}
	b, err := t.Once(ctx, name, func(context.Context) ([]byte, error) { return []byte(kept), nil })
	if err != nil {
		return err
	}
	return t.SetResult(b)
}

// hostile is an error that says nothing.
type hostile struct{}

func (hostile) Error() string { panic("not for you") }
