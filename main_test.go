package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"
	kafka "github.com/segmentio/kafka-go"

	"entropipe/ingest"
	"entropipe/ingest/broker"
)

// The command line is tested from outside: scripts in testdata/script, and Go
// tests (service_test.go) for what needs signals and timing. In both, the test
// binary itself plays entropipe in a process of its own.

func TestMain(m *testing.M) {
	testscript.Main(waiting{m}, map[string]func(){"entropipe": main})
}

// waiting runs more tests at a time than there are processors: most of them
// wait, for brokers, groups and signals. Not with -short, which is for the race
// detector: its processes are never idle.
type waiting struct{ m *testing.M }

func (w waiting) Run() int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && !testing.Short() {
		if err := flag.Set("test.parallel", strconv.Itoa(4+2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	return w.m.Run()
}

// TestScripts runs testdata/script. Beside testscript's own commands a script
// has those below; $TMPDIR is within its folder.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("one process at a time: nothing for the race detector")
	}
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOGC", "400") // a start allocates 4 MB: most processes are no more than that
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"broker": cmdBroker,
			"exits":  cmdExits,
			"find":   cmdFind,
			"kitti":  cmdKITTI,
			"fill":   cmdFill,
			"send":   cmdSend,
			"rows":   cmdRows,
			"tree":   cmdTree,
			"values": cmdValues,
		},
	})
}

// cmdBroker starts a broker that ends with the script: broker. Its address is
// $ENTROPIPE_BROKERS, so the program finds it without a flag.
func cmdBroker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: broker")
	}
	b, err := broker.Start(broker.Config{Listen: "127.0.0.1:0", Dir: ts.MkAbs(".kafka"), Partitions: 2})
	ts.Check(err)
	ts.Defer(b.Close)
	ts.Setenv("ENTROPIPE_BROKERS", b.Addr())
}

// cmdFind sets a variable to the one file that a pattern matches: find NAME
// PATTERN.
func cmdFind(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: find NAME PATTERN")
	}
	files, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s matches %d files, want one", args[1], len(files))
	}
	ts.Setenv(args[0], files[0])
}

// cmdExits runs a program that must end with a status: exits STATUS PROGRAM ARG….
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARG...")
	}
	status := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := args[0]; want != strconv.Itoa(status) {
		ts.Fatalf("exit status %d, want %s", status, want)
	}
	if strings.Contains(ts.ReadFile("stderr"), "goroutine ") {
		ts.Fatalf("a panic")
	}
}

// cmdKITTI writes scans numbered from 0: kitti DIR SCANS POINTS.
func cmdKITTI(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: kitti DIR SCANS POINTS")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	for i := range number(ts, args[1]) {
		ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%010d.bin", i)),
			scan(int(number(ts, args[2])), int(i)), 0o666))
	}
}

// scan returns a KITTI scan of n points on a spiral, another one for every
// number: x, y, z and intensity as little-endian float32.
func scan(n, number int) []byte {
	data := make([]byte, 0, 16*n)
	for i := range n {
		radius, angle := float64(number+1)+float64(i), 2.4*float64(i)
		for _, v := range []float64{radius * math.Cos(angle), radius * math.Sin(angle), float64(i % 7), .5} {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
		}
	}
	return data
}

// cmdFill appends a text so many times: fill FILE TIMES TEXT.
func cmdFill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fill FILE TIMES TEXT")
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	ts.Check(err)
	_, err = f.WriteString(strings.Repeat(args[2], int(number(ts, args[1]))))
	ts.Check(errors.Join(err, f.Close()))
}

// cmdSend sends a file as it is, as any producer could: send TOPIC FILE|-
// [HEADER=VALUE…], where - is a value that is not there, a tombstone, and the
// header named key is the record's key instead. The topic is made when absent.
func cmdSend(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: send TOPIC FILE|- [HEADER=VALUE...]")
	}
	m := kafka.Message{Key: []byte("k"), Value: nil}
	if args[1] != "-" {
		m.Value = []byte(ts.ReadFile(args[1]))
	}
	for _, pair := range args[2:] {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			ts.Fatalf("send: %q is not HEADER=VALUE", pair)
		}
		if key == "key" {
			m.Key = []byte(value)
			continue
		}
		m.Headers = append(m.Headers, kafka.Header{Key: key, Value: []byte(value)})
	}
	ts.Check(sendRaw(ts.Getenv("ENTROPIPE_BROKERS"), args[0], m))
}

// sendRaw sends messages with a plain producer.
func sendRaw(brokers, topic string, messages ...kafka.Message) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := ingest.EnsureTopic(ctx, []string{brokers}, ingest.Security{}, topic,
		ingest.TopicSpec{Partitions: 2}); err != nil {
		return err
	}
	// What has no answer in time is sent again, and may be there twice: so there is
	// much time.
	w := &kafka.Writer{Addr: kafka.TCP(brokers), Topic: topic, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
		BatchBytes:   16 << 20, Transport: &kafka.Transport{}, ReadTimeout: patience, WriteTimeout: patience}
	err := w.WriteMessages(ctx, messages...)
	return errors.Join(err, w.Close())
}

// cmdRows counts the rows of a table's files, without the program's help:
// rows OUT TABLE COUNT.
func cmdRows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: rows OUT TABLE COUNT")
	}
	rows, err := countRows(filepath.Join(ts.MkAbs(args[0]), args[1]))
	ts.Check(err)
	if want := number(ts, args[2]); rows != want {
		ts.Fatalf("%s of %s has %d rows, want %d", args[1], args[0], rows, want)
	}
}

// cmdValues counts the values of a column: values OUT TABLE COLUMN VALUE=COUNT….
// A missing one is null.
func cmdValues(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: values OUT TABLE COLUMN VALUE=COUNT...")
	}
	counts, err := countValues(filepath.Join(ts.MkAbs(args[0]), args[1]), args[2])
	ts.Check(err)
	var got []string
	for value, n := range counts {
		got = append(got, fmt.Sprintf("%s=%d", value, n))
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(args[3:]))
	if diff := cmp.Diff(want, got); diff != "" {
		ts.Fatalf("%s of %s (-want +got):\n%s", args[2], args[1], diff)
	}
}

// countValues counts the values of a column in the Parquet files below dir.
func countValues(dir, column string) (map[string]int, error) {
	counts := map[string]int{}
	return counts, eachTable(dir, func(f *parquet.File) error {
		leaf, ok := f.Schema().Lookup(column)
		if !ok {
			return fmt.Errorf("no column %s", column)
		}
		rows := parquet.NewReader(f)
		defer rows.Close()
		for {
			row := make([]parquet.Row, 1)
			n, err := rows.ReadRows(row)
			for _, v := range row[:n] {
				for _, v := range v {
					if v.Column() == leaf.ColumnIndex {
						counts[strings.Trim(v.String(), "<>")]++
					}
				}
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

// countRows adds up the rows of the Parquet files below dir; none is 0.
func countRows(dir string) (rows int64, err error) {
	err = eachTable(dir, func(f *parquet.File) error {
		rows += f.NumRows()
		return nil
	})
	return rows, err
}

// eachTable opens the Parquet files below dir, if there is one.
func eachTable(dir string, each func(*parquet.File) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		p, err := parquet.OpenFile(f, info.Size())
		if err == nil {
			err = each(p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// cmdTree compares the files below a folder with patterns: every file must
// match one, every pattern a file, and nothing may be a link:
// tree DIR PATTERN….
func cmdTree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: tree DIR PATTERN...")
	}
	dir, used := ts.MkAbs(args[0]), map[string]bool{}
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		for _, pattern := range args[1:] {
			if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(name) {
				used[pattern] = true
				return nil
			}
		}
		return fmt.Errorf("unexpected file %s", name)
	}))
	for _, pattern := range args[1:] {
		if !used[pattern] {
			ts.Fatalf("no file matches %s", pattern)
		}
	}
}

func number(ts *testscript.TestScript, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	ts.Check(err)
	return n
}
