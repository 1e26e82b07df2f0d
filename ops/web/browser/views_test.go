//go:build browser

package browser_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"

	"entropipe/ops/live"
	"entropipe/ops/pipeline"
	"entropipe/ops/web"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

var flat = []schemas.Op{schemas.Hull2D, schemas.Maxima2D}

// small is a cloud of the street with few points, made once.
var small codec.Points

// furnish offers a frame of the street and a sentence.
func (th *theatre) furnish() {
	th.t.Helper()
	if small.Cloud32.X == nil {
		small = street(th.t, 0, 6000)
	}
	th.tap.Always()
	th.frame(0)
	if k := key("tokens", "notes", 1); th.tap.Wants(&k) {
		th.tap.Offer(sentence(1))
	}
}

// frame offers frame n of the street, as soon as the tap wants one.
func (th *theatre) frame(n int64) {
	th.t.Helper()
	k := key("points", "drive", n)
	m := message(th.t, k, small)
	frames := pipeline.NewFrames(pipeline.FrameConfig{Hull3D: true, Tap: th.tap})
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		th.run(frames, m)
		if s := th.tap.Newest(live.Stream{Topic: k.Topic, Sequence: k.Sequence}); s != nil && s.Offset == n {
			return
		}
		if time.Now().After(end) {
			th.t.Fatalf("nobody wants frame %d", n)
		}
	}
}

// play opens a page and shows it the frames before n.
func (th *theatre) play(n int64, hash string, w window) *tab {
	th.t.Helper()
	th.furnish()
	p := th.openTab(hash, w)
	p.shows(0)
	for i := int64(1); i < n; i++ {
		th.frame(i)
		p.shows(i)
	}
	th.tap.Committed("points", 0, n-2)
	return p
}

// shows waits until a frame is drawn.
func (p *tab) shows(n int64) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.getElementById('live')?.dataset.frame === '%d'", n))
}

// Every view has what it promises, by keys and by links, in dark and in light, and nothing
// fails or leaves the origin.
func TestBrowserShowsEveryView(t *testing.T) {
	th := newTheatre(t, nil)
	p := th.play(3, "", desk)
	for i, v := range []struct {
		name string
		want []string
	}{
		{"live", []string{"points/drive", "Layers", "Hull in space", "6,0", "capture", "note-0001", "Next", "␣It",
			"blocks of 4 tokens", "not yet committed"}},
		{"throughput", []string{"Frames", "Points", "MB a second", "Tokens", "p50", "p95", "p99", "last ten minutes"}},
		{"lag", []string{"s behind, ", "sketches", "machine b, process 812", "240", "held by an open chunked frame",
			"1 s ago", "≈ 17", "that offset is advice"}},
		{"way", []string{"fetch", "decode", "operators take 85 %", "batch", "commit", "57 of 64", "bottleneck",
			"resident memory"}},
		{"rejects", []string{"lengths differ", "11", "offset", "20417", "column x has 119,998",
			"0000  ff ff ff ff 70", "hello, w", "1.92 MB"}},
		{"files", []string{"hulls", "410,222", "14.2 MB", "read_parquet", "4.12 GB of 512 GB free", "Copy"}},
		{"process", []string{"1.2.3", "4285dd3f7c11", "sasl-password", "(secret)", "less than 1 % of the disk",
			"machine b, process 812", "2 partitions", "/metrics"}},
	} {
		p.press(fmt.Sprint(i + 1))
		p.until(fmt.Sprintf("document.body.dataset.view === %q", v.name))
		for _, want := range v.want {
			p.until(fmt.Sprintf("document.body.innerText.toLowerCase().includes(%q)", strings.ToLower(want)))
		}
		if got := eval[string](p, "document.querySelector('.tabs [aria-current]').dataset.view"); got != v.name {
			t.Errorf("view %s: the marked tab is %s", v.name, got)
		}
		p.until(fmt.Sprintf("location.hash.includes('view=%s')", v.name))
	}
	p.close()
	p = th.openTab("view=live", window{960, 400, false}) // lower than the list of layers
	p.until("document.body.dataset.link === 'open'")
	if down := p.number("(scrollTo(0, 1000), document.scrollingElement.scrollTop)"); down != 0 {
		t.Errorf("the page scrolls by %v pixels, and its tabs out of sight; only the view is to scroll", down)
	}
	p.close()
	p = th.openTab("view=live", desk)
	p.until("document.body.dataset.link === 'open'")
	if n := eval[int](p, "document.querySelectorAll('#rejects b').length"); n != 0 {
		t.Error("a view that is not shown stays in the page")
	}
	p.press("5")
	p.until("document.querySelectorAll('.reason').length === 2")
	if eval[int](p, "document.querySelectorAll('.message b').length") != 0 {
		t.Error("the message of a reject became markup")
	}
	p.press("2")
	p.until("document.querySelectorAll('.uplot canvas').length === 6")
	p.press("6")
	p.until("document.getElementById('copy')")
	eval[bool](p, "(getSelection().removeAllRanges(), document.getElementById('copy').click(), true)")
	p.until("document.getElementById('copy').textContent !== 'Copy'")
}

// Peers and owners are links to their pages; what others say of themselves stays text, and leads
// nowhere but to http.
func TestBrowserLinksPeers(t *testing.T) {
	th := newTheatre(t, func(cfg *web.Config) {
		records := int64(5)
		evil, hidden := "<b id=evil>x</b>", "javascript:document.title='evil'"
		s := sample(time.Now(), 1)
		s.Group = live.Group{Note: "<i id=note>anew</i>", ElsewhereNote: "<i id=offsets>unknown</i>",
			Peers: []live.Peer{{Name: "machine b, process 812", URL: "http://127.0.0.1:9/", Partitions: 1},
				{Name: evil, URL: hidden}},
			Elsewhere: []live.Elsewhere{{Topic: "tokens", Partition: 3, Records: &records, Owner: evil, URL: hidden},
				{Topic: "tokens", Partition: 4, Owner: "machine b, process 812", URL: "http://127.0.0.1:9/"},
				{Topic: "tokens", Partition: 5}}}
		cfg.Numbers = &live.Numbers{}
		cfg.Numbers.Add(s)
	})
	p := th.openTab("view=process", desk)
	p.until("document.querySelectorAll('.peers li').length === 2")
	for _, view := range []string{"7", "3"} {
		p.press(view)
		p.until("document.querySelectorAll('#main a[href=\"http://127.0.0.1:9/\"]').length === 1")
		p.until("document.getElementById('main').innerText.includes('<b id=evil>x</b>')")
		const evil = "document.querySelectorAll('#evil, #note, #offsets, a[href^=javascript]').length"
		if n := eval[int](p, evil); n != 0 {
			t.Errorf("view %s: what a peer says became %d elements", view, n)
		}
	}
	p.until("document.body.innerText.includes('no process')")
}

// Keys pause, step, and change picture and camera; the address keeps what they changed.
func TestBrowserObeysKeys(t *testing.T) {
	th := newTheatre(t, nil)
	p := th.play(6, "", desk)
	data := func(name, want string) {
		t.Helper()
		p.until(fmt.Sprintf("document.getElementById('live').dataset.%s === %q", name, want))
	}
	p.until("document.querySelectorAll('.ticks .done').length >= 1")
	p.press(" ")
	data("paused", "yes")
	data("shown", "exact") // the newest frame, whole, with its mesh
	all := eval[string](p, "document.querySelector('[data-fact=points] dd').textContent.replace(',', '')")
	if held := p.data("held"); held != all {
		t.Errorf("the exact frame has %s of %s points", held, all)
	}
	p.until("document.getElementById('say').textContent.includes('Paused')")
	run(p, chromedpKey("ArrowLeft"))
	data("frame", "4")
	run(p, chromedpKey("ArrowLeft"))
	data("frame", "3")
	p.until("!document.getElementById('uncommitted').offsetParent") // frame 3 is committed
	run(p, chromedpKey("ArrowRight"))
	data("frame", "4")
	p.until("document.getElementById('uncommitted').offsetParent")
	th.tap.Committed("points", 0, 6)
	p.until("!document.getElementById('uncommitted').offsetParent")
	th.frame(6)
	time.Sleep(300 * time.Millisecond)
	if got := p.data("frame"); got != "4" {
		t.Errorf("paused, and the frame became %s", got)
	}
	p.press(" ")
	data("paused", "no")
	data("frame", "6")
	for _, c := range []struct{ key, link string }{
		{"t", "mode=top"}, {"h", "layers=points,hull3,maxima,mesh"}, {"c", "colour=intensity"}, {"v", "map=cividis"},
		{"f", "follow=0"}, {"+", "cam="},
	} {
		p.press(c.key)
		p.until(fmt.Sprintf("location.hash.includes(%q)", c.link))
	}
	link := eval[string](p, "location.hash")
	p.press("?")
	p.until("document.getElementById('help').open")
	p.press("?")
	p.until("!document.getElementById('help').open")
	p.press("x")
	p.until("document.documentElement.dataset.theme === 'dark'")

	other := th.openTab(strings.TrimPrefix(link, "#"), desk) // another person opens the link
	other.until("document.getElementById('live')?.dataset.frame === '6'")
	other.until("document.getElementById('mode').textContent === 'Above'")
	other.until("!document.getElementById('layer-hull').checked")
	other.press("+")
	other.until(fmt.Sprintf("location.hash !== %q && location.hash.includes('cam=')", link))
}

// When the process ends, the page keeps its picture, says so, and comes back by itself.
func TestBrowserReconnects(t *testing.T) {
	th := newTheatre(t, nil)
	p := th.play(3, "", desk)
	p.expectErrors(true)
	th.close()
	p.until("document.body.classList.contains('stale') && document.getElementById('notice').offsetParent")
	p.until("document.getElementById('notice-text').textContent.includes('Connection lost')")
	if got := p.data("frame"); got != "2" {
		t.Errorf("the last picture is of frame %q, want 2", got)
	}
	p.press("3")
	p.until("document.body.innerText.includes('machine b')") // the last numbers
	p.press("1")
	th.tap = &live.Tap{}
	th.cfg.Tap = th.tap
	th.open()
	p.press("r")
	p.until("document.body.dataset.link === 'open'")
	p.expectErrors(false)
	p.until("!document.body.classList.contains('stale')")
	th.furnish()
	p.shows(0)
	th.frame(1)
	p.shows(1) // the new process counts anew
	p.until("document.querySelectorAll('.ticks .done, .ticks .open').length <= 2")
}

// Where no WebSocket passes, the numbers come as events, and the page says so.
func TestBrowserFallsBackToEvents(t *testing.T) {
	th := newTheatre(t, nil)
	p := newTab(t, desk)
	call(p, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
		Source: "WebSocket = class { static OPEN = 1; readyState = 3; " +
			"constructor() { setTimeout(() => this.onclose?.()); } }"})
	p.visit(th.address())
	p.until("document.body.dataset.link === 'numbers'")
	p.until("document.getElementById('notice-text').textContent.includes('No WebSocket passes')")
	p.until("document.getElementById('vitals').innerText.includes('gaining')")
	p.press("3")
	p.until("document.body.innerText.includes('machine b')")
}

// The token in the address becomes a cookie; without it there is no page.
func TestBrowserTakesAToken(t *testing.T) {
	const token = "correct-horse-battery"
	th := newTheatre(t, func(cfg *web.Config) { cfg.Token = token })
	th.furnish()
	p := newTab(t, desk)
	p.expectErrors(true)
	p.visit(th.address())
	said := eval[string](p, "document.body.innerText")
	if !strings.Contains(said, "token") || strings.Contains(said, "Layers") {
		t.Errorf("without token: %s", said)
	}
	p.expectErrors(false)
	p.visit(th.address() + "?token=" + token)
	p.until("document.getElementById('live')?.dataset.frame === '0'")
	if address := eval[string](p, "location.href"); strings.Contains(address, token) {
		t.Errorf("the token stays in the address: %s", address)
	}
	if cookie := eval[string](p, "document.cookie"); cookie != "" {
		t.Errorf("a script can read the cookie: %s", cookie)
	}
}

// A page that nobody sees views no stream, and draws again when it is seen.
func TestBrowserRestsWhenHidden(t *testing.T) {
	th := newTheatre(t, nil)
	p := th.play(1, "", desk)
	hide := func(hidden bool) {
		eval[bool](p, fmt.Sprintf("(Object.defineProperty(document, 'hidden', {value: %v, configurable: true}), "+
			"document.dispatchEvent(new Event('visibilitychange', {bubbles: true})))", hidden))
	}
	hide(true)
	waitFor(t, func() bool { asked, streams := p.watched(); return asked && !streams })
	th.frame(1)
	time.Sleep(300 * time.Millisecond)
	if got := p.data("frame"); got != "0" {
		t.Errorf("hidden, and frame %s was drawn", got)
	}
	hide(false)
	waitFor(t, func() bool { _, streams := p.watched(); return streams })
	p.until("document.getElementById('live').dataset.frame === '1'")
}

// A scene may arrive just as its view leaves the page, where elements have no colours: it is
// drawn when the view is back.
func TestBrowserDrawsTokensOfAViewThatIsAway(t *testing.T) {
	th := newTheatre(t, nil)
	p := th.play(1, "", desk)
	const pane = `import("/assets/tokens.js").then(({ TokenPane }) => {
		const pane = new TokenPane(), header = {id: "a", n_tokens: 8, ids: [1, 2], blocks: {rows: 1, cols: 2, size: 4}};
		pane.show({header, blocks: [1, 0]}, true);
		document.getElementById("tokens").replaceWith(pane.element);
		pane.matrix();
		const [on, off] = [0, 1].map(x => pane.blocks.getContext("2d").getImageData(x, 0, 1, 1).data.join());
		return on !== off && on.endsWith(",255") && off.endsWith(",255");
	})`
	if !eval[bool](p, pane) {
		t.Error("the mask is not drawn")
	}
}

// A lost context of the graphics processor comes back with the picture.
func TestBrowserRestoresGraphics(t *testing.T) {
	th := newTheatre(t, nil)
	p := th.play(1, "layers=points", desk)
	before := p.picture("#picture")
	p.expectErrors(true) // the browser warns
	eval[bool](p, "(window.lose = document.getElementById('picture').getContext('webgl2')"+
		".getExtension('WEBGL_lose_context'), lose.loseContext(), true)")
	p.until("document.getElementById('picture').dataset.lost === ''")
	eval[bool](p, "(lose.restoreContext(), true)")
	p.until("document.getElementById('picture').dataset.lost === undefined")
	p.expectErrors(false)
	waitFor(t, func() bool { return differing(t, before, p.picture("#picture"), 24) < 0.01 })
}

// axe-core finds nothing serious in any view, in dark, in light, and in a narrow window.
func TestBrowserIsAccessible(t *testing.T) {
	path := os.Getenv("ENTROPIPE_AXE")
	if path == "" {
		t.Skip("ENTROPIPE_AXE names no axe.min.js of npm's axe-core")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]window{"dark": desk, "light": {1440, 900, true}, "narrow": {320, 640, false}} {
		th := newTheatre(t, nil)
		p := th.play(3, "", w)
		eval[bool](p, string(axe)+"; true")
		for i, view := range []string{"live", "throughput", "lag", "way", "rejects", "files", "process", "help"} {
			if view == "help" {
				p.press("?")
			} else {
				p.press(fmt.Sprint(i + 1))
				p.until(fmt.Sprintf("document.body.dataset.view === %q", view))
			}
			time.Sleep(200 * time.Millisecond) // transitions of colours
			found := eval[[]string](p, `axe.run().then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
				.map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 150) + " " + n.failureSummary).join(" | ")))`)
			for _, f := range found {
				t.Errorf("%s, %s: %s", name, view, f)
			}
			wide := eval[int](p, "document.documentElement.scrollWidth - innerWidth")
			if wide > 0 {
				t.Errorf("%s, %s: the page is %d pixels wider than its window", name, view, wide)
			}
		}
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 2 min")
		}
	}
}

// A drawing is drawn as strokes, y downwards, and nothing joins one stroke with the next.
func TestBrowserDrawsStrokes(t *testing.T) {
	th := newTheatre(t, nil)
	th.tap.Always()
	var e schemas.Encoder
	k := key("sketches", "house", 0)
	value, err := e.AppendSketches(nil, []schemas.Sketch{{Drawing: schemas.Drawing{ID: 7, Label: "house"},
		Strokes: []schemas.Stroke{{X: []float64{0, 200}, Y: []float64{0, 0}},
			{X: []float64{0, 0, 200}, Y: []float64{100, 200, 200}}}}})
	if err != nil {
		t.Fatal(err)
	}
	th.process(schemas.Message{Topic: k.Topic, Time: time.Now(), Value: value,
		Headers: schemas.Headers(k, schemas.SchemaSketches, "test")}, flat...)
	p := th.openTab("layers=points&beside=none&cam=0,0.5,400,100,100,0", window{1000, 700, false})
	p.shows(0)
	p.until("document.querySelector('[data-fact=drawing] dd')?.textContent === 'house'")
	m := decode(t, p.picture("#picture"))
	scale := float64(m.Bounds().Dy()) / (2 * 400 * math.Tan(math.Pi/8))
	for _, c := range []struct {
		name  string
		x, y  float64
		drawn bool
	}{{"first stroke, above", 100, 0, true}, {"second stroke, down", 0, 150, true},
		{"second stroke, below", 100, 200, true},
		{"between the strokes", 150, 75, false}, {"from the first to the second", 100, 50, false}} {
		at := m.At(m.Bounds().Dx()/2+int((c.x-100)*scale), m.Bounds().Dy()/2+int((c.y-100)*scale))
		r, g, b, _ := at.RGBA()
		if bright := r>>8+g>>8+b>>8 > 250; bright != c.drawn {
			t.Errorf("%s: %d %d %d, drawn %v", c.name, r>>8, g>>8, b>>8, c.drawn)
		}
	}
}

// The command demo prints an address, and behind it the LiDAR turns.
func TestBrowserWatchesADemo(t *testing.T) {
	program := os.Getenv("ENTROPIPE_BIN")
	if program == "" {
		program = filepath.Join(t.TempDir(), "entropipe")
		if out, err := exec.Command("go", "build", "-o", program, "../../..").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	p := newTab(t, desk)
	demo := exec.Command(program, "demo", "--out", out, "--listen", "127.0.0.1:0",
		"--frames", "600", "--points", "20000")
	said, err := demo.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if a := regexp.MustCompile(`http://[^/ ]+/`).FindString(lines.Text()); a != "" && len(address) == 0 {
				address <- a
			}
		}
	}()
	defer func() { // before the folder is removed
		p.expectErrors(true)
		demo.Process.Kill()
		<-read
		demo.Wait()
	}()
	select {
	case a := <-address:
		p.visit(a)
	case <-read:
		t.Fatal("the demo ended and printed no address")
	}
	p.until("Number(document.getElementById('live')?.dataset.frames) >= 5")
	p.until("document.getElementById('stream').value.startsWith('points/')")
	p.until("document.querySelectorAll('.words span').length > 5") // tokens stand beside it
	for i, want := range []string{"layers", "latency", "records behind", "in use", "rejected", "duckdb",
		"configuration in effect"} {
		p.press(fmt.Sprint(i + 1))
		p.until(fmt.Sprintf("document.getElementById('main').innerText.toLowerCase().includes(%q)", want))
	}
}
