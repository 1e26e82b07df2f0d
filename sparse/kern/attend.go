package kern

import (
	"slices"

	"entropipe/models/mat"
)

// Scratch is memory that calls of Attend reuse. The zero value is ready. A
// Scratch serves one caller at a time.
type Scratch struct {
	packs   []pack
	tasks   []task
	workers []*worker
	packed  []float32
}

// task is a run of query rows of one head that share a row of its layout.
type task struct {
	pack         int
	head, lo, hi int
}

// Sizes that decide how workers share the heads. A single worker packs and
// attends one head after the other, while the head is in its cache. Several
// workers pack a wave of heads together and then take its tiles; if there are
// many heads, each worker takes whole heads.
const (
	smallWork = 1 << 20 // multiplications that are not worth a second goroutine
	waveWork  = 1 << 24 // multiplications of a wave, for each worker
	waveSize  = 1 << 22 // numbers packed for a wave
	many      = 16      // heads for each worker
)

// Attend computes the jobs in at most workers goroutines and returns when all are
// done. It panics if a job is not sound. A job without queries writes nothing; a
// job without keys gives zeros. Cost: 2·Dim multiplications for each query, head
// and key that is read, where every key of a listed block counts as read. Memory:
// a copy of the keys and values of the heads that are being computed.
func (s *Scratch) Attend(jobs []Job, workers int) {
	for i := range jobs {
		jobs[i].check()
	}
	if mat.Best() == mat.Portable {
		s.attendPortable(jobs, workers)
		return
	}
	s.packs = s.packs[:0]
	work := 0
	for i := range jobs {
		j := &jobs[i]
		if j.Q.Rows == 0 {
			continue
		}
		for kv := range j.KVHeads {
			s.packs = append(s.packs, pack{job: j, kv: kv, panels: j.packedPanels(kv)})
			work += s.packs[len(s.packs)-1].work()
		}
	}
	if work < smallWork {
		workers = 1
	}
	s.grow(max(workers, 1))
	s.attend(workers)
	clear(s.packs) // keep no reference to the caller's jobs
}

func (s *Scratch) attend(workers int) {
	tiled := func(p pack) bool { return !p.few() && !p.job.abreast() }
	if workers <= 1 || len(s.packs) >= many*workers || !slices.ContainsFunc(s.packs, tiled) {
		mat.Share(len(s.packs), workers, func(i, who int) { s.workers[who].head(&s.packs[i]) })
		return
	}
	for at := 0; at < len(s.packs); {
		end, size, work := at, 0, 0
		for end < len(s.packs) && (end == at || size < waveSize && work < waveWork*workers) {
			size += s.packs[end].size()
			work += s.packs[end].work()
			end++
		}
		s.wave(s.packs[at:end], size, workers)
		at = end
	}
}

func (s *Scratch) grow(workers int) {
	for len(s.workers) < workers {
		s.workers = append(s.workers, new(worker))
	}
}

// work estimates the multiplications of a head.
func (p *pack) work() int {
	j := p.job
	keys := p.panels * panel
	if l := j.layout(p.kv * (j.Heads / j.KVHeads)); l != nil {
		keys = min(keys, len(l.Col)*l.Block/max(l.Rows, 1))
	}
	work := keys * j.Q.Rows * (j.Heads / j.KVHeads)
	if j.Paged == nil {
		work += p.panels * panel
	}
	return 2 * j.Dim * work
}

// head packs and attends one head by itself.
func (w *worker) head(p *pack) {
	if p.few() {
		w.few(p)
		return
	}
	if p.job.abreast() {
		p.open()
		w.abreast(p)
		return
	}
	p.fill(w.room(p.size()), &w.tmp)
	p.tiles(func(head, lo, hi int) { w.tile(p, head, lo, hi) })
}

// abreast attends the query heads that share keys in one tile, so that the keys
// are read once. The job has one query.
func (w *worker) abreast(p *pack) {
	per := p.job.Heads / p.job.KVHeads
	for h, end := p.kv*per, (p.kv+1)*per; h < end; {
		rows := min(tileRows, end-h)
		view := w.start(p, h, 0, rows)
		w.run(&view, rows)
		w.finish(&view, rows)
		h += rows
	}
}

// few attends a head whose queries form one tile: see pack.few.
func (w *worker) few(p *pack) {
	job := p.job
	per := job.Heads / job.KVHeads
	for h := p.kv * per; h < (p.kv+1)*per; h++ {
		view := w.start(p, h, 0, job.Q.Rows)
		if h == p.kv*per {
			if n := (len(w.list) + 1) * panel * job.Dim; cap(w.packed) < n {
				w.packed = make([]float32, n)
			}
			p.fillListed(w.list, w.packed[:cap(w.packed)], &w.tmp)
		}
		for n := len(w.ascending); n < len(w.list)+1; n++ {
			w.ascending = append(w.ascending, int32(n))
		}
		w.at = w.ascending[:len(w.list)]
		view.data, view.listed = job.V.Data[p.kv*job.Dim:], false
		view.panel, view.step = 4*panel*job.V.Stride, 4*job.V.Stride
		w.run(&view, job.Q.Rows)
		w.finish(&view, job.Q.Rows)
	}
}

// tiles calls f for every tile of the query heads that read p.
func (p *pack) tiles(f func(head, lo, hi int)) {
	job := p.job
	per := job.Heads / job.KVHeads
	for h := p.kv * per; h < (p.kv+1)*per; h++ {
		rows := tileRows
		if l := job.layout(h); l != nil {
			rows = min(rows, l.Block)
		}
		for lo := 0; lo < job.Q.Rows; {
			hi := min(job.Q.Rows, ((job.Offset+lo)/rows+1)*rows-job.Offset)
			f(h, lo, hi)
			lo = hi
		}
	}
}

// wave attends the heads of packs; size is the sum of the packs' sizes.
func (s *Scratch) wave(packs []pack, size, workers int) {
	if cap(s.packed) < size {
		s.packed = make([]float32, size)
	}
	s.tasks = s.tasks[:0]
	for i := range packs {
		packs[i].tiles(func(head, lo, hi int) { s.tasks = append(s.tasks, task{i, head, lo, hi}) })
	}
	starts := make([]int, len(packs)+1)
	for i := range packs {
		starts[i+1] = starts[i] + packs[i].size()
	}
	mat.Share(len(packs), workers, func(i, who int) {
		packs[i].fill(s.packed[:cap(s.packed)][starts[i]:starts[i+1]], &s.workers[who].tmp)
	})
	mat.Share(len(s.tasks), workers, func(i, who int) {
		t := s.tasks[i]
		s.workers[who].tile(&packs[t.pack], t.head, t.lo, t.hi)
	})
}
