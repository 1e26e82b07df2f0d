//go:build browser

package browser_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"entropipe/docs/truth"
)

// The truth page is read on a desk and on a phone, light and dark: it asks for nothing, the
// page itself never scrolls sideways, wide tables do and take the keyboard, every link
// within it has a target, and each figure is as wide as it can be.
func TestTruthPage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(truth.Page)
	}))
	defer server.Close()
	for name, w := range map[string]window{"desk, dark": desk, "desk, light": {1440, 900, true},
		"phone": {width: 360, height: 740, light: true}} {
		t.Run(name, func(t *testing.T) {
			p := newTab(t, w)
			p.expectErrors(true) // a browser asks for an icon, which the policy refuses
			p.visit(server.URL + "/")
			if wide := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				t.Errorf("the page is %d pixels wider than the window", wide)
			}
			if lost := eval[string](p, "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1))"+
				".filter(id => !document.getElementById(id)).join(' ')"); lost != "" {
				t.Errorf("links without a target: %s", lost)
			}
			rows := "document.querySelectorAll('#README table')[0].tBodies[0].rows.length"
			if n := eval[int](p, rows); n != 36 {
				t.Errorf("the grid has %d rows", n)
			}
			if n := eval[int](p, "[...document.querySelectorAll('table')].filter(e => "+
				"e.parentElement.className != 'scroll' || e.parentElement.tabIndex != 0).length"); n != 0 {
				t.Errorf("%d tables do not scroll by the keyboard", n)
			}
			if n := eval[int](p, "[...document.querySelectorAll('figure svg')].filter(e => "+
				"e.getBoundingClientRect().width < 200).length"); n != 0 {
				t.Errorf("%d figures are too small", n)
			}
			if n := eval[int](p, "document.querySelectorAll('figure svg').length"); n < 7 {
				t.Errorf("%d figures", n)
			}
			back := eval[int](p, "parseInt(getComputedStyle(document.body).backgroundColor.slice(4))")
			if bright := back > 128; bright != w.light {
				t.Errorf("background with %d of 255 parts of red, light: %v", back, w.light)
			}
			p.press("\t")
			if first := eval[string](p, "document.activeElement.className"); first != "skip" {
				t.Errorf("the first stop of the keyboard is %q, want the link to the grid", first)
			}
		})
	}
}
