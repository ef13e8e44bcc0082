package check

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imageBinary is where the image has ddq.
const imageBinary = "/usr/local/bin/ddq"

func stages(t *testing.T) []stage {
	t.Helper()
	all, err := parseImage(string(open(t, "Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var exactTag = regexp.MustCompile(`:v?\d+\.\d+\.\d+`)

// pinned reports whether an image is named with an exact version.
func pinned(image string) bool { return exactTag.MatchString(image) }

func TestImagesArePinned(t *testing.T) {
	all := stages(t)
	if len(all) != 2 || !pinned(all[0].base) {
		t.Fatalf("stages %+v", all)
	}
	// Distroless has no versions, but a tag for each release of Debian.
	if got, want := all[1].base, "gcr.io/distroless/static-debian12:nonroot"; got != want {
		t.Errorf("the image is based on %s, not %s", got, want)
	}
}

// TestImageIsBuiltByAGoNewEnough holds the builder's version against go.mod.
func TestImageIsBuiltByAGoNewEnough(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	series := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if series == nil || !strings.HasPrefix(stages(t)[0].base, "golang:"+string(series[1])+".") {
		t.Errorf("go.mod wants Go %s, the image is built from %s", series[1], stages(t)[0].base)
	}
}

func TestImageRunsTheServerWithoutRights(t *testing.T) {
	user, entry, cmd := "", "", ""
	for _, i := range stages(t)[1].rest {
		switch i.name {
		case "USER":
			user = i.args
		case "ENTRYPOINT":
			entry = i.args
		case "CMD":
			cmd = i.args
		case "ENV":
			env := map[string]string{}
			for _, pair := range strings.Fields(i.args) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
			checkSettings(t, env)
		}
	}
	if user != "65532:65532" {
		t.Errorf("user %q", user)
	}
	if entry != `["`+imageBinary+`"]` || cmd != `["server"]` {
		t.Errorf("entry point %s, command %s", entry, cmd)
	}
}

// TestImageHasWhatTheBuildNeeds holds .dockerignore against the folders with
// packages of the main module.
func TestImageHasWhatTheBuildNeeds(t *testing.T) {
	ignore := string(open(t, "Dockerfile.dockerignore"))
	for _, name := range neededFolders(t) {
		if !strings.Contains(ignore, "\n!"+name+"\n") {
			t.Errorf(".dockerignore keeps %s out of the build", name)
		}
	}
}

func neededFolders(t *testing.T) []string {
	t.Helper()
	const module = "github.com/ddq-io/ddq/"
	var folders []string
	for pkg := range strings.Lines(goList(t, "-deps", "./cmd/ddq")) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(pkg), module); ok {
			top, _, _ := strings.Cut(path.Clean(rest), "/")
			folders = append(folders, top)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}
