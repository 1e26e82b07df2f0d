//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// Sizes of the kernel's blocks, equal to those in attend.cu.
const (
	warps   = 8
	threads = 32 * warps
	widest  = 256
)

// kernelJob is Job of attend.cu: addresses on the GPU.
type kernelJob struct {
	q, k, v, out                         uint64
	layout, block, rowStart              uint64
	rowPtr, col, kind, at, bits          uint64
	order, orderStart                    uint64
	queries, keys, heads, kvHeads, dim   int32
	qStride, kStride, vStride, outStride int32
	causal, offset                       int32
	scale                                float32
}

// jobs holds a job in the form that is copied to the GPU: matrices without gaps, and
// all layouts one after the other.
type jobs struct {
	q, k, v, out      []float32
	layout            []int32
	block, rowStart   []int32
	rowPtr, col, at   []int32
	kind              []uint8
	bits              []uint64
	order, orderStart []int32
}

// run computes one job.
func (d *Device) run(j *kern.Job) error {
	if j.Dim > widest {
		return fmt.Errorf("cuda: heads of %d numbers, at most %d", j.Dim, widest)
	}
	if j.Paged != nil || j.LogSums != nil {
		return errors.New("cuda: keys in pages and sums of weights are the processor's alone")
	}
	h := &d.host
	h.fill(j)
	k := kernelJob{
		queries: int32(j.Q.Rows), keys: int32(j.K.Rows), heads: int32(j.Heads),
		kvHeads: int32(j.KVHeads), dim: int32(j.Dim),
		qStride: int32(j.Q.Cols), kStride: int32(j.K.Cols), vStride: int32(j.V.Cols), outStride: int32(j.Out.Cols),
		offset: int32(j.Offset), scale: j.Scale,
	}
	if j.Causal {
		k.causal = 1
	}
	slots := []struct {
		to   *uint64
		from unsafe.Pointer
		size int
	}{
		{&k.q, pointer(h.q), 4 * len(h.q)}, {&k.k, pointer(h.k), 4 * len(h.k)}, {&k.v, pointer(h.v), 4 * len(h.v)},
		{&k.layout, pointer(h.layout), 4 * len(h.layout)}, {&k.block, pointer(h.block), 4 * len(h.block)},
		{&k.rowStart, pointer(h.rowStart), 4 * len(h.rowStart)},
		{&k.rowPtr, pointer(h.rowPtr), 4 * len(h.rowPtr)}, {&k.col, pointer(h.col), 4 * len(h.col)},
		{&k.kind, pointer(h.kind), len(h.kind)},
		{&k.at, pointer(h.at), 4 * len(h.at)}, {&k.bits, pointer(h.bits), 8 * len(h.bits)},
		{&k.order, pointer(h.order), 4 * len(h.order)}, {&k.orderStart, pointer(h.orderStart), 4 * len(h.orderStart)},
	}
	for i, s := range slots {
		if err := d.send(i, s.to, s.from, s.size); err != nil {
			return err
		}
	}
	var err error
	if k.out, err = d.reserve(len(slots), 4*len(h.out)); err != nil {
		return err
	}
	if err := d.start(&k); err != nil {
		return err
	}
	if err := d.check("cuMemcpyDtoH", d.driver.fromDevice(pointer(h.out), k.out, uintptr(4*len(h.out)))); err != nil {
		return err
	}
	for i := range j.Out.Rows {
		copy(j.Out.Row(i), h.out[i*j.Out.Cols:])
	}
	return nil
}

// start runs the kernel and waits for it.
func (d *Device) start(k *kernelJob) error {
	args := []unsafe.Pointer{unsafe.Pointer(k)}
	tiles := min((uint32(k.queries)+warps-1)/warps, 1<<16)
	if err := d.check("cuLaunchKernel", d.driver.launch(d.attend, tiles, uint32(k.heads), 1, threads, 1, 1, 0, 0,
		&args[0], 0)); err != nil {
		return err
	}
	return d.check("cuCtxSynchronize", d.driver.synchronise())
}

// send copies to the memory of a slot.
func (d *Device) send(slot int, to *uint64, from unsafe.Pointer, size int) (err error) {
	if *to, err = d.reserve(slot, size); err != nil || size == 0 {
		return err
	}
	return d.check("cuMemcpyHtoD", d.driver.toDevice(*to, from, uintptr(size)))
}

// reserve returns the memory of a slot, enlarged to at least size bytes.
func (d *Device) reserve(slot, size int) (uint64, error) {
	for len(d.memory) <= slot {
		d.memory = append(d.memory, block{})
	}
	b := &d.memory[slot]
	if b.size >= size {
		return b.at, nil
	}
	if b.size > 0 {
		d.driver.free(b.at)
		*b = block{}
	}
	size += size / 4
	if err := d.check("cuMemAlloc", d.driver.alloc(&b.at, uintptr(size))); err != nil {
		return 0, err
	}
	b.size = size
	return b.at, nil
}

func pointer[T any](v []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(v)) }

// fill copies a job. A layout that several heads share is copied once.
func (h *jobs) fill(j *kern.Job) {
	h.q, h.k, h.v = packed(h.q[:0], j.Q), packed(h.k[:0], j.K), packed(h.v[:0], j.V)
	h.out = append(h.out[:0], make([]float32, j.Out.Rows*j.Out.Cols)...)
	h.layout, h.block, h.rowStart, h.rowPtr, h.col, h.kind = h.layout[:0], h.block[:0], h.rowStart[:0], h.rowPtr[:0],
		h.col[:0], h.kind[:0]
	h.at, h.bits, h.order, h.orderStart = h.at[:0], h.bits[:0], h.order[:0], h.orderStart[:0]
	for kv := range j.KVHeads {
		h.layout = append(h.layout, -1)
		if len(j.Layouts) == 0 || j.Layouts[kv] == nil {
			continue
		}
		for other := range kv {
			if j.Layouts[other] == j.Layouts[kv] {
				h.layout[kv] = h.layout[other]
			}
		}
		if h.layout[kv] < 0 {
			h.layout[kv] = int32(len(h.block))
			h.add(j, kv)
		}
	}
}

// add appends the layout of a head.
func (h *jobs) add(j *kern.Job, kv int) {
	l := j.Layouts[kv]
	h.block = append(h.block, int32(l.Block))
	h.rowStart = append(h.rowStart, int32(len(h.rowPtr)))
	for _, p := range l.RowPtr {
		h.rowPtr = append(h.rowPtr, int32(len(h.col))+p)
	}
	words := int32(len(h.bits))
	for _, kind := range l.Kind {
		h.at = append(h.at, words)
		if kind == support.Masked {
			words += int32(l.Words())
		}
	}
	h.col, h.kind, h.bits = append(h.col, l.Col...), append(h.kind, l.Kind...), append(h.bits, l.Bits...)
	if l.Order == nil {
		h.orderStart = append(h.orderStart, -1)
		return
	}
	h.orderStart = append(h.orderStart, int32(len(h.order)))
	h.order = append(h.order, l.Order...)
}

// packed appends a matrix without the gaps between its rows.
func packed(dst []float32, m mat.Matrix) []float32 {
	for i := range m.Rows {
		dst = append(dst, m.Row(i)...)
	}
	return dst
}
