//go:build browser

package browser_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is one Chromium for all tests of the package.
var browser struct {
	once sync.Once
	ctx  context.Context
	err  error
	end  func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.end != nil {
		browser.end()
	}
	os.Exit(code)
}

// chromium is the browser's program: ENTROPIPE_CHROMIUM, else one of PATH.
func chromium() (string, error) {
	if path := os.Getenv("ENTROPIPE_CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Chromium in PATH: install one, or name it by ENTROPIPE_CHROMIUM")
}

func startBrowser() {
	path, err := chromium()
	if err != nil {
		browser.err = err
		return
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck, chromedp.Flag("headless", "new"), chromedp.Flag("use-gl", "angle"),
		chromedp.Flag("use-angle", "swiftshader"), chromedp.Flag("js-flags", "--expose-gc")}
	for _, name := range []string{"enable-unsafe-swiftshader", "hide-scrollbars", "enable-precise-memory-info",
		"disable-background-timer-throttling", "disable-renderer-backgrounding", "disable-extensions",
		"disable-backgrounding-occluded-windows", "disable-dev-shm-usage", "no-proxy-server"} {
		options = append(options, chromedp.Flag(name, true))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, endAll := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endFirst := chromedp.NewContext(ctx)
	browser.ctx = ctx
	browser.end = func() { endFirst(); endAll() }
	_, browser.err = chromedp.Run(ctx, chromedp.Location())
}

// tab is a page in the browser. It collects what the console says and which addresses are
// asked for; a test that does not expect errors fails by them.
type tab struct {
	t        testing.TB
	ctx      context.Context
	origin   string
	mu       sync.Mutex
	problems []string
	sent     []string // texts sent by WebSocket
	expects  bool     // errors: the test makes some
	close    func()
}

// size of a window and its colours.
type window struct {
	width, height int64
	light         bool
}

var desk = window{width: 1440, height: 900}

// openTab opens an address of the theatre in a tab of its own.
func (th *theatre) openTab(hash string, w window) *tab {
	th.t.Helper()
	p := newTab(th.t, w)
	p.visit(th.address() + "#" + hash)
	return p
}

func newTab(t testing.TB, w window) *tab {
	t.Helper()
	browser.once.Do(startBrowser)
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	ctx, end := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	ctx, late := context.WithTimeout(ctx, 10*time.Minute)
	p := &tab{t: t, ctx: ctx, close: end}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		late()
		end()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Error(problem)
		}
	})
	scheme := "dark"
	if w.light {
		scheme = "light"
	}
	run(p, chromedp.EmulateViewport(w.width, w.height))
	call(p, network.Enable, network.EnableParams{})
	call(p, runtime.Enable, cdp.Empty{})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	return p
}

// listen notes errors of the console, exceptions, failed requests and foreign addresses.
func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note := func(format string, values ...any) {
		if !p.expects {
			p.problems = append(p.problems, fmt.Sprintf(format, values...))
		}
	}
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			args, _ := json.Marshal(e.Args)
			note("console: %s", args)
		}
	case *runtime.EventExceptionThrown:
		details, _ := json.Marshal(e.ExceptionDetails)
		note("exception: %s", details)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; p.origin != "" && !strings.HasPrefix(u, p.origin) && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "ws"+strings.TrimPrefix(p.origin, "http")) {
			p.problems = append(p.problems, "request outside the origin: "+u)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 && !strings.HasSuffix(e.Response.URL, "/favicon.ico") {
			note("answer %d: %s", e.Response.Status, e.Response.URL)
		}
	case *network.EventWebSocketFrameSent:
		p.sent = append(p.sent, string(e.Response.PayloadData))
	}
}

// expectErrors lets errors pass from now on: the test makes some.
func (p *tab) expectErrors(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expects = yes
}

// run runs an action in the tab.
func run[T any](p *tab, action chromedp.Action[T]) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, action)
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

// call sends a command of the browser's protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

func (p *tab) visit(address string) {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.origin = u.Scheme + "://" + u.Host
	p.mu.Unlock()
	run(p, chromedp.Navigate(address))
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits for an expression to be true; what it then is goes into the failure.
func (p *tab) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if eval[bool](p, "!!("+expression+")") {
			return
		}
		if time.Now().After(end) {
			state := eval[string](p, "JSON.stringify([document.body.dataset, "+
				"document.getElementById('live')?.dataset, location.hash])")
			p.t.Fatalf("not within 2 min: %s\n%s\n%s", expression, state, eval[string](p, "document.body.innerText"))
		}
	}
}

// press presses keys as a person does.
func (p *tab) press(keys string) {
	p.t.Helper()
	run(p, chromedp.KeyEvent(keys))
}

// picture returns the PNG of an element, or of the window for an empty selector.
func (p *tab) picture(selector string) []byte {
	p.t.Helper()
	if selector == "" {
		return run(p, chromedp.CaptureScreenshot())
	}
	box := eval[[]float64](p, fmt.Sprintf("(r => [r.x, r.y, r.width, r.height])"+
		"(document.querySelector(%q).getBoundingClientRect())", selector))
	return call(p, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
		Clip: &cdppage.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}}).Data
}

// watched reports whether the last request for views named streams.
func (p *tab) watched() (asked, streams bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.sent {
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil && strings.HasPrefix(string(plain), "{") {
			text = string(plain)
		}
		var request struct {
			Op      string            `json:"op"`
			Streams []json.RawMessage `json:"streams"`
		}
		if json.Unmarshal([]byte(text), &request) == nil && request.Op == "view" {
			asked, streams = true, len(request.Streams) > 0
		}
	}
	return asked, streams
}

// Live dataset of the page, by name.
func (p *tab) data(name string) string {
	p.t.Helper()
	return eval[string](p, "document.getElementById('live').dataset."+name+" ?? ''")
}
