package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/ops/live"
)

const secret = "a token that nobody guesses"

// handler returns the routes of a server that listens on an address.
func handler(t *testing.T, address string, change func(*Config)) http.Handler {
	cfg := Config{Listen: address, Gatherer: prometheus.NewRegistry(), Ready: func() error { return nil },
		Log: slog.New(slog.DiscardHandler), Numbers: &live.Numbers{},
		Settings: func() []Setting { return []Setting{{"topic", "points", "set"}} },
		Handlers: map[string]http.Handler{"/foxglove": http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("foxglove")) })}}
	if change != nil {
		change(&cfg)
	}
	h := newHub(&cfg)
	t.Cleanup(h.close)
	return routes(&cfg, h, address)
}

// A request passes or fails by Host, Origin and token, on every path that shows data.
func TestGuard(t *testing.T) {
	const local, everywhere = "127.0.0.1:8421", "[::]:8421"
	token := func(c *Config) { c.Token = secret }
	named := func(c *Config) { c.Hosts, c.Token = []string{"watch.Example"}, secret }
	foreign := func(c *Config) { c.Origins = []string{"https://app.foxglove.dev"} }
	for _, c := range []struct {
		name, address string
		change        func(*Config)
		host          string
		header        [2]string
		want          int
	}{
		{"loopback", local, nil, "127.0.0.1:8421", [2]string{}, 200},
		{"localhost", local, nil, "LOCALHOST:8421", [2]string{}, 200},
		{"localhost with the root's dot", local, nil, "localhost.:8421", [2]string{}, 200},
		{"loopback of IPv6", local, nil, "[::1]:8421", [2]string{}, 200},
		{"another port, as behind ssh -L", local, nil, "localhost:9000", [2]string{}, 200},
		{"DNS rebinding", local, nil, "evil.example:8421", [2]string{}, 421},
		{"DNS rebinding without a port", local, nil, "evil.example", [2]string{}, 421},
		{"a name that begins as loopback", local, nil, "127.0.0.1.evil.example:8421", [2]string{}, 421},
		{"a name that ends as localhost", local, nil, "notlocalhost:8421", [2]string{}, 421},
		{"no host", local, nil, "", [2]string{}, 421},
		{"an address of the network", local, nil, "192.0.2.7:8421", [2]string{}, 421},
		{"all addresses", local, nil, "0.0.0.0:8421", [2]string{}, 421},
		{"own origin", local, nil, "127.0.0.1:8421", [2]string{"Origin", "http://127.0.0.1:8421"}, 200},
		{"own origin behind TLS", local, nil, "localhost:8421", [2]string{"Origin", "https://localhost:8421"}, 200},
		{"foreign origin", local, nil, "127.0.0.1:8421", [2]string{"Origin", "https://evil.example"}, 403},
		{"origin of another port", local, nil, "127.0.0.1:8421", [2]string{"Origin", "http://127.0.0.1:9"}, 403},
		{"origin null", local, nil, "127.0.0.1:8421", [2]string{"Origin", "null"}, 403},
		{"empty origin", local, nil, "127.0.0.1:8421", [2]string{"Origin", ""}, 403},
		{"origin of a file", local, nil, "127.0.0.1:8421", [2]string{"Origin", "file://127.0.0.1:8421"}, 403},
		{"allowed origin", local, foreign, "127.0.0.1:8421", [2]string{"Origin", "https://app.foxglove.dev"}, 200},
		{"allowed origin, rebound", local, foreign, "evil.example", [2]string{"Origin", "https://app.foxglove.dev"},
			421},
		{"other scheme than allowed", local, foreign, "127.0.0.1:8421",
			[2]string{"Origin", "http://app.foxglove.dev"}, 403},

		{"off loopback, no token file", everywhere, nil, "127.0.0.1:8421", [2]string{}, 403},
		{"off loopback, no token", everywhere, token, "127.0.0.1:8421", [2]string{}, 401},
		{"off loopback, token", everywhere, token, "127.0.0.1:8421",
			[2]string{"Authorization", "Bearer " + secret}, 200},
		{"off loopback, wrong token", everywhere, token, "127.0.0.1:8421",
			[2]string{"Authorization", "Bearer " + secret + "."}, 401},
		{"off loopback, empty token", everywhere, token, "127.0.0.1:8421", [2]string{"Authorization", "Bearer "}, 401},
		{"off loopback, unknown name", everywhere, token, "watch.example",
			[2]string{"Authorization", "Bearer " + secret}, 421},
		{"off loopback, known name", everywhere, named, "WATCH.example:80",
			[2]string{"Authorization", "Bearer " + secret}, 200},
		{"token on loopback is asked for", local, token, "127.0.0.1:8421", [2]string{}, 401},
		{"a proxy's name without token", local, func(c *Config) { c.Hosts = []string{"watch.example"} },
			"watch.example", [2]string{}, 403},
		{"cookie that is the token", everywhere, token, "127.0.0.1:8421",
			[2]string{"Cookie", "entropipe_8421=" + secret}, 401},
	} {
		h := handler(t, c.address, c.change)
		for _, path := range []string{"/", "/assets/index.html", "/api/state", "/api/series", "/api/config", "/live",
			"/foxglove"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = c.host
			if c.header[0] != "" {
				r.Header.Set(c.header[0], c.header[1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			want := c.want
			if path == "/live" && want == 200 {
				want = http.StatusUpgradeRequired // the guard let it through
			}
			if w.Code != want {
				t.Errorf("%s, %s: %d, want %d", c.name, path, w.Code, want)
			}
			for name, value := range map[string]string{"X-Content-Type-Options": "nosniff",
				"Referrer-Policy": "no-referrer", "Content-Security-Policy": policy} {
				if got := w.Header().Get(name); got != value {
					t.Errorf("%s, %s: %s is %q, want %q", c.name, path, name, got, value)
				}
			}
			if (strings.HasPrefix(path, "/api/") || want >= 400 && want != 426) &&
				w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s, %s: may be stored", c.name, path)
			}
		}
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/version": 200, "/metrics": 200} {
			r := httptest.NewRequest("GET", path, nil) // probes and Prometheus use any name
			r.Host = c.host
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s, %s: %d, want %d", c.name, path, w.Code, want)
			}
		}
	}
}

// The page runs no script but its own.
func TestPolicy(t *testing.T) {
	for _, word := range []string{"unsafe-inline", "unsafe-eval", "*", "http:", "blob:"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy has %s", word)
		}
	}
	page, err := Assets.ReadFile("assets/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"<style", " style=", " onclick=", " onload=", "javascript:", "://"} {
		if i := bytes.Index(page, []byte(word)); i >= 0 {
			t.Errorf("index.html has %q, which the policy forbids: %.80q", word, page[i:])
		}
	}
}

// Only GET is answered.
func TestReadOnly(t *testing.T) {
	h := handler(t, "127.0.0.1:8421", nil)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		r := httptest.NewRequest(method, "/api/state", strings.NewReader("{}"))
		r.Host = "127.0.0.1:8421"
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// A token in the address becomes a cookie that scripts cannot read, and leaves the address.
func TestTokenBecomesACookie(t *testing.T) {
	h := handler(t, "0.0.0.0:8421", func(c *Config) { c.Token = secret })
	get := func(target string, header ...string) *http.Response {
		r := httptest.NewRequest("GET", target, nil)
		r.Host = "localhost:8421"
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	query := "token=a+token+that+nobody+guesses"
	r := get("/api/series?seconds=5&" + query)
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/api/series?seconds=5" {
		t.Fatalf("%d to %q", r.StatusCode, r.Header.Get("Location"))
	}
	cookies := r.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode ||
		cookies[0].Path != "/" || strings.Contains(cookies[0].Value, secret) {
		t.Fatalf("cookies %v", cookies)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	if r := get("/api/state", "Cookie", cookie); r.StatusCode != 200 {
		t.Errorf("with the cookie: %d", r.StatusCode)
	}
	if r := get("/?"+query, "Cookie", cookie); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/" {
		t.Errorf("with cookie and token: %d to %q, want the address without the token", r.StatusCode,
			r.Header.Get("Location"))
	}
	if r := get("/?token=wrong"); r.StatusCode != 401 || len(r.Cookies()) != 0 {
		t.Errorf("a wrong token: %d, cookies %v", r.StatusCode, r.Cookies())
	}
	if r := get("/foxglove?"+query, "Upgrade", "websocket"); r.StatusCode != 200 {
		t.Errorf("a program that upgrades: %d", r.StatusCode)
	}
	for _, target := range []string{"//evil.example?" + query, "/\\evil.example?" + query} {
		if r := get(target); strings.Contains(r.Header.Get("Location"), "//evil") {
			t.Errorf("%s leads to %q", target, r.Header.Get("Location"))
		}
	}
}

// No request writes the token into the log.
func TestTokenIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	cfg := Config{Listen: "127.0.0.1:0", Token: secret, Gatherer: prometheus.NewRegistry(),
		Ready: func() error { return nil }, Numbers: &live.Numbers{},
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	cfg.Rejects = nil
	cfg.Handlers = map[string]http.Handler{"/panic": http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { panic("a bug") })}
	s, err := Serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/?token=a+token+that+nobody+guesses", "/api/state?token=wrong+token+entirely",
		"/nothing?token=a+token+that+nobody+guesses"} {
		r, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	r, _ := http.NewRequest("GET", "http://"+s.Addr()+"/panic?x=1", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	if r, err := http.DefaultClient.Do(r); err == nil {
		r.Body.Close()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	for _, word := range []string{"nobody", "entirely"} {
		if strings.Contains(log.String(), word) {
			t.Errorf("the log has %q:\n%s", word, &log)
		}
	}
}
