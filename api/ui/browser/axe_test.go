package browser

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// axeFile is axe-core, which tools/deps.sh tests installs as the lock file says.
const axeFile = "node_modules/axe-core/axe.min.js"

// axe is its source. Without it the tests fail: they are not left out.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(axeFile)
	if err != nil {
		t.Fatal(err, ": tools/deps.sh tests installs it")
	}
	return string(source)
}

// accessible fails where axe finds that a page keeps somebody out; what is folded is opened for it.
func (b *browser) accessible(where string) {
	b.Helper()
	eval[bool](b, axe(b.T)+"; true")
	found := eval[[]string](b, `(async () => {
	  for (const d of document.querySelectorAll("details")) d.open = true;
	  const r = await axe.run(document, { resultTypes: ["violations"] });
	  return r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html.slice(0, 200)));
	})()`, chromedp.EvalAwaitPromise)
	for _, what := range found {
		b.Errorf("%s: %s", where, what)
	}
}
