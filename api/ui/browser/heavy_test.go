package browser

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var (
	pending  = flag.Int("heavy.pending", 2000, "tasks in the embedded store while pages are measured; 10000000 takes a while, and some GB")
	requests = flag.Int("heavy.requests", 20, "how often each page is asked for")
	viewers  = flag.Int("heavy.viewers", 5, "how many look at the first page in the end")
	viewFor  = flag.Duration("heavy.for", 2*time.Second, "how long they look")
	rest     = flag.Duration("heavy.rest", 0, "how long the server is left alone after the first look, for the store to sort and to count in the background")
	heavyDir = flag.String("heavy.data", "", "folder for the data; by default one of the system's, which is removed")
)

// TestHeavyPages measures pages of a topic with very many pending tasks: how long until the first
// byte and until something is seen, how many bytes they have, and what it costs that many look. It
// says what it found, and fails only where a page cannot be had.
func TestHeavyPages(t *testing.T) {
	dir := *heavyDir
	if dir == "" {
		dir = t.TempDir()
	}
	s := start(t, "--store", "embedded", "--data", filepath.Join(dir, "data"))
	began := time.Now()
	s.load("heavy", *pending)
	t.Logf("%d tasks stored in %v", *pending, time.Since(began).Round(time.Millisecond))
	b := open(t, s.base)
	began = time.Now()
	b.look("/ui/", 1280, "light")
	t.Logf("the first look took %v", time.Since(began).Round(time.Millisecond))
	time.Sleep(*rest)
	for _, p := range []struct{ name, path string }{
		{"overview", "/ui/"}, {"topic", "/ui/topic?name=heavy"}, {"tasks", "/ui/tasks?topic=heavy"}, {"task", "/ui/task?topic=heavy&id=t7"}, {"dead", "/ui/dead?topic=heavy"},
	} {
		firstBytes, plain, packed := s.askFor(p.path)
		t.Logf("%-8s first byte p50 %v p99 %v most %v; %d bytes, %d gzipped; first paint %v ms", p.name,
			at(firstBytes, 0.5), at(firstBytes, 0.99), at(firstBytes, 1), plain, packed, b.paints(p.path))
	}
	for _, n := range []int{0, 1, 10, *viewers} {
		cpu, got := s.watched(n)
		t.Logf("%d viewers: %.2f %% of a core, %.1f kB/s in all", n, 100*cpu.Seconds()/viewFor.Seconds(), float64(got)/1000/viewFor.Seconds())
		if n > 0 && got == 0 {
			t.Error("nothing was sent")
		}
	}
}

// at is the value of a quantile of durations in order.
func at(all []time.Duration, q float64) time.Duration {
	return all[min(len(all)-1, int(q*float64(len(all))))].Round(10 * time.Microsecond)
}

// load stores tasks that are due in the next two days, by four imports at once.
func (s *server) load(topic string, n int) {
	s.Helper()
	const imports = 4
	var wg sync.WaitGroup
	var stored atomic.Int64
	for k := range imports {
		wg.Go(func() {
			text, write := io.Pipe()
			go func() {
				out := bufio.NewWriterSize(write, 1<<16)
				for i := k; i < n; i += imports {
					fmt.Fprintf(out, `{"id":"t%d","delay":"%ds"}`+"\n", i, 60+i*7919%(48*3600))
				}
				_ = out.Flush()
				_ = write.Close()
			}()
			reply, err := http.Post(s.base+"/v1/topics/"+topic+"/tasks:import", "application/x-ndjson", text)
			if err != nil {
				s.Error(err)
				return
			}
			defer reply.Body.Close()
			var last []byte
			for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
				last = append(last[:0], lines.Bytes()...)
			}
			var end struct {
				Done   bool
				Stored int64
			}
			if err := json.Unmarshal(last, &end); err != nil || !end.Done {
				s.Errorf("an import ended with %s %s %v", reply.Status, last, err)
			}
			stored.Add(end.Stored)
		})
	}
	wg.Wait()
	if got := stored.Load(); got != int64(n) {
		s.Fatalf("%d of %d are stored", got, n)
	}
}

// askFor asks for a page again and again, and returns how long its first byte took each time, in
// order, and how large it is, as it is and compressed.
func (s *server) askFor(path string) (firstBytes []time.Duration, plain, packed int) {
	s.Helper()
	for range *requests {
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // what is remembered for a second is forgotten now and then
		began := time.Now()
		reply, err := http.Get(s.base + path)
		if err != nil {
			s.Fatal(err)
		}
		firstBytes = append(firstBytes, time.Since(began))
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			s.Fatalf("%s: %s %v\n%s", path, reply.Status, err, text)
		}
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		_, _ = zip.Write(text)
		_ = zip.Close()
		plain, packed = len(text), out.Len()
	}
	slices.Sort(firstBytes)
	return firstBytes, plain, packed
}

// paints are when the browser showed something of a page, in milliseconds, of five looks at it.
func (b *browser) paints(path string) (all []int64) {
	b.Helper()
	for range 5 {
		b.look(path, 1280, "light")
		all = append(all, eval[int64](b, `new Promise((r) => {
		  const when = () => { const e = performance.getEntriesByName("first-contentful-paint")[0]; e ? r(Math.round(e.startTime)) : setTimeout(when, 10); };
		  when();
		})`, chromedp.EvalAwaitPromise))
	}
	slices.Sort(all)
	return all
}

// watched returns the processor time that the server took while n looked at the first page, and the
// bytes that they got.
func (s *server) watched(n int) (time.Duration, int64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), *viewFor)
	defer cancel()
	var wg sync.WaitGroup
	var got atomic.Int64
	before := s.cpu()
	for range n {
		wg.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/ui/live?of="+url.QueryEscape("?"), nil)
			if err != nil {
				s.Error(err)
				return
			}
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				s.Error(err)
				return
			}
			defer reply.Body.Close()
			read, _ := io.Copy(io.Discard, reply.Body) // until ctx ends
			got.Add(read)
		})
	}
	<-ctx.Done()
	took := s.cpu() - before
	wg.Wait()
	return took, got.Load()
}

// cpu is the processor time that the server took, to a hundredth of a second.
func (s *server) cpu() time.Duration {
	s.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		s.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] { // of the user, and of the system
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			s.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
