package token

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// issuer gives out tokens that are called t1, t2 and so on.
type issuer struct {
	life time.Duration // 0: it is not said
	slow time.Duration
	away bool
	n    int
}

func (i *issuer) fetch(ctx context.Context) (Token, error) {
	select {
	case <-time.After(i.slow):
	case <-ctx.Done():
		return Token{}, ctx.Err()
	}
	if i.away {
		return Token{}, errors.New("away")
	}
	i.n++
	t := Token{Text: fmt.Sprint("t", i.n)}
	if i.life != 0 {
		t.Expires = time.Now().Add(i.life)
	}
	return t, nil
}

// wants checks what a source gives.
func wants(t *testing.T, s *Source, want string) {
	t.Helper()
	if got, err := s.Token(t.Context()); got != want || (err == nil) != (want != "") {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestTokensAreRenewedBeforeTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{life: time.Hour}
		s := Issued(i.fetch)
		wants(t, s, "t1")
		time.Sleep(44 * time.Minute)
		wants(t, s, "t1")
		time.Sleep(time.Minute)
		wants(t, s, "t2")
		time.Sleep(3 * time.Hour) // nobody called
		wants(t, s, "t3")
	})
}

func TestATokenGoesOnWhileItsIssuerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{life: time.Hour}
		s := Issued(i.fetch)
		wants(t, s, "t1")
		i.away = true
		time.Sleep(45 * time.Minute)
		for range 179 {
			wants(t, s, "t1")
			time.Sleep(5 * time.Second)
		}
		time.Sleep(5 * time.Second)
		_, err := s.Token(t.Context())
		if status.Code(err) != codes.Unavailable {
			t.Errorf("a token that has ended: %v", err)
		}
		i.away = false
		wants(t, s, "") // it was asked a moment ago
		time.Sleep(fetchAgain)
		wants(t, s, "t2")
	})
}

func TestOneCallRenewsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{life: time.Hour, slow: time.Second}
		s := Issued(i.fetch)
		all := func(want string, took time.Duration) {
			t.Helper()
			begun := time.Now()
			var calls sync.WaitGroup
			for range 50 {
				calls.Go(func() { wants(t, s, want) })
			}
			calls.Wait()
			if d := time.Since(begun); d != took {
				t.Errorf("took %v, want %v", d, took)
			}
		}
		all("t1", time.Second) // there is none yet: everybody waits
		all("t1", 0)
		time.Sleep(50 * time.Minute)
		begun := time.Now()
		got := make(chan string, 2)
		go func() { text, _ := s.Token(t.Context()); got <- text }()
		synctest.Wait()
		wants(t, s, "t1") // nobody else waits
		if time.Since(begun) != 0 {
			t.Error("a call waited for another one's token")
		}
		if text := <-got; text != "t2" {
			t.Errorf("who got the next one shows %s", text)
		}
		all("t2", 0)
	})
}

// Who gives up does not keep others from a token.
func TestCallersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{life: time.Hour, slow: time.Second}
		s := Issued(i.fetch)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Token(ctx); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("its deadline: %v", err)
		}
		wants(t, s, "t1")
	})
}

func TestTokensThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		s := Issued(i.fetch)
		wants(t, s, "t1")
		if s.replaced(t.Context(), "t1") {
			t.Error("an issuer was asked again at once")
		}
		time.Sleep(fetchAgain)
		for range 2 {
			if !s.replaced(t.Context(), "t1") {
				t.Error("there is another one")
			}
		}
		wants(t, s, "t2")
		time.Sleep(time.Hour)
		i.away = true
		if !s.replaced(t.Context(), "t2") {
			t.Error("whether there is another one is not known while the issuer is away")
		}
	})
}

func TestTokensThatHaveEndedAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Issued((&issuer{life: -time.Second}).fetch)
		wants(t, s, "")
		wants(t, Issued(func(context.Context) (Token, error) { return Token{}, nil }), "")
	})
}

func TestAFileIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "token")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := File(name)
		wants(t, s, "")
		write("one\n")
		time.Sleep(fetchAgain)
		wants(t, s, "one")
		write("two\n")
		wants(t, s, "one")
		time.Sleep(readAgain)
		wants(t, s, "two")
		for _, text := range []string{"", "two words", " \n"} {
			write(text)
			time.Sleep(time.Minute)
			wants(t, s, "two")
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		wants(t, s, "two")
		write("three")
		time.Sleep(fetchAgain)
		wants(t, s, "three")
		write("four") // a refusal is reason enough to look
		if s.replaced(t.Context(), "three"); !s.same("four") {
			t.Error("the file was not read")
		}
		if s.replaced(t.Context(), "four") {
			t.Error("a token that is still there is replaced")
		}
	})
}
