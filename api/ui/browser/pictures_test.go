package browser

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "folder that a picture of every page is written to, light and dark; without it a few are taken, and thrown away")

// few are the pages whose pictures are taken without a folder for them.
var few = []string{"topics", "failed", "changes", "workflow"}

// TestPictures takes those of docs/ui.md.
func TestPictures(t *testing.T) {
	s := asking(t, "--node-name", "ddq-1", "--store", "embedded", "--data", filepath.Join(t.TempDir(), "data"), "--audit-log", filepath.Join(t.TempDir(), "audit"))
	s.fillPictures()
	b := open(t, s.base)
	if *pictures != "" {
		s.work("mail")
		b.picture("login", "/ui/login")
	}
	b.look("/ui/", 1000, "light")
	b.enter(s.root)
	for _, p := range slices.Backward(pages) { // the first are of what happened meanwhile
		path := strings.Replace(p.path, "ID", s.operation, 1)
		switch {
		case *pictures == "" && slices.Contains(few, p.name):
			b.look(path, 1000, "light")
			b.shot()
		case *pictures != "" && p.picture:
			b.picture(p.name, path)
		}
	}
	b.quiet()
}

// fillPictures adds to the fixtures what makes pages worth a picture.
func (s *server) fillPictures() {
	s.Helper()
	for i := range 150 { // due in the next minutes
		s.call("POST", "/v1/topics/mail/tasks", map[string]any{"id": fmt.Sprint("soon-", i), "delay": fmt.Sprintf("%ds", 1+2*i+i*i%11)})
	}
	s.call("PATCH", "/v1/topics/mail", map[string]any{"policy": map[string]any{"rate": map[string]any{"kind": "RATE_KIND_TOKEN_BUCKET", "count": 50, "period_ms": "1000", "burst": 50}, "concurrency": 20}})
	for i, why := range []string{"gateway: no route to +1 555 0101", "gateway: no route to +1 555 0102", "timeout after 1.5s", "timeout after 2.25s", "timeout after 3s", "number 0100 is on the block list"} {
		s.call("POST", "/v1/topics/sms/tasks", map[string]any{"id": fmt.Sprint("code-", 2+i), "max_retries": 0})
		s.kill("sms", "sender-1", why)
	}
	s.call("POST", "/v1/topics/report/schedules/nightly:trigger", map[string]any{"request_id": "by-hand"})
	for name, verbs := range verbs {
		s.call("POST", "/v1/tokens", map[string]any{"name": name, "grants": []map[string]any{{"verbs": verbs, "topics": "*"}}})
	}
}

// work starts a worker of a topic, in a process that ends with the test.
func (s *server) work(topic string) {
	s.Helper()
	cmd := exec.Command(binary, "work", "--addr", s.addr, "--topic", topic, "--concurrency", "8", "--exec", "sleep 9")
	cmd.Env = append(os.Environ(), "DDQ_TOKEN="+s.root)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// picture writes those of a page, light and dark. Each has to be without fault as the pages of the other tests are.
func (b *browser) picture(name, path string) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.look(path, 1000, scheme)
		if err := os.WriteFile(filepath.Join(*pictures, fileOf(name, scheme)), small(b.T, b.shot()), 0o644); err != nil { //nolint:gosec // it is for all to see
			b.Fatal(err)
		}
		b.contrast(name + " " + scheme)
		b.accessible(name + " " + scheme)
	}
	b.quiet()
}

func fileOf(name, scheme string) string {
	if scheme == "dark" {
		name += "-dark"
	}
	return name + ".png"
}

// shot is a picture of the page down to where it ends, or 1,400 pixels of it, as PNG.
func (b *browser) shot() []byte {
	b.Helper()
	beyond, clip := true, page.Viewport{Width: 1000, Height: eval[float64](b, "Math.min(1400, Math.ceil(document.body.getBoundingClientRect().bottom))"), Scale: 1}
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, Clip: &clip, CaptureBeyondViewport: &beyond})
	if err != nil {
		b.Fatal(err)
	}
	return shot.Data
}

// small is a PNG with the 256 colours that it has most of: a third of the bytes, and a page looks the same.
func small(t *testing.T, picture []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	pixels, size := map[color.Color]int{}, full.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			pixels[full.At(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(pixels), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(pixels[b], pixels[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	reduced := image.NewPaletted(size, most[:min(256, len(most))])
	nearest := map[color.Color]uint8{}
	for _, c := range most {
		nearest[c] = uint8(reduced.Palette.Index(c)) //nolint:gosec // of 256
	}
	for y := range size.Dy() {
		for x := range size.Dx() {
			reduced.SetColorIndex(x, y, nearest[full.At(x, y)])
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, reduced); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestEveryPageHasItsPictures in docs/ui.md, and there are no others.
func TestEveryPageHasItsPictures(t *testing.T) {
	const docs = "../../../docs/"
	text, err := os.ReadFile(docs + "ui.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"login.png", "login-dark.png"}
	for _, p := range pages {
		if p.picture {
			want = append(want, fileOf(p.name, "light"), fileOf(p.name, "dark"))
		}
	}
	for _, file := range want {
		if !bytes.Contains(text, []byte(`"pictures/`+file+`"`)) {
			t.Errorf("docs/ui.md does not show %s", file)
		}
	}
	files, err := filepath.Glob(docs + "pictures/*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	slices.Sort(files)
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("docs/pictures has\n%v\nwant\n%v: make pictures", files, want)
	}
}
