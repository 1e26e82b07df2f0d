package train

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"entropipe/algos/geom"
	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
	"entropipe/ingest/replay"
	"entropipe/preprocess/train"
	"entropipe/schemas"
)

// learned is a frame to learn from, with its names.
type learned struct {
	cloud           geom.Cloud[float32]
	dataset, sensor string
}

// data reads the frames that the arguments name.
func (c *Command) data(e *command.Env, dims int) (*train.Data, error) {
	collector := train.Collector{Dims: dims}
	var dataset, sensor names
	err := c.each(e, func(f learned) error {
		dataset.add(f.dataset)
		sensor.add(f.sensor)
		return collector.Add(f.cloud)
	})
	if err != nil {
		return nil, err
	}
	data, err := collector.Data()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(c.Source, " "), err)
	}
	e.Log.Info("frames to learn from", "learn", len(data.Learn), "judge", len(data.Judge), "skipped",
		collector.Skipped(), "points", data.Points)
	data.Dataset, data.Sensor = dataset.or(c.Dataset), sensor.or(c.Sensor)
	return data, nil
}

// names tells whether all frames have the same one.
type names struct {
	first  string
	some   bool
	differ bool
}

func (n *names) add(name string) {
	if !n.some {
		n.first, n.some = name, true
	}
	n.differ = n.differ || name != n.first
}

// or returns the name of all frames, empty for several, unless a flag says
// otherwise.
func (n *names) or(flag string) string {
	switch {
	case flag == "any" || flag == "" && n.differ:
		return ""
	case flag != "":
		return flag
	}
	return n.first
}

// each gives the first c.Frames frames to f, in an order that only the source
// decides. Clouds are valid during the call.
func (c *Command) each(e *command.Env, f func(learned) error) error {
	if command.IsTopicURL(c.Source[0]) {
		if len(c.Source) > 1 {
			return mistake.NewUsage(errors.New("source: one topic, not several"))
		}
		brokers, topic, err := command.TopicURL(c.Source[0])
		if err != nil {
			return err
		}
		return c.eachOfTopic(e, brokers, topic, f)
	}
	src, err := c.open(e)
	if err != nil {
		return err
	}
	defer src.Close()
	left := c.Frames
	var it replay.Item
	for left > 0 && e.Ctx.Err() == nil {
		switch err := src.Next(&it); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		for _, cloud := range clouds(&it) {
			if left--; left < 0 {
				break
			}
			if err := f(learned{cloud, it.Dataset, it.Sensor}); err != nil {
				return err
			}
		}
	}
	return e.Ctx.Err()
}

// open opens files, a folder or the synthetic source.
func (c *Command) open(e *command.Env) (replay.Source, error) {
	first := c.Source[0]
	if first == "synthetic" && len(c.Source) == 1 {
		if c.Kind == "sketch" {
			return replay.Sketches{Frames: int64(c.Frames), Seed: c.Seed, Pack: 100}.Open()
		}
		return replay.LiDAR{Frames: int64(c.Frames), Seed: c.Seed}.Open()
	}
	info, err := os.Stat(first)
	if err != nil {
		return nil, fmt.Errorf("%w (a source is a folder, .ndjson files, kafka://HOST:PORT/TOPIC, or the word "+
			"synthetic)", err)
	}
	if info.IsDir() {
		if len(c.Source) > 1 {
			return nil, mistake.NewUsage(errors.New("source: one folder, not several"))
		}
		return replay.KITTI{Dir: first, Log: e.Log}.Open()
	}
	return replay.QuickDraw{Files: c.Source, SkipBad: true, Pack: 100, Log: e.Log}.Open()
}

// clouds are the frames of an item, as float32: networks compute in float32.
func clouds(it *replay.Item) []geom.Cloud[float32] {
	if it.Drawings == nil {
		return []geom.Cloud[float32]{it.Cloud.Cloud32}
	}
	var all []geom.Cloud[float32]
	for _, d := range it.Drawings {
		all = append(all, geom.Cloud[float32]{X: narrow(d.X), Y: narrow(d.Y)})
	}
	return all
}

// topicReader collects the first frames of every partition.
type topicReader struct {
	starts map[int32]int64
	most   int // frames of a partition
	types  schemas.ContentTypes

	mu     sync.Mutex
	frames map[int32][]learned
}

// eachOfTopic reads a topic from its beginning to where it ends now, as the
// only member of a group of its own, and gives equally many frames of each
// partition to f, partition by partition.
func (c *Command) eachOfTopic(e *command.Env, brokers []string, topic string, f func(learned) error) error {
	if err := cmp.Or(command.CheckBrokers(&brokers), command.CheckTopicName(topic)); err != nil {
		return err
	}
	types, err := command.ContentTypes(c.ContentType, nil)
	if err != nil {
		return err
	}
	security, err := c.Security.Open(e.Log)
	if err != nil {
		return err
	}
	consumer, err := ingest.NewConsumer(ingest.Config{Brokers: brokers, Security: security, Topics: []string{topic},
		Group: "entropipe-train-" + rand.Text(), UntilEnd: true, Log: e.Log})
	if err != nil {
		return err
	}
	defer consumer.Close()
	r := topicReader{types: types, frames: map[int32][]learned{}}
	if r.starts, err = consumer.Starts(e.Ctx, topic, "earliest"); err != nil {
		return err
	}
	r.most = (c.Frames + len(r.starts) - 1) / max(len(r.starts), 1)
	if err := consumer.Run(e.Ctx, r.read); err != nil {
		return err
	}
	left := c.Frames
	for _, id := range slices.Sorted(maps.Keys(r.frames)) {
		for _, frame := range r.frames[id][:min(left, len(r.frames[id]))] {
			left--
			if err := f(frame); err != nil {
				return err
			}
		}
	}
	return e.Ctx.Err()
}

// read collects the frames of a partition. Messages that are no frames are
// left out, as the pipeline refuses them.
func (r *topicReader) read(ctx context.Context, p *ingest.Partition) error {
	decoder := schemas.Decoder{ContentTypes: r.types}
	var frames []learned
	for next := r.starts[p.ID]; len(frames) < r.most; {
		fetched, err := p.Fetch(ctx, next, 16<<20)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		for _, m := range fetched.Messages {
			decoded, err := decoder.Decode(m)
			if err != nil || m.Oversize > 0 {
				continue
			}
			for i := range decoded {
				frames = append(frames, learned{copied(&decoded[i]), decoded[i].Dataset, decoded[i].Sensor})
			}
		}
		if fetched.Release != nil {
			fetched.Release()
		}
		next = fetched.Next
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames[p.ID] = frames[:min(len(frames), r.most)]
	return nil
}

// copied is a frame's cloud in memory of its own, as float32.
func copied(f *schemas.Frame) geom.Cloud[float32] {
	if !f.Double {
		return geom.Cloud[float32]{X: slices.Clone(f.Cloud32.X), Y: slices.Clone(f.Cloud32.Y),
			Z: slices.Clone(f.Cloud32.Z)}
	}
	var c geom.Cloud[float32]
	for d, to := range []*[]float32{&c.X, &c.Y, &c.Z} {
		if v := [][]float64{f.Cloud64.X, f.Cloud64.Y, f.Cloud64.Z}[d]; v != nil {
			*to = narrow(v)
		}
	}
	return c
}

// narrow rounds coordinates to float32.
func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i := range v {
		out[i] = float32(v[i])
	}
	return out
}
