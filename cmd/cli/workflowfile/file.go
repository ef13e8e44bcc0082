package workflowfile

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// The file of a workflow is the message of the API in YAML, and shorter where that is clear: after: [a, b]
// for conditions, text for payloads, timeout: 24h for timeout_ms, carry_on for an enum, a map for labels.

// File is a workflow as it was read, with the text for messages about it.
type File struct {
	*ddqv1.Workflow
	lines []string
}

// Read reads the file of a workflow. An error says in which line.
func Read(text []byte) (*File, error) {
	f := &File{lines: strings.Split(string(text), "\n")}
	fields, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	if f.Workflow, err = Of(fields); err != nil {
		return nil, f.At(err)
	}
	return f, nil
}

// Of reads a workflow within another file.
func Of(fields map[string]any) (*ddqv1.Workflow, error) {
	if err := shortWorkflow(fields); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	w := &ddqv1.Workflow{}
	return w, protojson.Unmarshal(plain, w)
}

// quoted finds the name that an error is about, and proto what the library puts before it.
var (
	quoted = regexp.MustCompile(`(?:field|value for [a-z0-9 ]+ field) "?([A-Za-z0-9_]+)"?`)
	proto  = regexp.MustCompile(`^proto:.?\(line [0-9:]+\): `)
)

// At says in which line the name is that an error is about.
func (f *File) At(err error) error { return At(f.lines, err) }

// At says in which of some lines the name is that an error is about.
func At(lines []string, err error) error {
	text := plainText(err)
	found := quoted.FindStringSubmatch(text)
	if found == nil {
		return errors.New(text)
	}
	key := regexp.MustCompile(`(^|[ {,-])` + regexp.QuoteMeta(found[1]) + ` *:|: *` + regexp.QuoteMeta(found[1]) + `\b`)
	for i, line := range lines {
		if key.MatchString(line) {
			return fmt.Errorf("line %d: %s", i+1, text)
		}
	}
	return errors.New(text)
}

// plainText is what an error says, without what the library puts before it.
func plainText(err error) string {
	plain := strings.Join(strings.Fields(err.Error()), " ") // the library mixes in other spaces
	return proto.ReplaceAllString(plain, "")
}

// stepOf finds the number of the step that a field is of.
var stepOf = regexp.MustCompile(`^steps\[([0-9]+)\]`)

// Refused says in which line the step is that the server refused.
func (f *File) Refused(err error) error {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return err
	}
	found, n := stepOf.FindStringSubmatch(answer.Field), 0
	if found == nil {
		return err
	}
	if _, scan := fmt.Sscan(found[1], &n); scan != nil || n >= len(f.Steps) {
		return err
	}
	for i, line := range f.lines {
		if name := strings.TrimLeft(line, " -{"); strings.HasPrefix(name, "name: "+f.Steps[n].Name) {
			placed := *answer
			placed.Message = fmt.Sprintf("line %d: %s", i+1, answer.Message)
			return &placed
		}
	}
	return err
}

// shortWorkflow spells out what a file says shorter.
func shortWorkflow(w map[string]any) error {
	if err := shorten(w, "FAILURE_POLICY_", "failure", "input", "timeout", "retention"); err != nil {
		return err
	}
	return shortSteps(w)
}

func shortSteps(w map[string]any) error {
	steps, _ := w["steps"].([]any)
	for _, each := range steps {
		s, ok := each.(map[string]any)
		if !ok {
			return fmt.Errorf("a step is %v: want name: and what it does", each)
		}
		if err := shortStep(s); err != nil {
			return err
		}
	}
	return nil
}

func shortStep(s map[string]any) error {
	if after, ok := s["after"].(string); ok {
		s["after"] = []any{after}
	}
	if after, ok := s["after"].([]any); ok {
		for i := range after {
			switch a := after[i].(type) {
			case string:
				after[i] = map[string]any{"step": a}
			case map[string]any:
				if err := shorten(a, "ON_", "on"); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range []string{"task", "undo"} {
		t, ok := s[name].(map[string]any)
		if !ok {
			if given, there := s[name]; there && given == nil {
				s[name] = map[string]any{}
			}
			continue
		}
		if err := shorten(t, "", "", "payload", "visibility_timeout", "handler_timeout"); err != nil {
			return err
		}
	}
	if wait, ok := s["wait"].(map[string]any); ok {
		if err := shorten(wait, "", "", "otherwise", "delay", "timeout"); err != nil {
			return err
		}
	}
	if child, ok := s["child"].(map[string]any); ok {
		return shortWorkflow(child)
	}
	return nil
}

// shorten spells out an enum, text that is bytes on the wire, lengths of time in milliseconds, and
// maps of labels and attributes.
func shorten(m map[string]any, prefix, enum string, names ...string) error {
	if word, ok := m[enum].(string); ok && !strings.HasPrefix(word, prefix) {
		m[enum] = prefix + strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
	}
	for _, name := range []string{"labels", "attributes"} {
		pairs, ok := m[name].(map[string]any)
		if !ok {
			continue
		}
		list := []any{}
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			list = append(list, map[string]any{"key": key, "value": fmt.Sprint(pairs[key])})
		}
		m[name] = list
	}
	for _, name := range names {
		text, ok := m[name].(string)
		switch {
		case !ok:
		case name == "payload" || name == "input" || name == "otherwise" || name == "again":
			m[name] = base64.StdEncoding.EncodeToString([]byte(text))
		default:
			d, err := time.ParseDuration(text)
			if err != nil {
				return fmt.Errorf("field %q: want a length of time such as 90s or 24h, not %q", name, text)
			}
			delete(m, name)
			m[name+"_ms"] = d.Milliseconds()
		}
	}
	return nil
}
