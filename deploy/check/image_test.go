package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// instruction is one of the Dockerfile: its name, and what follows.
type instruction struct{ name, args string }

// stage is the instructions from one FROM to the next.
type stage struct {
	base, name string
	rest       []instruction
}

// forms are the instructions that the Dockerfile uses, and how they are written: what is not here
// is refused, so whoever adds a flag looks it up.
var forms = map[string]*regexp.Regexp{
	"FROM":       regexp.MustCompile(`^(?:--platform=\$\w+ )?([\w./:-]+)(?: AS (\w+))?$`),
	"ARG":        regexp.MustCompile(`^[A-Z]+(=\S*)?$`),
	"ENV":        regexp.MustCompile(`^[A-Z_]+=\S+( [A-Z_]+=\S+)*$`),
	"WORKDIR":    regexp.MustCompile(`^/\S*$`),
	"COPY":       regexp.MustCompile(`^(?:--from=(\w+) )?(?:--chown=\d+:\d+ )?[\w./]+( [\w./]+)+$`),
	"RUN":        regexp.MustCompile(`^(--mount=type=cache,target=/\S+ )*[^-\s].*$`),
	"USER":       regexp.MustCompile(`^\d+:\d+$`),
	"EXPOSE":     regexp.MustCompile(`^\d+/(tcp|udp)( \d+/(tcp|udp))*$`),
	"ENTRYPOINT": regexp.MustCompile(`^\[.*\]$`),
	"CMD":        regexp.MustCompile(`^\[.*\]$`),
}

var (
	comments      = regexp.MustCompile(`(?m)^\s*#.*\n`)
	continuations = regexp.MustCompile(`\s*\\\n\s*`)
)

// parseImage reads a Dockerfile.
func parseImage(text string) ([]stage, error) {
	var all []stage
	text = continuations.ReplaceAllString(comments.ReplaceAllString(text, ""), " ")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		form := forms[name]
		if form == nil || !form.MatchString(args) {
			return nil, fmt.Errorf("nobody checks %q", line)
		}
		found := form.FindStringSubmatch(args)
		switch {
		case name == "FROM":
			all = append(all, stage{base: found[1], name: found[2]})
			continue
		case len(all) == 0:
			return nil, fmt.Errorf("%q is of no stage", line)
		case name == "COPY" && found[1] != "" && found[1] != all[0].name:
			return nil, fmt.Errorf("%q is from a stage that is none", line)
		case strings.HasPrefix(args, "[") && !json.Valid([]byte(args)):
			return nil, fmt.Errorf("%q is no list", line)
		}
		last := &all[len(all)-1]
		last.rest = append(last.rest, instruction{name, args})
	}
	return all, nil
}

func TestAWrongDockerfileIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"FORM golang:1.26.8":                                     "FORM",
		"USER 1:1\nFROM golang:1.26.8":                           "no stage",
		"FROM a:1.0.0 AS build\nCOPY --fron=build a b":           "--fron",
		"FROM a:1.0.0 AS build\nCOPY --from=buidl a b":           "none",
		"FROM a:1.0.0\nRUN --mount=type=cach,target=/x go build": "cach",
		"FROM a:1.0.0\nENTRYPOINT [/usr/local/bin/ddq]":          "no list",
		"FROM a:1.0.0\nCMD server":                               "CMD",
		"FROM a:1.0.0\nENV DDQ_DATA = /x":                        "ENV",
	} {
		if _, err := parseImage(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	all, err := parseImage("FROM a:1.0.0 AS build\n# says\nRUN --mount=type=cache,target=/c \\\n  # why\n  go build\nFROM b\nCOPY --from=build /out/ddq /ddq\n")
	if err != nil || len(all) != 2 || all[0].rest[0].args != "--mount=type=cache,target=/c go build" {
		t.Errorf("%v, %v", all, err)
	}
}
