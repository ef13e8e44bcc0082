package node

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestDurationsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]struct {
		is      time.Duration
		written string
	}{
		"0":       {0, "0s"},
		"250ms":   {250 * time.Millisecond, "250ms"},
		"1.5h":    {90 * time.Minute, "1h30m"},
		"60m":     {time.Hour, "1h"},
		"1h0m5s":  {time.Hour + 5*time.Second, "1h0m5s"},
		"24h":     {day, "1d"},
		"5d":      {5 * day, "5d"},
		"-5d":     {-5 * day, "-120h"},
		"1w2d12h": {9*day + 12*time.Hour, "228h"},
		"1y":      {365 * day, "365d"},
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want.is || DurationText(got) != want.written {
			t.Errorf("%s is %v, %v, written %s; want %v, written %s", text, got, err, DurationText(got), want.is, want.written)
		}
		if again, err := ParseDuration(DurationText(got)); err != nil || again != got {
			t.Errorf("%s once more: %v, %v", DurationText(got), again, err)
		}
	}
	for _, text := range []string{"", "5", "d", "5 d", "5x", "--5d", "soon"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

func TestDurationFlag(t *testing.T) {
	var d, none time.Duration
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	DurationVar(fs, &d, "keep", time.Hour, "how long")
	DurationVar(fs, &none, "wait", 0, "how long")
	if got, want := fs.FlagUsages(), "      --keep duration   how long (default 1h)\n      --wait duration   how long\n"; got != want {
		t.Errorf("usage\n%s, want\n%s", got, want)
	}
	if err := fs.Parse([]string{"--keep", "30d"}); err != nil || d != 30*day {
		t.Errorf("%v, %v", d, err)
	}
}
