package redisstore

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// Lua finds out about a name that it does not know when a line runs, which may be the one
// for a case that no test has.
func TestScriptsKnowTheirNames(t *testing.T) {
	declaration := regexp.MustCompile(`\blocal ([A-Z_, ]+) =`)
	quoted := regexp.MustCompile(`'[^'\n]*'`)
	for _, name := range scriptNames(t) {
		s, err := loadScript(name)
		if err != nil {
			t.Fatal(err)
		}
		code := quoted.ReplaceAllString(luaComment.ReplaceAllString(s.Source, ""), "")
		known := []string{"KEYS", "ARGV"}
		for _, d := range declaration.FindAllStringSubmatch(code, -1) {
			known = append(known, strings.Split(d[1], ", ")...)
		}
		for _, used := range upperName.FindAllString(code, -1) {
			if !slices.Contains(known, used) {
				t.Errorf("%s.lua uses %s, which is neither one of its keys nor a value", name, used)
			}
		}
		if slices.Sort(known); len(slices.Compact(slices.Clone(known))) != len(known) {
			t.Errorf("%s.lua knows a name twice: %v", name, known)
		}
	}
}

// scriptNames are the files that are scripts, and not parts of some.
func scriptNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := fs.Glob(luaFiles, "lua/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := luaFiles.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`KEYS\[\d`).Match(text) {
			t.Errorf("%s has a key by its number", file)
		}
		if strings.HasPrefix(string(text), "#!lua") {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(file, "lua/"), ".lua"))
		}
	}
	return names
}

func TestOutcomesAreSpelledAsInLua(t *testing.T) {
	for status, want := range map[store.Status]string{store.OK: "OK", store.Added: "ADDED", store.NotDue: "NOT_DUE", store.WrongState: "WRONG_STATE"} {
		if got := upperCase(status.String()); got != want {
			t.Errorf("%v is %s, want %s", status, got, want)
		}
	}
}
