package ui_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// firstPage is how many bytes the first look at a page may take, with its files, as they are sent.
const firstPage = 80_000

// packed asks for a path as browsers do, and returns the answer as it was sent.
func (r *rig) packed(path string) (*http.Response, []byte) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.base+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	reply, err := r.plain.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		r.Fatal(path, reply.Status, err)
	}
	return reply, text
}

// TestPagesAreCompressed, and their files; a full page with all of them is small.
func TestPagesAreCompressed(t *testing.T) {
	r := start(t)
	for i := range 100 {
		r.enqueue(client.Task{Topic: "mail", ID: fmt.Sprintf("welcome-%08d", i*i*7919), Delay: time.Duration(i+1) * time.Hour})
	}
	sum := 0
	for _, path := range []string{
		"/ui/tasks?topic=mail", "/ui/static/ui.css", "/ui/static/ui.js", "/ui/static/ddq.svg", "/ui/static/live.js", "/ui/static/morph.js", "/ui/static/keys.js",
		"/ui/static/times.js", "/ui/static/settings.js", "/ui/static/copy.js",
	} {
		reply, sent := r.packed(path)
		sum += len(sent)
		plain := sent
		if reply.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(bytes.NewReader(sent))
			if err != nil {
				t.Fatal(err)
			}
			if plain, err = io.ReadAll(unpacked); err != nil {
				t.Fatal(err)
			}
		} else if len(sent) > 2000 {
			t.Errorf("%s: %d bytes are not compressed", path, len(sent))
		}
		if !strings.Contains(strings.Join(reply.Header.Values("Vary"), ","), "Accept-Encoding") {
			t.Errorf("%s: caches are not told: %v", path, reply.Header)
		}
		if reply, same := r.send(http.MethodGet, path, url.Values{}, nil, "Accept-Encoding", "identity"); reply.Header.Get("Content-Encoding") != "" || path != "/ui/tasks?topic=mail" && same != string(plain) {
			t.Errorf("%s: who does not take it gets it compressed, or something else", path)
		}
	}
	t.Logf("a page of 100 tasks with all files: %d bytes", sum)
	if sum > firstPage {
		t.Errorf("the first look at a page takes %d bytes, want %d at most", sum, firstPage)
	}
}

// TestStreamsAndSecretsAreNotCompressed: an event would wait in a buffer.
func TestStreamsAndSecretsAreNotCompressed(t *testing.T) {
	r, root := startAsking(t)
	cookie := r.login(root)
	ask := []string{"Accept-Encoding", "gzip"}
	reply, text := r.send(http.MethodPost, "/ui/tokens/create", url.Values{"name": {"ci"}, "grants": {"viewer"}, "days": {"7"}}, cookie, ask...)
	if reply.StatusCode != http.StatusOK || reply.Header.Get("Content-Encoding") != "" || !strings.Contains(text, "<pre>ddq_") {
		t.Errorf("%s %v", reply.Status, reply.Header)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"/ui/live?of="+url.QueryEscape("?"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.AddCookie(cookie)
	request.Header.Set("Accept-Encoding", "gzip")
	live, err := r.plain.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()
	begin := make([]byte, len("retry: "))
	if _, err := io.ReadFull(live.Body, begin); err != nil || live.Header.Get("Content-Encoding") != "" || string(begin) != "retry: " {
		t.Errorf("%q, %v %v", begin, live.Header, err)
	}
}
