package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
)

// timeCmd times all engines in turns.
type timeCmd struct {
	common

	Works   []string `enum:"${works}" default:"${works}" help:"What is written (${enum})."`
	Rounds  int      `default:"3" help:"Turns of each engine and work (${default}; --quick: 1)."`
	Few     int64    `default:"8" help:"Frames of a start (${default})."`
	Whole   int64    `name:"messages" default:"600" help:"Frames of a turn with messages (${default}; --quick: 24)."`
	Records int64    `default:"12000" help:"Records of a turn with records (${default}; --quick: 400)."`
	Frames  int64    `default:"120" help:"Frames of a turn with points (${default}; --quick: 12)."`
	Shapes  int64    `default:"300" help:"Frames of a turn with shapes (${default}; --quick: 24)."`
}

// Run measures.
func (c *timeCmd) Run(ctx context.Context) error {
	if c.Quick {
		c.Rounds, c.Whole, c.Records = min(c.Rounds, 1), min(c.Whole, 24), min(c.Records, 400)
		c.Frames, c.Shapes = min(c.Frames, 12), min(c.Shapes, 24)
	}
	b, err := c.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.measure(b), b.close())
}

// amounts are the frames, or records, of a turn.
func (c *timeCmd) amounts(work string) int64 {
	return map[string]int64{workMessages: c.Whole, workRecords: c.Records, workPoints: c.Frames,
		workShapes: c.Shapes}[work]
}

// topicOf names the topic of a work, or the one of its starts.
func topicOf(work, kind string) string {
	if kind == startOnly && work != workRecords {
		return "few-frames" // of all works with frames
	}
	if kind == startOnly {
		return "few-records"
	}
	return work
}

func (c *timeCmd) measure(b *bench) error {
	filled := map[string]int64{} // records, by topic
	for _, work := range c.Works {
		for _, kind := range []string{startOnly, ""} {
			topic := topicOf(work, kind)
			if _, done := filled[topic]; done {
				continue
			}
			if err := b.fill(topic, work, c.count(work, kind)); err != nil {
				return err
			}
			ends, err := b.ends(topic)
			if err != nil {
				return err
			}
			for _, end := range ends {
				filled[topic] += end
			}
			say("topic %s: %d records", topic, filled[topic])
		}
	}
	random := rand.New(rand.NewPCG(c.Seed, 1))
	for round := range c.Rounds {
		for _, work := range c.Works {
			if err := c.round(b, random, round, work, filled); err != nil {
				return err
			}
		}
	}
	return b.report.write()
}

// count is the number of frames, or records, of a turn.
func (c *timeCmd) count(work, kind string) int64 {
	if kind == startOnly {
		return c.Few
	}
	return c.amounts(work)
}

// round has each engine do a work once, in an order by chance. In the first round each has a
// start before, and what the starts have written must be equal.
func (c *timeCmd) round(b *bench, random *rand.Rand, round int, work string, filled map[string]int64) error {
	var starts []string
	for _, i := range random.Perm(len(c.Engines)) {
		engine := c.Engines[i]
		if !does(engine, work) {
			continue
		}
		kinds := []string{""}
		if round == 0 {
			kinds = []string{startOnly, ""}
		}
		for _, kind := range kinds {
			topic := topicOf(work, kind)
			j := b.newJob(engine, work, topic)
			j.records = filled[topic]
			j.batch = int(max(1, filled[topic]/batchesOfATurn))
			f, err := b.turn(j)
			if err != nil {
				return err
			}
			f.What, f.Round, f.Case, f.Frames = "time", round, kind, filled[topic]
			if f.Bytes = f.Frames * recordBytes; work != workRecords {
				f.Bytes = f.Frames * int64(b.Points) * pointBytes
			}
			if err := b.check(&f); err != nil {
				return err
			}
			say("%d %-8s %-10s %5d %7.2f s, processor %7.2f s (broker %.1f, others %.1f), %5.0f "+
				"MB", round, work, engine,
				f.Frames, f.WallS, f.CPUS, f.BrokerCPUS, f.OthersCPUS, float64(f.PSS)/1e6)
			if err := b.report.journal.Add(f); err != nil {
				return err
			}
			if kind == startOnly && round == 0 {
				starts = append(starts, engine+"="+j.out())
			} else if err := os.RemoveAll(j.folder); err != nil && !b.Keep {
				return err
			}
		}
	}
	if round > 0 {
		return nil
	}
	var same struct{ Rows, Compared int64 }
	if err := b.judge(&same, append([]string{"equal", work}, starts...)...); err != nil {
		return fmt.Errorf("%s: %w", work, err)
	}
	say("%s: %d outputs are equal, %d rows each", work, same.Compared, same.Rows)
	return nil
}

// batchesOfATurn is the number of micro-batches in which Spark takes a topic: about one in an
// interval of checkpoints.
const batchesOfATurn = 2

// check compares the number of committed rows with what was asked for: a row a record, or a row
// a point. The synthetic scans have about as many points as they were asked for.
func (b *bench) check(f *figures) error {
	least, most := f.Frames, f.Frames
	if f.Work == workPoints {
		points := f.Frames * int64(b.Points)
		least, most = points-points/20, points+points/20
	}
	if f.Rows < least || f.Rows > most {
		return fmt.Errorf("%s, %s: %d rows are committed, want %d to %d", f.Engine, f.Work, f.Rows, least, most)
	}
	return nil
}
