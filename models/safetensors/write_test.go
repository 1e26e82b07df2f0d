package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheSameContentIsTheSameBytes(t *testing.T) {
	var a, b bytes.Buffer
	arrays := every()
	metadata := map[string]string{"b": "2", "a": "1", "c": "3"}
	if err := Write(&a, metadata, arrays); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(arrays)
	if err := Write(&b, metadata, arrays); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the order of the arrays shows in the file")
	}
	if n := binary.LittleEndian.Uint64(a.Bytes()); n%8 != 0 {
		t.Errorf("a header of %d bytes leaves the data unaligned", n)
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	f := []float32{1, 2}
	for _, c := range []struct {
		metadata map[string]string
		arrays   []Array
		want     string
	}{
		{nil, []Array{{"a", "", []int{3}, f}}, "2 values are not of shape [3]"},
		{nil, []Array{{"a", "", []int{-1, -2}, f}}, "cannot be written"},
		{nil, []Array{{"a", "", []int{math.MaxInt, math.MaxInt}, f}}, "not of shape"},
		{nil, []Array{{"a", "", make([]int, 65), []float32{}}}, "cannot be written"},
		{nil, []Array{{"a", F64, []int{2}, f}}, "are not F64"},
		{nil, []Array{{"a", F64, []int{2}, make([]byte, 15)}}, "no whole number of F64"},
		{nil, []Array{{"a", "F31", []int{2}, f}}, `no type is called "F31"`},
		{nil, []Array{{"a", "", []int{2}, []int{1, 2}}}, "type []int cannot"},
		{nil, []Array{{"a", "", []int{2}, nil}}, "cannot be written"},
		{nil, []Array{{"a", "", []int{2}, f}, {"a", "", []int{2}, f}}, `two tensors are called "a"`},
		{nil, []Array{{"\xff", "", []int{2}, f}}, `no tensor can be called "\xff"`},
		{nil, []Array{{"__metadata__", "", []int{2}, f}}, "no tensor can be called"},
		{map[string]string{"a": "\xff"}, nil, "is not text"},
	} {
		var b bytes.Buffer
		if err := Write(&b, c.metadata, c.arrays); err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
			t.Errorf("%v: %v and %d bytes, want %q and none", c.arrays, err, b.Len(), c.want)
		}
	}
}

// A file is whole or absent: a failed write leaves the old one and nothing else.
func TestAFailedWriteLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	if err := WriteFile(path, nil, every()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, nil, []Array{{"a", "", []int{3}, []float32{1}}}); err == nil {
		t.Error("a wrong shape was written")
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file has changed; %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if err := WriteFile(filepath.Join(dir, "no", "m.safetensors"), nil, nil); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}
