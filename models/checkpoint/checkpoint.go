// Package checkpoint keeps the state of a training in a file, so that the training can go on
// after an interruption: arrays as tensors of a safetensors file, and in its metadata what
// kind of training it is, its settings, the hash of its data, and the rest of its state as
// JSON.
package checkpoint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"entropipe/models/safetensors"
)

// Of says of which training a checkpoint is. A training that goes on must have the same.
type Of struct {
	Format string // the kind of training and the version of its state
	Config string // JSON object of all settings that decide the result
	Data   string // SHA-256 of the data, in hexadecimal
}

// Keys of the metadata.
const (
	keyFormat = "format"
	keyConfig = "config"
	keyData   = "data_sha256"
	keyState  = "state"
)

// Write writes a checkpoint to a file, which it replaces whole or not at all.
func Write(path string, of Of, state any, arrays []safetensors.Array) error {
	rest, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return safetensors.WriteFile(path, map[string]string{keyFormat: of.Format, keyConfig: of.Config, keyData: of.Data,
		keyState: string(rest)}, arrays)
}

// Read reads a checkpoint: its state into state, a pointer, and then the tensors of the names
// that arrays returns into their Data, of type []float32. arrays is called once the state is
// read, and may refuse it. A checkpoint of another training is an error that names what
// differs; after an error the training must not be used.
func Read(path string, of Of, state any, arrays func() ([]safetensors.Array, error)) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(f, of, state, arrays); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func read(f *safetensors.File, of Of, state any, arrays func() ([]safetensors.Array, error)) error {
	about := f.Metadata()
	switch {
	case about[keyFormat] != of.Format:
		return fmt.Errorf("its format is %q, not %s: the file is no checkpoint of this program", about[keyFormat],
			of.Format)
	case about[keyConfig] != of.Config:
		return fmt.Errorf("the checkpoint was made with other settings: %s", differences(about[keyConfig], of.Config))
	case about[keyData] != of.Data:
		return fmt.Errorf("the checkpoint was made on other data: its data have SHA-256 %s, these have %s",
			about[keyData], of.Data)
	}
	if err := json.Unmarshal([]byte(about[keyState]), state); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	all, err := arrays()
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	for _, a := range all {
		to := a.Data.([]float32)
		tensor, ok := f.Lookup(a.Name)
		if !ok || tensor.Len() != len(to) {
			return fmt.Errorf("tensor %q is missing or does not have %d values", a.Name, len(to))
		}
		values, err := tensor.Float32s(nil)
		if err != nil {
			return err
		}
		copy(to, values)
	}
	return nil
}

// differences names the settings that differ between two JSON objects, with both values.
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
