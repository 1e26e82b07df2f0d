// Package foxglove serves the scenes of a process to Foxglove and other viewers that speak its
// WebSocket protocol: subprotocols foxglove.sdk.v1 and foxglove.websocket.v1, which have the
// same messages.
//
// # Messages
//
// A client connects with one of the subprotocols and gets serverInfo (no capabilities;
// sessionId names the process) and advertise. Texts are JSON objects with the field op. It
// subscribes to channels by their ids. Messages of channels are binary, little endian: u8 1,
// u32 id of the subscription, u64 time at which the scene was copied (ns since 1970), the
// message. What a client may not do, and what it says wrong, is answered with a status.
//
// # Channels
//
// Each stream has six channels, whose topics begin with /TOPIC/SEQUENCE: points
// (foxglove.PointCloud), hull, hull3d, maxima and mesh (foxglove.SceneUpdate), all in Protobuf,
// and frames (JSON), whose objects are rows of table frames. Topic /tf has the poses of the
// streams that the client watches (foxglove.FrameTransform). Coordinates are relative to a pose
// at the scene's origin: viewers compute in float32, and coordinates far from zero would shake.
// A stream whose frames have no pose stands in the frame of reference world, as all poses do.
//
// A client that falls behind gets the newest scene, not all. A stream is copied for as long as
// somebody subscribes to one of its channels.
package foxglove

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"entropipe/ops/live"
)

// Bounds of what a server spends on its clients.
const (
	maxClients  = 16
	maxStreams  = 250       // streams that are advertised
	maxRequest  = 256 << 10 // bytes of a message of a client
	maxStatuses = 16        // answers that wait for a client that does not read
	batch       = 100       // channels in one message
)

// protocols are the subprotocols, the preferred one first.
var protocols = []string{"foxglove.sdk.v1", "foxglove.websocket.v1"}

// Config configures a Server. Tap is required.
type Config struct {
	Tap     *live.Tap
	Version string
	Log     *slog.Logger // nil: none
}

// Server is a handler of WebSockets. Any goroutine may call its methods.
type Server struct {
	cfg      Config
	info     []byte // the message serverInfo
	channels registry
	payloads payloads
	ctx      context.Context // ends all clients
	end      context.CancelFunc
	ending   chan struct{}

	// patience is how long a client may take for a message, beside the time of its bytes at
	// 1 MiB/s; pause is the time between two pings, and grace that for goodbyes. Tests change
	// them.
	patience, pause, grace time.Duration

	mu      sync.Mutex
	clients int
	closed  bool
	tasks   sync.WaitGroup
}

// New returns a Server. Close ends it.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, ending: make(chan struct{}), patience: 10 * time.Second, pause: 15 * time.Second,
		grace: time.Second, info: serverInfo(cfg.Version, strconv.FormatInt(time.Now().UnixNano(), 10))}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Clients returns the number of clients.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients
}

// Close says goodbye to the clients and waits for their goroutines, about a second at most.
// Later clients are refused. It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return
	}
	close(s.ending)
	late := time.AfterFunc(s.grace, s.end)
	defer late.Stop()
	s.tasks.Wait()
	s.end()
}

// ServeHTTP serves one client until it goes, does not read, or the server is closed. A client
// that offers neither subprotocol gets status 400, as from Foxglove's own server. Whoever
// mounts the handler checks Host and Origin.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if websocketAsked(r) && !offered(r) {
		http.Error(w, "Missing expected sec-websocket-protocol header: "+strings.Join(protocols, " or "),
			http.StatusBadRequest)
		return
	}
	if !s.enter() {
		http.Error(w, "too many clients; at most "+strconv.Itoa(maxClients)+" may watch at once",
			http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: protocols})
	if err != nil {
		return // it has answered
	}
	conn.SetReadLimit(maxRequest)
	s.cfg.Log.Debug("a viewer connects", "protocol", conn.Subprotocol(), "remote", r.RemoteAddr)
	newClient(s, conn).serve()
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.clients == maxClients {
		return false
	}
	s.clients++
	s.tasks.Add(1)
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	s.clients--
	s.mu.Unlock()
	s.tasks.Done()
}

func websocketAsked(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// offered reports whether the client offers a subprotocol of ours.
func offered(r *http.Request) bool {
	for _, header := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(header, ",") {
			for _, p := range protocols {
				if strings.EqualFold(strings.TrimSpace(name), p) {
					return true
				}
			}
		}
	}
	return false
}
