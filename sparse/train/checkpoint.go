package train

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

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

// Save writes a checkpoint to a file. The file is replaced as a whole; after an
// error the old file is intact.
func (t *Trainer) Save(path string) error {
	config, err := t.settings()
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
	rest, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return safetensors.WriteFile(path, map[string]string{
		"format": checkpointFormat, "config": config, "data_sha256": t.dataSHA256(), "state": string(rest)}, t.arrays())
}

// Resume restores t from a checkpoint. The checkpoint must come from a training
// with the same settings (except Workers) and the same data. Given the same binary
// and class of CPU, the resumed training has the bits of an uninterrupted one. A
// checkpoint of other settings or other data is an error; t must not be used after
// an error.
func (t *Trainer) Resume(path string) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.restore(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// differences names the settings that differ between two JSON objects, with both
// values.
func differences(old, now string) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal([]byte(old), &a) != nil || json.Unmarshal([]byte(now), &b) != nil {
		return fmt.Sprintf("it has %.200s", old)
	}
	var list []string
	for name := range b {
		if string(a[name]) != string(b[name]) {
			list = append(list, fmt.Sprintf("%s was %s and is %s", name, a[name], b[name]))
		}
	}
	if len(list) == 0 {
		return "another version of this program wrote it"
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (t *Trainer) restore(f *safetensors.File) error {
	about := f.Metadata()
	config, err := t.settings()
	if err != nil {
		return err
	}
	switch {
	case about["format"] != checkpointFormat:
		return fmt.Errorf("its format is %q, not %s: the file is no checkpoint of this program",
			about["format"], checkpointFormat)
	case about["config"] != config:
		return fmt.Errorf("the checkpoint was made with other settings: %s", differences(about["config"], config))
	case about["data_sha256"] != t.dataSHA256():
		return fmt.Errorf("the checkpoint was made on other data: its data have SHA-256 %s, these have %s",
			about["data_sha256"], t.dataSHA256())
	}
	var s state
	if err := json.Unmarshal([]byte(about["state"]), &s); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if s.Step < 0 || s.Elapsed < 0 || t.cfg.Steps > 0 && s.Step > t.cfg.Steps {
		return fmt.Errorf("state: step is %d of %d", s.Step, t.cfg.Steps)
	}
	for _, a := range t.arrays() {
		if err := restoreArray(f, a.Name, a.Data.([]float32)); err != nil {
			return err
		}
	}
	if a := t.anchors; a != nil {
		if len(s.Alpha) != len(a.alpha) {
			return fmt.Errorf("state: it has %d temperatures but must have %d", len(s.Alpha), len(a.alpha))
		}
		a.placed, a.alpha = s.Placed, s.Alpha
	}
	if g := t.gates; g != nil {
		g.hard = s.Hard
		for _, i := range s.Shut {
			if i < 0 || i >= len(g.shut) {
				return fmt.Errorf("state: gate %d does not exist: there are %d", i, len(g.shut))
			}
			g.shut[i] = true
		}
	}
	t.step, t.elapsed, t.records = s.Step, s.Elapsed, s.Records
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
