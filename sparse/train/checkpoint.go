package train

import (
	"encoding/json"
	"fmt"
	"time"

	"entropipe/models/checkpoint"
	"entropipe/models/safetensors"
)

// checkpointFormat names the format in a checkpoint's metadata. The configuration,
// the hash of the data and the state stand beside it.
const checkpointFormat = "transformer-checkpoint/1"

// state holds the values of a checkpoint that are not tensors.
type state struct {
	Step    int           `json:"step"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Placed  bool          `json:"placed"`
	Alpha   []float64     `json:"alpha,omitempty"`
	Hard    bool          `json:"hard"`
	Shut    []int         `json:"shut,omitempty"`
	Records []Record      `json:"records"`
}

// arrays returns all tensors that a step changes, by name.
func (t *Trainer) arrays() []safetensors.Array {
	var all []safetensors.Array
	add := func(name string, data []float32) {
		all = append(all, safetensors.Array{Name: name, Shape: []int{len(data)}, Data: data})
	}
	add("params", t.net.params)
	add("moment.1", t.m)
	add("moment.2", t.v)
	if t.kept != nil {
		add("kept", t.kept)
	}
	if a := t.anchors; a != nil {
		add("anchors", a.c)
		add("anchors.moment.1", a.m)
		add("anchors.moment.2", a.v)
	}
	if g := t.gates; g != nil {
		add("gates", g.theta)
		add("gates.moment.1", g.m)
		add("gates.moment.2", g.v)
	}
	return all
}

// settings returns, as JSON, all settings that affect the bits of the model. A
// checkpoint must be resumed with the same settings.
func (t *Trainer) settings() (string, error) {
	c := t.cfg
	c.Workers = 0
	text, err := json.Marshal(c)
	return string(text), err
}

// dataSHA256 returns the hash of the training data.
func (t *Trainer) dataSHA256() string {
	switch d := t.data.(type) {
	case windows:
		return d.text.SHA256
	case *gallery:
		return d.images.SHA256
	}
	panic("train: a source without a hash")
}

// of says of which training a checkpoint is.
func (t *Trainer) of() (checkpoint.Of, error) {
	config, err := t.settings()
	return checkpoint.Of{Format: checkpointFormat, Config: config, Data: t.dataSHA256()}, err
}

// Save writes a checkpoint to a file. The file is replaced as a whole; after an
// error the old file is intact.
func (t *Trainer) Save(path string) error {
	of, err := t.of()
	if err != nil {
		return err
	}
	s := state{Step: t.step, Elapsed: t.elapsed, Records: t.records}
	if a := t.anchors; a != nil {
		s.Placed, s.Alpha = a.placed, a.alpha
	}
	if g := t.gates; g != nil {
		s.Hard = g.hard
		for i, shut := range g.shut {
			if shut {
				s.Shut = append(s.Shut, i)
			}
		}
	}
	return checkpoint.Write(path, of, s, t.arrays())
}

// Resume restores t from a checkpoint. The checkpoint must come from a training
// with the same settings (except Workers) and the same data. Given the same binary
// and class of CPU, the resumed training has the bits of an uninterrupted one. A
// checkpoint of other settings or other data is an error; t must not be used after
// an error.
func (t *Trainer) Resume(path string) error {
	of, err := t.of()
	if err != nil {
		return err
	}
	var s state
	return checkpoint.Read(path, of, &s, func() ([]safetensors.Array, error) { return t.restored(s) })
}

// restored takes a state, and returns the arrays that go with it.
func (t *Trainer) restored(s state) ([]safetensors.Array, error) {
	if s.Step < 0 || s.Elapsed < 0 || t.cfg.Steps > 0 && s.Step > t.cfg.Steps {
		return nil, fmt.Errorf("step is %d of %d", s.Step, t.cfg.Steps)
	}
	if a := t.anchors; a != nil {
		if len(s.Alpha) != len(a.alpha) {
			return nil, fmt.Errorf("it has %d temperatures but must have %d", len(s.Alpha), len(a.alpha))
		}
		a.placed, a.alpha = s.Placed, s.Alpha
	}
	if g := t.gates; g != nil {
		g.hard = s.Hard
		for _, i := range s.Shut {
			if i < 0 || i >= len(g.shut) {
				return nil, fmt.Errorf("gate %d does not exist: there are %d", i, len(g.shut))
			}
			g.shut[i] = true
		}
	}
	t.step, t.elapsed, t.records = s.Step, s.Elapsed, s.Records
	return t.arrays(), nil
}
