package stand

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

// TestRelayPassesAndLoses asks a server through a relay: it answers, and when the relay
// loses answers it has still heard the question.
func TestRelayPassesAndLoses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan string, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				for lines := bufio.NewScanner(c); lines.Scan(); {
					heard <- lines.Text()
					fmt.Fprintln(c, "re: "+lines.Text())
				}
			}()
		}
	}()
	r, err := newRelay(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	ask := func(question string) (string, error) {
		t.Helper()
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(c, question)
		if got := <-heard; got != question {
			t.Errorf("heard %q, want %q", got, question)
		}
		return answers.ReadString('\n')
	}
	if got, err := ask("a"); got != "re: a\n" || err != nil {
		t.Errorf("answer is %q, %v", got, err)
	}
	r.delay.Store(int64(time.Millisecond))
	if got, err := ask("b"); got != "re: b\n" || err != nil {
		t.Errorf("delayed answer is %q, %v", got, err)
	}
	r.losing.Store(true)
	if got, err := ask("c"); err == nil {
		t.Errorf("answer is %q, want none", got)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}
