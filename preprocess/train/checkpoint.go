package train

import (
	"encoding/json"
	"fmt"
	"strconv"

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

// Save writes a checkpoint to path, whole or not at all.
func (t *Trainer) Save(path string) error {
	config, err := json.Marshal(t.cfg)
	if err != nil {
		return err
	}
	rest, err := json.Marshal(state{t.step, t.waited, t.bar, t.best.step, t.best.judgement, t.records})
	if err != nil {
		return err
	}
	return safetensors.WriteFile(path, map[string]string{
		"format": checkpointFormat, "config": string(config), "data_sha256": t.data.SHA256, "state": string(rest)},
		t.arrays())
}

// Resume returns the training of a checkpoint. It continues with the same bits as a
// training without interruption, given the same binary and class of CPU. Resume fails
// if the checkpoint has another configuration or other data.
func Resume(path string, cfg Config, data *Data) (*Trainer, error) {
	t, err := New(cfg, data)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := t.restore(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func (t *Trainer) restore(f *safetensors.File) error {
	about := f.Metadata()
	config, err := json.Marshal(t.cfg)
	if err != nil {
		return err
	}
	switch {
	case about["format"] != checkpointFormat:
		return fmt.Errorf("format %q is not that of a checkpoint, want %s", about["format"], checkpointFormat)
	case about["config"] != string(config):
		return fmt.Errorf("the checkpoint was made with other settings: it has %s, and these are %s",
			about["config"], config)
	case about["data_sha256"] != t.data.SHA256:
		return fmt.Errorf("the checkpoint was made on other data: it has SHA-256 %s, and these have %s",
			about["data_sha256"], t.data.SHA256)
	}
	var s state
	if err := json.Unmarshal([]byte(about["state"]), &s); err != nil {
		return fmt.Errorf("state cannot be read: %w", err)
	}
	if s.Step < 0 || s.Step > t.cfg.Steps {
		return fmt.Errorf("state has step %d of %d", s.Step, t.cfg.Steps)
	}
	t.step, t.waited, t.bar, t.records = s.Step, s.Waited, s.Bar, s.Records
	if s.BestStep > 0 {
		now := t.current()
		t.best = now.clone()
		t.best.step, t.best.judgement = s.BestStep, s.Best
	}
	for _, a := range t.arrays() {
		if err := restoreArray(f, a.Name, a.Data.([]float32)); err != nil {
			return err
		}
	}
	t.extraViews()
	return nil
}

func restoreArray(f *safetensors.File, name string, to []float32) error {
	tensor, ok := f.Lookup(name)
	if !ok || tensor.Len() != len(to) {
		return fmt.Errorf("tensor %q is missing or does not have %d values", name, len(to))
	}
	values, err := tensor.Float32s(nil)
	copy(to, values)
	return err
}
