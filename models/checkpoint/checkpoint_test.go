package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/models/safetensors"
)

type state struct{ Step int }

func tensor(name string, values ...float32) safetensors.Array {
	return safetensors.Array{Name: name, Shape: []int{len(values)}, Data: values}
}

// A checkpoint that is read has the state and the tensors that were written. One of another
// training, without a tensor, or with a state that the training refuses is an error with a
// reason and the file's name.
func TestCheckpointIsReadByItsTrainingOnly(t *testing.T) {
	of := Of{Format: "made/1", Config: `{"Steps":5,"Ops":"hull2d"}`, Data: "00ff"}
	path := filepath.Join(t.TempDir(), "made.checkpoint")
	if err := Write(path, of, state{3}, []safetensors.Array{tensor("a", 1, 2), tensor("b", 3)}); err != nil {
		t.Fatal(err)
	}
	two := func() []safetensors.Array { return []safetensors.Array{tensor("a", 0, 0), tensor("b", 0)} }
	all := two()
	var s state
	if err := Read(path, of, &s, func() ([]safetensors.Array, error) {
		if s.Step != 3 {
			t.Errorf("arrays are asked for at step %d", s.Step)
		}
		return all, nil
	}); err != nil || s.Step != 3 || !slices.Equal(all[0].Data.([]float32), []float32{1, 2}) ||
		all[1].Data.([]float32)[0] != 3 {
		t.Errorf("read %+v, %v, %v", s, all, err)
	}
	for _, c := range []struct {
		about  string
		of     Of
		arrays []safetensors.Array
		wrong  error
		want   string
	}{
		{"another format", Of{"made/2", of.Config, of.Data}, two(), nil,
			`"made/1", not made/2: the file is no checkpoint`},
		{"another setting", Of{of.Format, `{"Steps":6,"Ops":"hull2d"}`, of.Data}, two(), nil,
			"other settings: Steps was 5 and is 6"},
		{"two more settings", Of{of.Format, `{"Steps":5,"Ops":"hull2d","B":1,"A":2}`, of.Data}, two(), nil,
			"A was  and is 2, B was  and is 1"},
		{"fewer settings", Of{of.Format, `{"Steps":5}`, of.Data}, two(), nil, "another version of this program"},
		{"settings that are none", Of{of.Format, "5", of.Data}, two(), nil, `it has {"Steps":5`},
		{"other data", Of{of.Format, of.Config, "11"}, two(), nil,
			"other data: its data have SHA-256 00ff, these have 11"},
		{"a tensor that is not there", of, append(two(), tensor("c", 0)), nil, `tensor "c" is missing`},
		{"a longer tensor", of, []safetensors.Array{tensor("a", 0, 0, 0)}, nil,
			`"a" is missing or does not have 3 values`},
		{"a state that cannot be", of, two(), errors.New("step is 3 of 2"), "state: step is 3 of 2"},
	} {
		err := Read(path, c.of, &state{}, func() ([]safetensors.Array, error) { return c.arrays, c.wrong })
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %q", c.about, err, c.want)
		}
	}
	if err := Read(path+"x", of, &state{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
