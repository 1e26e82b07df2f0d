package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// policy lets the page load and reach this server alone, and run no inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard protects what a stranger must not see. A web site that a browser of this machine has
// open could reach a server on loopback, by a name that it resolves to 127.0.0.1 (DNS
// rebinding) or by a WebSocket. So the name in Host must be known, and so must Origin. Off
// loopback a token is needed besides.
type guard struct {
	hosts   []string
	origins []string
	secret  []byte // SHA-256 of the token; nil: there is none
	cookie  string // its name; ports of a host share cookies
	value   []byte // its value
	needed  bool
}

func newGuard(cfg *Config, address string) *guard {
	host, port := hostOf(address), ""
	if _, p, err := net.SplitHostPort(address); err == nil {
		port = p
	}
	g := &guard{needed: !isLoopback(host) || cfg.Token != "", cookie: "entropipe_" + port}
	for _, h := range cfg.Hosts {
		g.hosts = append(g.hosts, canonical(h))
	}
	if named := hostOf(cfg.Listen); named != "" && !isUnspecified(named) {
		g.hosts = append(g.hosts, canonical(named))
	}
	for _, o := range cfg.Origins {
		g.origins = append(g.origins, strings.ToLower(strings.TrimSuffix(o, "/")))
	}
	if cfg.Token != "" {
		sum := sha256.Sum256([]byte(cfg.Token))
		g.secret = sum[:]
		mac := hmac.New(sha256.New, []byte(cfg.Token)) // so that the cookie is not the token
		mac.Write([]byte("entropipe cookie"))
		g.value = []byte(hex.EncodeToString(mac.Sum(nil)))
	}
	return g
}

// protect returns next behind the guard, with the headers of everything that the page loads.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		host := canonical(hostOf(r.Host))
		if !isLoopback(host) && !slices.Contains(g.hosts, host) {
			h.Set("Cache-Control", "no-store")
			http.Error(w, "this server has another name; --listen-host allows further names",
				http.StatusMisdirectedRequest)
			return
		}
		if !g.knows(r) {
			h.Set("Cache-Control", "no-store")
			http.Error(w, "a page of another origin asks; --listen-origin allows further origins", http.StatusForbidden)
			return
		}
		if g.admits(w, r, isLoopback(host)) {
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether the request comes from no page, from a page of this server or of a
// configured origin.
func (g *guard) knows(r *http.Request) bool {
	all := r.Header.Values("Origin")
	if len(all) == 0 {
		return true
	}
	if len(all) > 1 {
		return false
	}
	origin := strings.ToLower(all[0])
	if slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host == strings.ToLower(r.Host)
}

// admits reports whether the request needs no token or has it; if not, it answers.
func (g *guard) admits(w http.ResponseWriter, r *http.Request, loopback bool) bool {
	if !g.needed && loopback {
		return true
	}
	if g.secret == nil {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "off loopback this needs --listen-token-file", http.StatusForbidden)
		return false
	}
	if c, err := r.Cookie(g.cookie); err == nil && subtle.ConstantTimeCompare([]byte(c.Value), g.value) == 1 {
		if r.URL.Query().Has("token") && !upgrades(r) { // the address is shown and kept
			g.clean(w, r)
			return false
		}
		return true
	}
	if given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found && g.opens(given) {
		return true
	}
	if q := r.URL.Query(); q.Has("token") && g.opens(q.Get("token")) {
		if upgrades(r) { // programs that speak WebSocket follow no redirect
			return true
		}
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: string(g.value), Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
		g.clean(w, r)
		return false
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "open this address with ?token= and the token of --listen-token-file", http.StatusUnauthorized)
	return false
}

// clean sends the client to the same address without the token.
func (g *guard) clean(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	q.Del("token")
	// Only the path and the query: "//host" at the begin of a path would name a host.
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: q.Encode()}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

// opens reports whether the token is the right one, in a time that does not depend on it.
func (g *guard) opens(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.secret) == 1
}

func upgrades(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// hostOf returns the host of HOST, HOST:PORT, [HOST] or [HOST]:PORT.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}

// canonical returns one form of a host's name: small letters, without the root's dot.
func canonical(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

func isLoopback(host string) bool {
	if host = canonical(host); host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}
