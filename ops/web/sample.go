package web

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
)

// Sampler makes samples of a process. One goroutine may use it. Gatherer and Pipeline are
// required.
type Sampler struct {
	Gatherer prometheus.Gatherer
	Pipeline *pipeline.Pipeline
	Workers  int
	Patience time.Duration // as Sample.Patience
	// Health returns what works, and why the process is not ready; nil: it is.
	Health func() ([]live.Health, error)
	// Backfill returns how far a backfill is; nil, and nil of it: there is none.
	Backfill func() *live.Backfill
	// Group returns what is known of the other members of the consumer group; nil: nothing.
	Group func() live.Group

	owner string
	seen  map[string]*metrics.Quantiles
}

// Sample returns the present numbers. It reads the gauges that Pipeline.Sample writes.
func (s *Sampler) Sample() live.Sample {
	sample := live.Sample{Time: time.Now(), Workers: s.Workers, Patience: s.Patience, Ready: true}
	if s.Health != nil {
		var err error
		if sample.Health, err = s.Health(); err != nil {
			sample.Ready, sample.Reason = false, err.Error()
		}
	}
	if s.Backfill != nil {
		sample.Backfill = s.Backfill()
	}
	if s.Group != nil {
		sample.Group = s.Group()
	}
	s.topics(&sample)
	families, err := s.Gatherer.Gather() // beside an error comes the rest
	if err != nil && len(families) == 0 {
		return sample
	}
	if s.owner == "" {
		host, _ := os.Hostname()
		s.owner = fmt.Sprintf("%s, process %d", host, os.Getpid())
	}
	read(&sample, families, s.owner)
	s.Pipeline.Hidden(func(topic string, id int32, offsets int64, since time.Time) {
		hold(&sample, topic, id, since, hiddenFrom, fmt.Sprintf("an open transaction: %d offsets wait for its end",
			offsets))
	})
	s.Pipeline.Chunked(func(topic string, id int32, offset int64, since time.Time) {
		hold(
			&sample,
			topic,
			id,
			since,
			chunkedFrom,
			fmt.Sprintf("an open chunked frame: offset %d waits for its chunks",
				offset),
		)
	})
	if err := s.Pipeline.Unavailable(); err != nil {
		for i := range sample.Partitions {
			if p := &sample.Partitions[i]; p.Records > 0 {
				p.Held = "held: the output cannot be written"
			}
		}
	}
	return sample
}

// How long something lasts before it counts as holding a partition.
const (
	hiddenFrom  = 10 * time.Second // an open transaction
	chunkedFrom = 3 * time.Second  // a frame whose chunks are missing
)

// hold says what holds a partition, if it has for long.
func hold(sample *live.Sample, topic string, id int32, since time.Time, least time.Duration, what string) {
	lasts := sample.Time.Sub(since)
	if lasts < least {
		return
	}
	for i := range sample.Partitions {
		if p := &sample.Partitions[i]; p.Topic == topic && p.Partition == id {
			p.Held = fmt.Sprintf("held by %s since %d s", what, int64(lasts.Seconds()))
		}
	}
}

// topics adds the totals of each topic, and its latencies since the last call.
func (s *Sampler) topics(sample *live.Sample) {
	if s.seen == nil {
		s.seen = map[string]*metrics.Quantiles{}
	}
	for _, topic := range s.Pipeline.Topics() {
		st := s.Pipeline.Stats(topic)
		t := live.TopicSample{Topic: topic, Totals: live.Counts[int64]{Messages: st.Messages, Frames: st.Frames,
			Points: st.Points, Sequences: st.Sequences, Tokens: st.Tokens, Rejects: st.Rejects, BytesIn: st.BytesIn,
			BytesOut: st.FileBytes, Rows: st.Rows}}
		if s.seen[topic] == nil {
			s.seen[topic] = &metrics.Quantiles{}
		}
		s.Pipeline.Latencies(topic, s.seen[topic], func(d time.Duration, n int64) {
			t.Latency = append(t.Latency, live.Times{Ms: float64(d) / 1e6, N: n})
		})
		sample.Topics = append(sample.Topics, t)
	}
}

// read adds what the metrics say: stages, queues, partitions, and the process.
func read(sample *live.Sample, families []*dto.MetricFamily, owner string) {
	sample.Stages = map[string]live.Work{}
	at := map[string]int{} // places of partitions, by topic and number
	partition := func(m *dto.Metric) *live.Partition {
		topic, id := label(m, "topic"), label(m, "partition")
		i, known := at[topic+"/"+id]
		if !known {
			n, _ := strconv.ParseInt(id, 10, 32)
			i = len(sample.Partitions)
			at[topic+"/"+id] = i
			sample.Partitions = append(sample.Partitions,
				live.Partition{Topic: topic, Partition: int32(n), Owner: owner})
		}
		return &sample.Partitions[i]
	}
	p := &sample.Process
	items, free, size := 0., 0., 0.
	for _, f := range families {
		for _, m := range f.Metric {
			switch value := m.GetGauge().GetValue(); f.GetName() {
			case metrics.Prefix + "consumer_lag_records":
				partition(m).Records = int64(value)
			case metrics.Prefix + "consumer_lag_seconds":
				partition(m).Seconds = value
			case metrics.Prefix + "last_commit_timestamp_seconds":
				age := max(float64(sample.Time.UnixMilli())/1e3-value, 0)
				partition(m).CommitAgeS = &age
			case metrics.Prefix + "chunked_frames_open":
				partition(m).OpenFrames = int64(value)
			case metrics.Prefix + "stage_duration_seconds":
				work(sample.Stages, label(m, "stage"), m)
			case metrics.Prefix + "model_batch_duration_seconds":
				work(sample.Stages, "operate", m)
			case metrics.Prefix + "frames_total", metrics.Prefix + "sequences_total":
				stage := label(m, "stage")
				if (stage == "operate" || stage == "model") && label(m, "direction") == "in" {
					items += m.GetCounter().GetValue()
				}
			case metrics.Prefix + "queue_length":
				switch label(m, "stage") {
				case "operate", "model":
					sample.Queue.Length += value
				}
			case metrics.Prefix + "queue_capacity":
				switch label(m, "stage") {
				case "operate", "model":
					sample.Queue.Capacity += value
				case "pipeline_bytes":
					p.Memory.Limit = int64(value)
				}
			case metrics.Prefix + "stage_inflight_bytes":
				p.Memory.Used = int64(value)
			case metrics.Prefix + "output_disk_free_bytes":
				free = value
			case metrics.Prefix + "output_disk_size_bytes":
				size = value
			case "process_cpu_seconds_total":
				sample.CPUSeconds = m.GetCounter().GetValue()
			case "process_resident_memory_bytes":
				p.RSSBytes = int64(value)
			case "go_memstats_heap_inuse_bytes":
				p.HeapBytes = int64(value)
			case "go_goroutines":
				p.Goroutines = int64(value)
			}
		}
	}
	if size > 0 {
		disk := live.Health{What: "disk", OK: free >= size/100}
		if !disk.OK {
			disk.Reason = fmt.Sprintf("less than 1 %% of the disk is free: %.0f MB", free/1e6)
		}
		sample.Health = append(sample.Health, disk)
	}
	slices.SortFunc(sample.Partitions, func(a, b live.Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	w := sample.Stages["operate"] // an operator each; here a frame counts once
	w.Count = items
	sample.Stages["operate"] = w
}

// work adds a histogram to the work of a stage.
func work(stages map[string]live.Work, stage string, m *dto.Metric) {
	w := stages[stage]
	w.Count += float64(m.GetHistogram().GetSampleCount())
	w.Seconds += m.GetHistogram().GetSampleSum()
	stages[stage] = w
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Tables returns what the metrics say of the tables, in the order of their names, and of the
// disk.
func Tables(g prometheus.Gatherer) ([]Table, Disk) {
	families, _ := g.Gather() // beside an error comes the rest
	tables, at, disk := []Table{}, map[string]int{}, Disk{}
	table := func(m *dto.Metric) *Table {
		name := label(m, "table")
		i, known := at[name]
		if !known {
			i = len(tables)
			at[name] = i
			tables = append(tables, Table{Table: name})
		}
		return &tables[i]
	}
	for _, f := range families {
		for _, m := range f.Metric {
			count, value := int64(m.GetCounter().GetValue()), m.GetGauge().GetValue()
			switch f.GetName() {
			case metrics.Prefix + "output_files_total":
				table(m).Files = count
			case metrics.Prefix + "output_rows_total":
				table(m).Rows = count
			case metrics.Prefix + "output_file_bytes_total":
				table(m).Bytes = count
			case metrics.Prefix + "output_last_close_timestamp_seconds":
				table(m).LastClose = int64(value)
			case metrics.Prefix + "output_disk_free_bytes":
				disk.Free = int64(value)
			case metrics.Prefix + "output_disk_size_bytes":
				disk.Total = int64(value)
			}
		}
	}
	return tables, disk
}
