package browser

import "testing"

// TestAGraphFitsItsPage: it is made smaller where that does, and scrolled on a phone, where the page stays as wide
// as its window.
func TestAGraphFitsItsPage(t *testing.T) {
	s := fixtures(t)
	b := open(t, s.base)
	for width, scrolls := range map[int64]bool{1280: false, 1000: false, 390: true} {
		b.look("/ui/workflow?topic=orders&id=order-17", width, "light")
		if over := eval[int64](b, "(() => { const r = document.querySelector('[aria-label=Graph]'); return r.scrollWidth - r.clientWidth; })()"); over > 0 != scrolls {
			t.Errorf("at %d the graph is %d pixels wider than its place", width, over)
		}
		if over := eval[int64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("at %d the page is %d pixels wider than the window", width, over)
		}
		if tall := eval[float64](b, "(() => { const s = document.querySelector('svg.graph').getBoundingClientRect(); const v = document.querySelector('svg.graph').viewBox.baseVal; return (s.width / s.height) / (v.width / v.height); })()"); tall < 0.98 || tall > 1.02 {
			t.Errorf("at %d the graph is drawn out of shape: %v", width, tall)
		}
	}
	b.quiet()
}
