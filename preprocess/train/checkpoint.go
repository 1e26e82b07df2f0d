package train

import (
	"encoding/json"
	"fmt"
	"strconv"

	"entropipe/models/checkpoint"
	"entropipe/models/safetensors"
)

// checkpointFormat is the value of format in a checkpoint's metadata.
const checkpointFormat = "entropynet-checkpoint/1"

// state holds the parts of a checkpoint that are not tensors.
type state struct {
	Step     int       `json:"step"`
	Waited   int       `json:"waited"`
	Bar      float64   `json:"bar"`
	BestStep int       `json:"best_step"` // 0: none yet
	Best     Judgement `json:"best"`
	Records  []Record  `json:"records"`
}

// arrays returns all arrays that a step changes, with their names.
func (t *Trainer) arrays() []safetensors.Array {
	var all []safetensors.Array
	add := func(name string, data []float32) {
		if len(data) > 0 {
			all = append(all, safetensors.Array{Name: name, DType: safetensors.F32,
				Shape: []int{len(data)}, Data: data})
		}
	}
	now := t.current()
	for name, k := range map[string]*keep{"now.": &now, "best.": &t.best} {
		add(name+"params", k.params)
		for l := range k.mean {
			add(name+"mean."+strconv.Itoa(l), k.mean[l])
			add(name+"var."+strconv.Itoa(l), k.vari[l])
		}
	}
	add("moment.1", t.m)
	add("moment.2", t.v)
	add("extra", t.extra)
	add("extra.moment.1", t.mExtra)
	add("extra.moment.2", t.vExtra)
	return all
}

// of says of which training a checkpoint is.
func (t *Trainer) of() (checkpoint.Of, error) {
	config, err := json.Marshal(t.cfg)
	return checkpoint.Of{Format: checkpointFormat, Config: string(config), Data: t.data.SHA256}, err
}

// Save writes a checkpoint to path, whole or not at all.
func (t *Trainer) Save(path string) error {
	of, err := t.of()
	if err != nil {
		return err
	}
	return checkpoint.Write(path, of,
		state{t.step, t.waited, t.bar, t.best.step, t.best.judgement, t.records}, t.arrays())
}

// Resume returns the training of a checkpoint. It continues with the same bits as a
// training without interruption, given the same binary and class of CPU. Resume fails
// if the checkpoint has another configuration or other data.
func Resume(path string, cfg Config, data *Data) (*Trainer, error) {
	t, err := New(cfg, data)
	if err != nil {
		return nil, err
	}
	of, err := t.of()
	if err != nil {
		return nil, err
	}
	var s state
	if err := checkpoint.Read(path, of, &s, func() ([]safetensors.Array, error) { return t.restored(s) }); err != nil {
		return nil, err
	}
	t.extraViews()
	return t, nil
}

// restored takes a state, and returns the arrays that go with it.
func (t *Trainer) restored(s state) ([]safetensors.Array, error) {
	if s.Step < 0 || s.Step > t.cfg.Steps {
		return nil, fmt.Errorf("step is %d of %d", s.Step, t.cfg.Steps)
	}
	t.step, t.waited, t.bar, t.records = s.Step, s.Waited, s.Bar, s.Records
	if s.BestStep > 0 {
		now := t.current()
		t.best = now.clone()
		t.best.step, t.best.judgement = s.BestStep, s.Best
	}
	return t.arrays(), nil
}
