package top

import (
	"context"
	"fmt"
	"time"

	"entropipe/cmd/command"
	"entropipe/sinks/read"
)

// output reads the commits of an output.
type output struct {
	folder  string
	store   command.Store
	follow  *read.Follower
	last    time.Time
	rows    map[string]int64 // at last, by table
	history []float64        // rows a second, oldest first
}

func (o *output) name() string         { return o.folder }
func (o *output) usual() time.Duration { return 2 * time.Second }
func (o *output) close()               { o.store.Close() }

// eachTime bounds the manifests of one reading: a large output is shown while it is read.
const eachTime = 2000

// read reads commits that are new.
func (o *output) read(ctx context.Context) (r *reading, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s cannot be read: %w", o.folder, err)
		}
	}()
	if o.follow == nil {
		if o.follow, err = read.Follow(ctx, o.store); err != nil {
			return nil, err
		}
	}
	left, err := o.follow.Update(ctx, eachTime)
	if err != nil {
		return nil, err
	}
	summary := o.follow.Summary()
	r = &reading{at: time.Now(), out: summary, left: left, document: struct {
		Out string `json:"out"`
		*read.Summary
	}{o.folder, summary}}
	if left == 0 {
		r.outRates, r.outHistory = o.rates(r)
	}
	return r, nil
}

// rates returns the rows a second of each table since the reading before, and their sums of the
// last minute. The first reading has none.
func (o *output) rates(r *reading) (map[string]float64, []float64) {
	rows, rates, sum := map[string]int64{}, map[string]float64{}, 0.
	seconds := r.at.Sub(o.last).Seconds()
	for _, t := range r.out.Tables {
		rows[t.Table] = t.Rows
		if o.rows != nil && seconds > 0 {
			rates[t.Table] = float64(max(t.Rows-o.rows[t.Table], 0)) / seconds
			sum += rates[t.Table]
		}
	}
	if o.rows != nil {
		o.history = append(o.history, sum)
		o.history = o.history[max(len(o.history)-sparkSeconds, 0):]
	}
	o.last, o.rows = r.at, rows
	return rates, append([]float64(nil), o.history...)
}
