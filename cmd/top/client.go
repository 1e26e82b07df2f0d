package top

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/config"
	"entropipe/cmd/mistake"
	"entropipe/ops/live"
	"entropipe/ops/web"
)

// open returns the source that What names.
func (c *Command) open(ctx context.Context) (source, error) {
	info, err := os.Stat(c.What)
	named := strings.HasPrefix(c.What, "http://") || strings.HasPrefix(c.What, "https://")
	switch {
	case command.IsBucket(c.What), !named && err == nil && info.IsDir():
		if c.TokenFile != "" {
			return nil, mistake.Value("token-file", ": %s is a folder, which needs no token", config.ShownPath(c.What))
		}
		store, err := command.OpenOutput(ctx, c.What, &c.Bucket)
		if err != nil {
			return nil, fmt.Errorf("top: %w", err)
		}
		return &output{folder: config.ShownPath(c.What), store: store}, nil
	case !named && err == nil:
		return nil, fmt.Errorf("top: %s is a file; want an address or the folder of an output",
			config.ShownPath(c.What))
	}
	base, token, err := address(c.What)
	if err != nil {
		return nil, err
	}
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		if token = strings.TrimSpace(string(text)); token == "" || strings.ContainsFunc(token, isControl) {
			return nil, mistake.Value("token-file", " %s: want one line with a token", config.ShownPath(c.TokenFile))
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = firstPatience
	return &client{base: base, token: token, http: &http.Client{Transport: transport,
		// A redirect could carry the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// address returns the root of HOST:PORT or of a URL, and the token in its query, as demo prints it.
func address(what string) (base, token string, err error) {
	given := what
	if !strings.Contains(what, "://") {
		given = "http://" + what
	}
	u, err := url.Parse(given)
	switch {
	case err != nil || u.User != nil || u.Hostname() == "" && u.Port() == "":
	case u.Scheme != "http" && u.Scheme != "https":
	case given != what && u.Port() == "", given != what && u.Path != "":
	case u.Path != "" && u.Path != "/" || u.Fragment != "":
		return "", "", wrong("%s: want the address without a path", safe(what))
	default:
		if port := u.Port(); port != "" {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return "", "", wrong("%s: %s is no port", safe(what), safe(port))
			}
		}
		host := u.Host
		if u.Hostname() == "" {
			host = net.JoinHostPort("127.0.0.1", u.Port())
		}
		return u.Scheme + "://" + host, u.Query().Get("token"), nil
	}
	return "", "", wrong("%s is no folder here, and no address: want HOST:PORT or http://HOST:PORT", safe(what))
}

func wrong(format string, args ...any) error { return mistake.NewUsage(fmt.Errorf(format, args...)) }

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// client reads from a process that listens.
type client struct {
	base, token string
	http        *http.Client
}

func (c *client) name() string         { return c.base }
func (c *client) usual() time.Duration { return time.Second }
func (c *client) close()               { c.http.CloseIdleConnections() }

// refusal holds what /api/rejects says of one reason, as far as it is shown.
type refusal struct {
	Stage  string `json:"stage"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
	Sample struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
		Message   string `json:"message"`
	} `json:"sample"`
}

// read asks for the state, and for what else the process serves.
func (c *client) read(ctx context.Context) (*reading, error) {
	ctx, cancel := context.WithTimeout(ctx, firstPatience)
	defer cancel()
	var state live.State
	raw, err := c.get(ctx, "/api/state", &state)
	if err != nil {
		return nil, c.explain(err)
	}
	r := &reading{at: time.Now(), state: &state}
	document := struct {
		Address string          `json:"address"`
		State   json.RawMessage `json:"state"`
		Rejects json.RawMessage `json:"rejects,omitempty"`
		Files   json.RawMessage `json:"files,omitempty"`
	}{Address: c.base, State: raw}
	var rejects struct {
		Reasons []refusal `json:"reasons"`
	}
	if document.Rejects, err = c.get(ctx, "/api/rejects", &rejects); err == nil {
		r.rejects = rejects.Reasons
	}
	var files web.Files
	if document.Files, err = c.get(ctx, "/api/files", &files); err == nil {
		r.files = &files
	}
	var series live.Series
	if _, err = c.get(ctx, "/api/series?seconds="+strconv.Itoa(sparkSeconds), &series); err == nil {
		r.series = &series
	}
	r.document = document
	return r, nil
}

// statusError is an answer with another status than 200.
type statusError struct {
	status int
	text   string // the first line of the answer
}

func (e *statusError) Error() string {
	return cmp.Or(e.text, http.StatusText(e.status)) + " (HTTP status " + strconv.Itoa(e.status) + ")"
}

// errNotJSON says that the answer is no state.
var errNotJSON = errors.New("it serves no numbers of entropipe; is the address right, and the process of this release?")

// explain returns err as a person needs it.
func (c *client) explain(err error) error {
	var status *statusError
	var at *url.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &status) && status.status == http.StatusUnauthorized && c.token == "":
		return fmt.Errorf("%s wants a token: give --token-file", c.base)
	case errors.As(err, &status) && status.status == http.StatusUnauthorized:
		return fmt.Errorf("%s refuses the token", c.base)
	case errors.As(err, &status) && status.status == http.StatusNotFound, errors.Is(err, errNotJSON):
		return fmt.Errorf("%s answers, but %w", c.base, errNotJSON)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not answer within %v", c.base, firstPatience)
	case errors.As(err, &dial) && dial.Op == "dial":
		err = dial.Err // the rest repeats the address
	case errors.As(err, &at):
		err = at.Err
	}
	return fmt.Errorf("%s cannot be read: %w", c.base, err)
}

// mostAnswer bounds an answer, bytes.
const mostAnswer = 16 << 20

// get reads a JSON document into v and returns its bytes.
func (c *client) get(ctx context.Context, path string, v any) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > mostAnswer:
		return nil, fmt.Errorf("%s has more than %d bytes", path, mostAnswer)
	case res.StatusCode != http.StatusOK:
		line, _, _ := strings.Cut(strings.TrimSpace(string(text[:min(len(text), 200)])), "\n")
		return nil, &statusError{res.StatusCode, safe(line)}
	case json.Unmarshal(text, v) != nil, !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")):
		return nil, errNotJSON
	}
	return text, nil
}
