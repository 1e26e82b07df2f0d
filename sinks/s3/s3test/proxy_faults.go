package s3test

import (
	"encoding/xml"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Fault is what a Proxy does to a request.
type Fault string

// Faults. Executed ones reach the server, and the client does not learn it.
const (
	SlowDown      Fault = "503 SlowDown"
	Internal      Fault = "500 InternalError"
	InternalAfter Fault = "500 InternalError, executed"
	Conflict      Fault = "409 ConditionalRequestConflict"
	CutBefore     Fault = "cut before it was forwarded"
	CutAfter      Fault = "cut before the answer, executed"
	CutBody       Fault = "cut in the body of the answer"
	Doubled       Fault = "forwarded twice, first answer"
	DoubledSecond Fault = "forwarded twice, second answer"
	DoubledAtOnce Fault = "forwarded twice at once"
	Late          Fault = "forwarded seconds after the client gave it up"
	Slow          Fault = "slow answer"
	Error200      Fault = "200 with an error in its body"
	Error200After Fault = "200 with an error in its body, executed"
)

// Fits tells whether a fault can happen to requests of a kind.
func (f Fault) Fits(k Kind) bool {
	switch f {
	case Conflict:
		return k == Create
	case CutBody, Slow:
		return k == Get || k == List
	case Late, Doubled, DoubledSecond, DoubledAtOnce:
		// Two ends of one upload are told apart by no protocol: the second finds no upload.
		return k.Changes() && k != Begin
	case Error200, Error200After:
		return k == Copy || k == Complete || k == Delete
	}
	return true
}

// Executes tells whether the server executes the request, now or later.
func (f Fault) Executes() bool {
	return !slices.Contains([]Fault{SlowDown, Internal, Conflict, CutBefore, Error200}, f)
}

// spoil does to a request what was decided. The zero fault forwards it.
func (p *Proxy) spoil(w http.ResponseWriter, s *sending, f Fault) {
	switch f {
	case SlowDown:
		refuse(w, s, http.StatusServiceUnavailable, "SlowDown")
		return
	case Internal:
		refuse(w, s, http.StatusInternalServerError, "InternalError")
		return
	case Conflict:
		refuse(w, s, http.StatusConflict, "ConditionalRequestConflict")
		return
	case CutBefore:
		panic(http.ErrAbortHandler)
	case Late:
		p.later(s)
		panic(http.ErrAbortHandler)
	case Error200:
		failInBody(w, s)
		return
	}
	a, err := p.execute(s, f)
	if err != nil || f == CutAfter {
		panic(http.ErrAbortHandler)
	}
	switch f {
	case InternalAfter:
		refuse(w, s, http.StatusInternalServerError, "InternalError")
	case Error200After:
		failInBody(w, s)
	case CutBody:
		a.cut(w)
	case Slow:
		a.drip(w)
	default:
		a.write(w)
	}
}

// execute forwards a request, and where it is to be doubled, once more.
func (p *Proxy) execute(s *sending, f Fault) (a *answer, err error) {
	switch f {
	case Doubled:
		a, err = p.forward(s)
		p.forward(s)
	case DoubledSecond:
		p.forward(s)
		a, err = p.forward(s)
	case DoubledAtOnce:
		var other sync.WaitGroup
		other.Go(func() { p.forward(s) })
		a, err = p.forward(s)
		other.Wait()
	default:
		a, err = p.forward(s)
	}
	return a, err
}

// later forwards a request after a while, or when the proxy settles.
func (p *Proxy) later(s *sending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late.Go(func() {
		select {
		case <-p.ended:
		case <-time.After(latest/10 + rand.N(latest)):
		}
		p.forward(s)
	})
}

// latest is how long after its client has given it up a request is forwarded.
const latest = 5 * time.Second

// refuse answers in place of the server.
func refuse(w http.ResponseWriter, s *sending, status int, code string) {
	(&Refusal{Status: status, Code: code}).write(w, s.request)
}

// failInBody answers that a request has failed as servers do that have sent 200 before they
// knew it. A deletion of many objects fails object by object.
func failInBody(w http.ResponseWriter, s *sending) {
	text := "<Error><Code>InternalError</Code><Message>the test says so</Message></Error>"
	if s.Kind == Delete && s.request.Method == http.MethodPost {
		text = "<DeleteResult><Error><Key>" + s.Key + "</Key><Code>InternalError</Code>" +
			"<Message>the test says so</Message></Error></DeleteResult>"
	}
	w.Header().Set("Content-Type", "application/xml")
	w.Write([]byte(xml.Header + text))
}

// cut gives a half of the answer to the client.
func (a *answer) cut(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	w.Write(a.body[:len(a.body)/2])
	http.NewResponseController(w).Flush() // a client that has gone away needs nothing
	panic(http.ErrAbortHandler)
}

// drip gives the answer to the client slowly.
func (a *answer) drip(w http.ResponseWriter) {
	const drops = 8
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	for drop := range slices.Chunk(a.body, len(a.body)/drops+1) {
		w.Write(drop)
		http.NewResponseController(w).Flush()
		time.Sleep(100 * time.Millisecond)
	}
}

// Weather is a plan that spoils some of the requests, in the order of their arrival by the
// numbers of a seed.
type Weather struct {
	mu       sync.Mutex
	rng      *rand.Rand
	perMille int
	storm    int // so many of the next requests are refused
}

// NewWeather returns a plan that begins a fault at so many of a thousand requests.
func NewWeather(seed uint64, perMille int) *Weather {
	return &Weather{rng: rand.New(rand.NewPCG(seed, 7)), perMille: perMille}
}

// Faults are all of them, and those among which a Weather chooses, where SlowDown begins a storm.
var Faults = []Fault{SlowDown, Internal, InternalAfter, Conflict, CutBefore, CutAfter, CutBody, Doubled,
	DoubledSecond, DoubledAtOnce, Late, Slow, Error200, Error200After}

// Plan implements Plan.
func (c *Weather) Plan(s Seen) Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.storm > 0 {
		c.storm--
		return SlowDown
	}
	if c.rng.IntN(1000) >= c.perMille {
		return ""
	}
	f := Faults[c.rng.IntN(len(Faults))]
	for !f.Fits(s.Kind) {
		f = Faults[c.rng.IntN(len(Faults))]
	}
	if f == SlowDown {
		c.storm = 4 + c.rng.IntN(40)
	}
	return f
}
