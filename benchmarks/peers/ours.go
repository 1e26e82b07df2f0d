package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/algos/vector"
)

// ours is the name of our program among the peers. Its variants: none is one
// thread, float64 and the widest vector unit.
const (
	ours         = "entropipe"
	asFloat32    = "float32"
	withPortable = "portable"
	sortedRows   = "sorted"   // triangles in canonical order, which no peer gives
	manyThreads  = "-threads" // after their number
)

// oursCmd is the program of our operators: it speaks the protocol like any
// other peer, so that all are measured alike.
type oursCmd struct {
	Threads []int `default:"1,2" help:"Numbers of threads."`
}

// Run answers requests until there are no more.
func (c *oursCmd) Run() error {
	o := operators{ops: map[string]*operation{}}
	var names []string
	for _, op := range []string{"hull2d", "maxima2d", "maxima3d", "hull3d", "delaunay2d"} {
		for _, v := range c.variants() {
			name := strings.TrimSuffix(op+":"+v.name, ":")
			names = append(names, name)
			o.ops[name] = &operation{op: op, variant: v}
		}
	}
	names = append(names, "delaunay2d:"+sortedRows)
	o.ops["delaunay2d:"+sortedRows] = &operation{op: "delaunay2d",
		variant: variant{threads: 1, sorted: true, level: vector.Best()}}
	answer := json.NewEncoder(os.Stdout).Encode
	version := fmt.Sprintf("%s, %s", vector.Best(), runtime.Version())
	if err := answer(hello{Peer: ours, Version: version, Ops: names}); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		r, err := o.obey(lines.Text())
		if err != nil {
			r.Error = err.Error()
		}
		if err := answer(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

// variant is a way to use an operator.
type variant struct {
	name    string
	threads int
	single  bool // float32
	sorted  bool // rows of delaunay2d
	level   vector.Level
}

func (c *oursCmd) variants() []variant {
	best := vector.Best()
	all := []variant{{name: asFloat32, threads: 1, single: true, level: best}}
	for _, n := range c.Threads {
		v := variant{threads: n, level: best}
		if n != 1 {
			v.name = threadsName(n)
		}
		all = append(all, v)
	}
	if best > vector.Portable {
		all = append(all, variant{name: withPortable, threads: 1, level: vector.Portable})
	}
	return all
}

func threadsName(n int) string { return strconv.Itoa(n) + manyThreads }

// operation is an operator with its scratch memory and its last result.
type operation struct {
	op string
	variant
	run   func() int // runs on the loaded cloud; nil: not prepared yet
	found []int32
}

// operators answer requests.
type operators struct {
	double geom.Cloud[float64]
	single *geom.Cloud[float32] // nil: some coordinate is none
	ops    map[string]*operation
}

func (o *operators) obey(line string) (r reply, err error) {
	what, rest, _ := strings.Cut(line, " ")
	first, last, _ := strings.Cut(rest, " ")
	if what == "load" {
		return o.load(first, last)
	}
	op := o.ops[first]
	if op == nil {
		return r, fmt.Errorf("no such request: %s", line)
	}
	if what == "save" {
		r.Form = "vertices"
		if op.op == "delaunay2d" {
			r.Form = "triangles"
		}
		b := make([]byte, 0, 4*len(op.found))
		for _, i := range op.found {
			b = binary.LittleEndian.AppendUint32(b, uint32(i))
		}
		return r, os.WriteFile(last, b, 0o666)
	}
	times, err := strconv.Atoi(last)
	if err != nil {
		return r, err
	}
	if op.run == nil {
		if err := o.prepare(op); err != nil {
			return r, err
		}
	}
	defer vector.Limit(op.level)()
	r.Ns = make([]int64, times)
	for i := range r.Ns {
		start := time.Now()
		r.Count = op.run()
		r.Ns[i] = time.Since(start).Nanoseconds()
	}
	return r, nil
}

// load reads a cloud; scratch memory of the last one is dropped.
func (o *operators) load(dimensions, path string) (r reply, err error) {
	dims, err := strconv.Atoi(dimensions)
	if err != nil {
		return r, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	r.Points = len(b) / 8 / dims
	axes := make([][]float64, 3)
	for k := range dims {
		axes[k] = make([]float64, r.Points)
		for i := range r.Points {
			axes[k][i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*(i*dims+k):]))
		}
	}
	o.double, o.single = geom.Cloud[float64]{X: axes[0], Y: axes[1], Z: axes[2]}, nil
	if single(o.double) {
		o.single = &geom.Cloud[float32]{X: narrow(o.double.X), Y: narrow(o.double.Y), Z: narrow(o.double.Z)}
	}
	for _, op := range o.ops {
		op.run, op.found = nil, nil
	}
	runtime.GC()
	return r, nil
}

// single tells whether every coordinate is a float32, so that ours can be given
// what sensors send.
func single(c geom.Cloud[float64]) bool {
	for _, axis := range [][]float64{c.X, c.Y, c.Z} {
		if slices.ContainsFunc(axis, func(v float64) bool { return float64(float32(v)) != v }) {
			return false
		}
	}
	return true
}

func narrow(v []float64) []float32 {
	if v == nil {
		return nil
	}
	w := make([]float32, len(v))
	for i := range v {
		w[i] = float32(v[i])
	}
	return w
}

// prepare makes the scratch memory of op, and drops that of other operations.
func (o *operators) prepare(op *operation) error {
	for _, other := range o.ops {
		if other.op != op.op {
			other.run, other.found = nil, nil
		}
	}
	if !op.single {
		op.run = prepared(op, o.double)
		return nil
	}
	if o.single == nil {
		return errors.New("not a cloud of float32")
	}
	op.run = prepared(op, *o.single)
	return nil
}

// prepared returns what runs op once over c. A flat operator gets no z.
func prepared[T geom.Float](op *operation, c geom.Cloud[T]) func() int {
	flat := geom.Cloud[T]{X: c.X, Y: c.Y}
	m := maxima.Maxima[T]{Workers: op.threads}
	switch op.op {
	case "hull2d":
		h := hull.Hull2D[T]{Workers: op.threads}
		return func() int { op.found = h.Append(op.found[:0], flat); return len(op.found) }
	case "maxima2d":
		return func() int { op.found = m.Append2D(op.found[:0], flat); return len(op.found) }
	case "maxima3d":
		return func() int { op.found = m.Append3D(op.found[:0], c); return len(op.found) }
	case "hull3d":
		h := hull.Hull3D[T]{Workers: op.threads}
		var faces []int32
		return func() int {
			op.found, faces, _ = h.Append(op.found[:0], faces[:0], c)
			return len(op.found)
		}
	}
	t := delaunay.Triangulator[T]{Workers: op.threads, Unsorted: !op.sorted}
	return func() int {
		op.found = t.Triangulate(flat).Triangles // until the next call
		return len(op.found) / 3
	}
}
