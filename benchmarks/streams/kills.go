package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"entropipe/benchmarks/rig"
)

// killsCmd kills engines. Each has a topic of its own with the same frames at the same steady
// rate, makes hulls and maxima of them (Iceberg's sink: keeps them whole), and all of its processes
// are killed (kill -9) and started again. A kill comes some time after the job has begun to write, the same for all
// engines. After the last kill a job goes on until its readers see all frames, or no more come.
type killsCmd struct {
	common

	Kills   int           `default:"5" help:"Kills of each engine (${default}; --quick: 1)."`
	Rate    int           `default:"30" help:"Frames a second (${default})."`
	Small   int           `default:"20000" help:"Points of a frame (${default})."`
	Within  time.Duration `default:"6s" help:"Longest time from a job's first new file to its kill (${default})."`
	Commit  time.Duration `default:"2s" help:"Interval of checkpoints; the roll age of ours (${default})."`
	Patient time.Duration `default:"3m" help:"How long nothing new may be committed at the end (${default})."`
}

// Run measures.
func (c *killsCmd) Run(ctx context.Context) error {
	if c.Quick {
		c.Kills = min(c.Kills, 1)
	}
	c.Points, c.Every = c.Small, c.Commit
	b, err := c.open(ctx)
	if err != nil {
		return err
	}
	for _, engine := range c.Engines {
		f, err := c.kill(b, engine)
		if err == nil {
			say("%-10s %d kills of %d frames: %d missing, %d doubled (%d for a reader of all files), processor "+
				"%.1f s, "+
				"%.0f MB, %.1f s behind", engine, f.Kills, f.Frames, f.Missing, f.Doubled, f.Unguarded, f.CPUS,
				float64(f.PSS)/1e6, f.BehindS)
			err = b.report.journal.Add(f)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", engine, err), b.close())
		}
	}
	return errors.Join(b.report.write(), b.close())
}

// moments returns the times from the first new file of a job to its kill.
func (c *killsCmd) moments() (all []time.Duration) {
	random := rand.New(rand.NewPCG(c.Seed, 2))
	for range c.Kills {
		all = append(all, time.Duration(random.Int64N(int64(c.Within))))
	}
	return all
}

// secondsOfAKill is for how long frames are sent a kill: a job starts, works and is killed. A worker
// of Kafka Connect waits at its start until the session of its dead consumers has ended.
func secondsOfAKill(engine string) int {
	if engine == engineIceberg {
		return 40
	}
	return 14
}

// kill measures one engine.
func (c *killsCmd) kill(b *bench, engine string) (f figures, err error) {
	moments := c.moments()
	frames := int64(secondsOfAKill(engine) * c.Rate * (c.Kills + 1))
	topic := "live-" + engine
	if err := b.client.CreateTopic(b.ctx, topic, partitions, largest); err != nil {
		return f, err
	}
	producer, err := rig.Start(rig.Spec{Path: b.program.Path,
		Args: b.produce(topic, frames, c.Small, strconv.Itoa(c.Rate)+"hz")})
	if err != nil {
		return f, err
	}
	defer producer.Kill()
	work := workShapes
	if !does(engine, work) {
		work = workMessages
	}
	j := b.newJob(engine, work, topic)
	j.follow = true
	f = figures{What: "kills", Run: b.run, Work: work, Engine: engine, Seed: b.Seed, Cores: j.cores,
		EveryS: j.every.Seconds(), Points: c.Small, Kills: len(moments)}
	broker, others := b.brokerTime(), busy()
	for i, moment := range append(moments, 0) {
		last := i == len(moments)
		began := time.Now()
		p, line, err := b.begin(j, filepath.Join(j.folder, fmt.Sprintf("cost-%d.json", i)))
		if err != nil {
			return f, err
		}
		f.Command = line
		if !last {
			if err := c.until(b, p, j, began, moment); err != nil {
				return f, err
			}
		} else if f.BehindS, err = c.settle(b, p, producer, j, began); err != nil {
			_, failed := p.Stop(time.Minute)
			return f, errors.Join(err, failed)
		}
		if err := c.killed(b, p, j, i, &f); err != nil {
			return f, err
		}
	}
	f.BrokerCPUS = b.brokerTime() - broker
	f.OthersCPUS = max(0, busy()-others-f.CPUS-f.BrokerCPUS)
	return f, c.count(b, j, &f)
}

// until waits until a job writes, and then for a moment. A job that ends by itself before, or
// does not begin to write, is an error.
func (c *killsCmd) until(b *bench, p *rig.Process, j *job, began time.Time, moment time.Duration) error {
	late := time.After(limit)
	var kill <-chan time.Time
	for {
		select {
		case <-kill:
			return nil
		case <-p.Done():
			_, err := p.Wait(b.ctx)
			return errors.Join(errors.New("the job ended by itself"), err)
		case <-late:
			_, err := p.Stop(time.Minute)
			return errors.Join(fmt.Errorf("nothing is written after %v", limit), err)
		case <-b.ctx.Done():
			_, err := p.Stop(time.Minute)
			return errors.Join(context.Cause(b.ctx), err)
		case <-time.After(100 * time.Millisecond):
			if kill == nil && writes(j.out(), began) {
				kill = time.After(moment)
			}
		}
	}
}

// writes tells whether an output has a file that is younger than a time.
func writes(out string, since time.Time) (found bool) {
	filepath.WalkDir(out, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // it comes and goes
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(since) {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// killed has the tree of a job killed, and adds its cost.
func (c *killsCmd) killed(b *bench, p *rig.Process, j *job, number int, f *figures) error {
	_, err := p.Stop(30 * time.Second) // the status is that of a killed command
	var one cost
	if failed := readCost(filepath.Join(j.folder, fmt.Sprintf("cost-%d.json", number)), &one); failed != nil {
		return errors.Join(failed, err)
	}
	f.WallS += one.WallS
	f.CPUS += one.CPUS
	f.PSS, f.RSS = max(f.PSS, one.PSS), max(f.RSS, one.RSS)
	return nil
}

// settle waits until all frames are committed, or nothing new is for long after the job has begun
// to write. It returns the time from the end of the producer to the last new commit that was seen.
func (c *killsCmd) settle(b *bench, p, producer *rig.Process, j *job,
	began time.Time) (behind float64, err error) {
	ctx, cancel := context.WithTimeoutCause(b.ctx, limit, errors.New("the producer does not end"))
	defer cancel()
	if _, err := producer.Wait(ctx); err != nil {
		return 0, err
	}
	ended, moved, rows, frames := time.Now(), time.Now(), int64(-1), int64(0)
	ends, err := b.ends(j.topic)
	if err != nil {
		return 0, err
	}
	for _, end := range ends {
		frames += end
	}
	for {
		var found figures
		if err := b.judge(&found, "count", j.engine, j.work, j.out()); err != nil {
			return 0, err
		}
		if found.Rows != rows || !writes(j.out(), began) && time.Since(ended) < limit { // it still starts
			rows, moved = found.Rows, time.Now()
		}
		if rows >= frames || time.Since(moved) > c.Patient {
			return moved.Sub(ended).Seconds(), nil
		}
		select {
		case <-p.Done():
			_, err := p.Wait(b.ctx)
			return 0, errors.Join(errors.New("the job ended by itself"), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// count has the judge count what is missing and what is doubled.
func (c *killsCmd) count(b *bench, j *job, f *figures) error {
	ends, err := b.ends(j.topic)
	if err != nil {
		return err
	}
	f.Frames = 0
	for _, end := range ends {
		f.Frames += end
	}
	f.Bytes = f.Frames * int64(c.Small) * pointBytes
	text, err := json.Marshal(ends)
	if err != nil {
		return err
	}
	if err := b.judge(f, "offsets", j.engine, j.work, j.out(), string(text)); err != nil {
		return err
	}
	return b.judge(f, "count", j.engine, j.work, j.out())
}
