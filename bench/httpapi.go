package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// How producers of ddq call: --api.
const (
	apiGRPC = "grpc"
	apiREST = "rest"
)

// httpDriver produces by REST, one task a request or an import, and works as the driver that it has.
type httpDriver struct {
	Driver
	http *http.Client
	url  string // of the topic's tasks
}

// newHTTPDriver makes one for the HTTP port at addr.
func newHTTPDriver(d Driver, addr, topic string, callers int) *httpDriver {
	t := &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
	return &httpDriver{Driver: d, http: &http.Client{Transport: t}, url: "http://" + addr + "/v1/topics/" + topic + "/tasks"}
}

// httpTask is a task as JSON.
type httpTask struct {
	Payload []byte     `json:"payload"`
	Due     *time.Time `json:"execute_time,omitempty"`
}

func (d *httpDriver) Enqueue(ctx context.Context, tasks []Task) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body) // ends each with a newline
	for _, t := range tasks {
		line := httpTask{Payload: t.Payload}
		if !t.Due.IsZero() {
			line.Due = &t.Due
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	if len(tasks) == 1 {
		return d.post(ctx, d.url, "application/json", &body, nil)
	}
	return d.post(ctx, d.url+":import", "application/x-ndjson", &body, func(answer io.Reader) error { return checkImport(answer, len(tasks)) })
}

// post sends one request, and has read look at the answer to it.
func (d *httpDriver) post(ctx context.Context, url, kind string, body io.Reader, read func(io.Reader) error) (err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	answer, err := d.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode >= http.StatusMultipleChoices {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // as much as there is
		return fmt.Errorf("%s: %s: %s", url, answer.Status, said)
	}
	if read != nil {
		err = read(answer.Body)
	}
	_, drained := io.Copy(io.Discard, answer.Body) // so that the connection serves again
	return errors.Join(err, drained)
}

// checkImport reads the answer to an import of n tasks.
func checkImport(answer io.Reader, n int) error {
	lines := bufio.NewScanner(answer)
	stored, done := 0, false
	for lines.Scan() {
		var line struct {
			ID    string          `json:"id"`
			Error json.RawMessage `json:"error"`
			Done  json.RawMessage `json:"done"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		switch {
		case line.Error != nil:
			return fmt.Errorf("import: %s", line.Error)
		case line.Done != nil:
			done = true
		default:
			stored++
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if !done || stored != n {
		return fmt.Errorf("import: %d of %d tasks stored", stored, n)
	}
	return nil
}

func (d *httpDriver) Close() error {
	d.http.CloseIdleConnections()
	return d.Driver.Close()
}
