package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/ingest"
)

// Experiments with the whole program: a broker, topics of real scans, and runs
// until their end.

// session is a built program beside an embedded broker, in a scratch folder.
type session struct {
	dir     string
	program rig.Program
	broker  *rig.Broker
	outputs int
}

// built is the program that all experiments share, in a folder of its own.
var built struct {
	sync.Mutex
	dir     string
	program rig.Program
}

// builtProgram builds the program when it is first asked for.
func builtProgram(ctx context.Context) (rig.Program, error) {
	built.Lock()
	defer built.Unlock()
	if built.program.Path != "" {
		return built.program, nil
	}
	dir, err := os.MkdirTemp("", "entropipe-tables-program-")
	if err != nil {
		return rig.Program{}, err
	}
	p, err := rig.Build(ctx, dir)
	if err != nil {
		return p, errors.Join(err, os.RemoveAll(dir))
	}
	built.dir, built.program = dir, p
	return p, nil
}

// removeProgram removes what builtProgram has built.
func removeProgram() error {
	built.Lock()
	defer built.Unlock()
	dir := built.dir
	built.dir, built.program = "", rig.Program{}
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// scanFolder is the folder of real scans.
func scanFolder() (string, error) { return rig.TestData("kitti", "raw_2011_09_26_drive_0005") }

func newSession(ctx context.Context) (*session, error) {
	dir, err := os.MkdirTemp("", "entropipe-tables-")
	if err != nil {
		return nil, err
	}
	s := &session{dir: dir}
	if s.program, err = builtProgram(ctx); err == nil {
		s.broker, err = s.program.NewBroker(ctx, filepath.Join(dir, "broker"))
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *session) close() error {
	var err error
	if s.broker != nil {
		err = s.broker.Stop()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// produce sends so many scans to a topic of one partition, and returns how long
// that took, the start of the process included.
func (s *session) produce(ctx context.Context, topic, folder string, frames int,
	more ...string) (time.Duration, error) {
	n := strconv.Itoa(frames)
	exit, _, err := s.program.Run(ctx, append([]string{"produce", "kitti", folder, "--brokers", s.broker.Addr,
		"--topic", topic, "--partitions", "1",
		"--rate", "max", "--loop", n, "--limit", n}, more...)...)
	return exit.Wall, err
}

// run processes a topic to its end into a new folder, which it returns.
func (s *session) run(ctx context.Context, topic string, more ...string) (rig.Exit, string, error) {
	s.outputs++
	out := filepath.Join(s.dir, "out-"+strconv.Itoa(s.outputs))
	exit, _, err := s.program.Run(ctx, append([]string{"run", "--brokers", s.broker.Addr, "--topic", topic, "--out",
		out, "--until-end", "--entropy-every", "0"}, more...)...)
	return exit, out, err
}

// valueBytes adds up the values of a topic of one partition, and counts them.
func (s *session) valueBytes(ctx context.Context, topic string) (bytes, records int64, err error) {
	c, err := ingest.NewConsumer(ingest.Config{Brokers: []string{s.broker.Addr}, Topics: []string{topic},
		Group: "truth-" + topic + strconv.Itoa(os.Getpid()), UntilEnd: true})
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	starts, err := c.Starts(ctx, topic, "earliest")
	if err != nil {
		return 0, 0, err
	}
	var mu sync.Mutex
	err = c.Run(ctx, func(ctx context.Context, p *ingest.Partition) error {
		mu.Lock()
		defer mu.Unlock()
		from := starts[p.ID]
		for {
			f, err := p.Fetch(ctx, from, 32<<20)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			for i := range f.Messages {
				bytes += int64(len(f.Messages[i].Value))
			}
			records += int64(len(f.Messages))
			from = f.Next
			if f.Release != nil {
				f.Release()
			}
		}
	})
	return bytes, records, err
}

// tableBytes adds up the files of a table.
func tableBytes(out, table string) (n int64, err error) {
	err = filepath.WalkDir(filepath.Join(out, table), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".parquet") {
			return err
		}
		st, err := d.Info()
		if err == nil {
			n += st.Size()
		}
		return err
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: no row of table %s", out, table)
	}
	return n, err
}
