//go:build chaos

package chaos

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"entropipe/benchmarks/rig"
)

// worker is one place in the crew: a process, and after its end the next one.
// Its log goes on in one file.
type worker struct {
	run     *run
	name    string
	process *rig.Process
	logged  int64       // by those before it in its place
	thaw    *time.Timer // ends the freeze under way
}

func (w *worker) log() string { return filepath.Join(w.run.dir, w.name+".log") }

func (w *worker) start() {
	if st, err := os.Stat(w.log()); err == nil {
		w.logged = st.Size()
	}
	p, err := rig.Start(rig.Spec{Path: w.run.program.Path, Args: w.run.words, Log: w.log()})
	if err != nil {
		w.run.t.Fatal(err)
	}
	w.process = p
}

// logs tells whether the process has logged text.
func (w *worker) logs(text string) bool {
	b, err := os.ReadFile(w.log())
	if err != nil {
		w.run.t.Fatal(err)
	}
	return bytes.Contains(b[min(w.logged, int64(len(b))):], []byte(text))
}

// until waits until the worker has logged text, or has ended.
func (w *worker) until(ctx context.Context, text string) {
	for {
		if w.logs(text) {
			return
		}
		select {
		case <-w.process.Done():
			return
		default:
			w.run.wait(ctx, 50*time.Millisecond)
		}
	}
}

// check finds a worker that ended though nobody asked: whatever happens to its
// brokers and its fellows, it is to go on. One that begins while its bucket or its brokers cannot
// be reached gives up within seconds, and is started again, as a service manager does.
func (w *worker) check() {
	select {
	case <-w.process.Done():
		last := w.process.Tail(1)
		away := strings.Contains(last, " s3:") || strings.Contains(last, "its offsets cannot be read") ||
			strings.Contains(last, "no Kafka broker answers")
		if w.run.bucket != nil && away && !w.logs("msg=assigned") {
			w.run.refused++
			w.start()
			return
		}
		w.run.t.Errorf("%s ended by itself; the last it logged:\n%s", w.name, w.process.Tail(8))
		w.start()
	default:
	}
}

// freeze stops the process for d. It may be killed meanwhile.
func (w *worker) freeze(d time.Duration) {
	p := w.process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		w.run.t.Fatal(err)
	}
	w.thaw = time.AfterFunc(d, func() { p.Signal(syscall.SIGCONT) }) // nothing to do about an error
}

// terminate asks the worker to end, which must succeed once it listens to signals,
// as it does when it logs.
func (w *worker) terminate(ctx context.Context) {
	if w.thaw != nil {
		w.thaw.Stop()
	}
	p := w.process
	if err := p.Signal(syscall.SIGCONT); err != nil {
		w.run.t.Fatal(err)
	}
	w.until(ctx, "level=")
	_, err := p.Stop(2 * time.Minute)
	if err != nil && w.run.bucket != nil && strings.Contains(p.Tail(1), " s3:") {
		w.run.unwritten++ // it cannot commit what it has read, so it does not say that it has
		return
	}
	if err != nil {
		w.run.t.Errorf("%s was asked to end: %v", w.name, err)
	}
}
