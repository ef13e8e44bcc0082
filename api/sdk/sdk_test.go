//go:build linux

package sdk_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Cases wait for servers and for the ends of holds most of their time, so many go at once,
// however few processors there are.
const atOnce = "12"

func TestMain(m *testing.M) {
	if os.Getenv(drives) != "" {
		driveGo()
		return
	}
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	os.Exit(inScratch(m.Run))
}

// scratch is a directory for what several tests share.
var scratch string

func inScratch(tests func() int) int {
	var err error
	if scratch, err = os.MkdirTemp("", "ddq-sdk-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(scratch)
	return tests()
}

// shared is a directory in scratch.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCases has each SDK, installed from its package, do what cases.json says.
func TestCases(t *testing.T) {
	bin := built(t)
	common := newServer(t, bin)
	installed := languages(t)
	t.Run("pages", func(t *testing.T) { testPages(t, common, installed) })
	for _, l := range installed {
		for i, c := range scenarios(t) {
			t.Run(l.name+"/"+strings.ReplaceAll(c.Name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				s := common
				switch {
				case c.Secure:
					s = newSecureServer(t, bin, c.Flags...)
				case c.Own:
					s = newServer(t, bin, c.Flags...)
				}
				p := play{topic: fmt.Sprintf("%s-%d", l.name, i), server: s, driver: startDriver(t, l, s.env()...)}
				p.words = strings.NewReplacer("$T", p.topic, "$ROOT", s.token)
				p.driver.call(t, "client", p.args("client", nil))
				for n, step := range c.Steps {
					p.at = fmt.Sprintf("step %d", n+1)
					p.step(t, step)
				}
			})
		}
	}
}

// play is a case that is played.
type play struct {
	topic  string
	words  *strings.Replacer // $T is the topic, $ROOT the token
	server *server
	driver *driver
	at     string
	url    string // of what stands before the server; empty: nothing does
}

func (p *play) step(t *testing.T, s step) {
	t.Helper()
	switch {
	case s.Call != "":
		p.call(t, s)
	case s.Send != "":
		p.driver.send(t, s.Send, p.args(s.Send, s.With))
	case s.Answer:
		if why := p.wrong(p.driver.answer(t), s); why != "" {
			t.Fatalf("%s: %s", p.at, why)
		}
	case s.Event != nil:
		p.driver.event(t, p.filled(s.Event).(map[string]any))
	case s.Never != nil:
		p.driver.never(t, p.filled(s.Never).(map[string]any))
	case s.Server == "kill":
		p.server.kill()
	case s.Server == "start":
		p.server.start(t)
	case s.Signal != "":
		p.driver.signal(t, s.Signal)
	default:
		t.Fatalf("%s does nothing", p.at)
	}
}

func (p *play) call(t *testing.T, s step) {
	t.Helper()
	for args, deadline := p.args(s.Call, s.With), time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		why := p.wrong(p.driver.call(t, s.Call, args), s)
		if why == "" {
			return
		}
		if !s.Until || time.Now().After(deadline) {
			t.Fatalf("%s, %s: %s", p.at, s.Call, why)
		}
	}
}

// args are those of a call: with, and what goes without saying.
func (p *play) args(call string, with map[string]any) map[string]any {
	args := map[string]any{}
	switch {
	case call == "client":
		args["url"] = p.server.url()
		if p.server.ca != "" {
			args["ca"] = p.server.ca
		}
	case !noTopic[call]:
		args["topic"] = p.topic
	}
	for key, value := range with {
		args[key] = p.filled(value)
	}
	return args
}

// wrong says what an answer is that it should not be.
func (p *play) wrong(answer map[string]any, s step) string {
	failed, isError := answer["error"]
	switch {
	case s.Fails != nil && !isError:
		return "it did not fail: " + shown(answer["ok"])
	case s.Fails != nil:
		return differs("", failed, p.filled(s.Fails))
	case isError:
		return "it failed: " + shown(failed)
	case s.Gives != nil:
		return differs("", answer["ok"], p.filled(s.Gives))
	}
	return ""
}

func (p *play) filled(value any) any { return filled(value, p.words) }
