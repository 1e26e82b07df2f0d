package chaos

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Row is one row of table tokens: whose it is, and a digest of all its columns.
type Row struct {
	ID     string
	Digest [16]byte
}

// TokenRows are the rows of table tokens by place and index; more than one where
// a sequence is there twice.
type TokenRows map[Place]map[int32][]Row

// ReadTokens reads table tokens of one topic below out. It needs some hundred
// bytes of memory a row.
func ReadTokens(out, topic string) (rows TokenRows, files int, err error) {
	rows = TokenRows{}
	err = filepath.WalkDir(filepath.Join(out, "tokens"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" ||
			!strings.Contains(path, "topic="+topic+string(filepath.Separator)) {
			return err
		}
		files++
		if err := rows.read(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no row yet
	}
	return rows, files, err
}

func (t TokenRows) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	var columns [4]int
	for i, name := range append(keyColumns[:3:3], "id") {
		leaf, ok := file.Schema().Lookup(name)
		if !ok {
			return fmt.Errorf("no column %s", name)
		}
		columns[i] = leaf.ColumnIndex
	}
	for _, group := range file.RowGroups() {
		if err := t.readGroup(group, columns); err != nil {
			return err
		}
	}
	return nil
}

func (t TokenRows) readGroup(group parquet.RowGroup, columns [4]int) error {
	rows := group.Rows()
	defer rows.Close()
	buf := make([]parquet.Row, 64)
	for {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			t.add(row, columns)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add adds a row. Its columns are those of partition, offset, index and id.
func (t TokenRows) add(row parquet.Row, columns [4]int) {
	var place Place
	var index int32
	var r Row
	hash := sha256.New()
	var word []byte
	for _, v := range row {
		switch v.Column() {
		case columns[0]:
			place.Partition = v.Int32()
		case columns[1]:
			place.Offset = v.Int64()
		case columns[2]:
			index = v.Int32()
		case columns[3]:
			r.ID = string(v.ByteArray())
		}
		word = append(word[:0], byte(v.Column()), byte(v.RepetitionLevel()), byte(v.DefinitionLevel()))
		at := len(word)
		word = v.AppendBytes(append(word, 0, 0, 0, 0))
		binary.LittleEndian.PutUint32(word[at:], uint32(len(word)-at-4))
		hash.Write(word)
	}
	copy(r.Digest[:], hash.Sum(nil))
	if t[place] == nil {
		t[place] = map[int32][]Row{}
	}
	t[place][index] = append(t[place][index], r)
}

// TokenVerdict counts what JudgeTokens found of sequences.
type TokenVerdict struct {
	Sequences, Missing, Doubled, Stray, Differ int64
	examples                                   []string
}

// OK tells whether every sequence is there once, as it has to be.
func (v *TokenVerdict) OK() bool { return v.Missing+v.Doubled+v.Stray+v.Differ == 0 }

// String returns the counts, and a few examples of every fault.
func (v *TokenVerdict) String() string {
	s := fmt.Sprintf("sequences %d, missing %d, doubled %d, stray %d, different %d", v.Sequences, v.Missing,
		v.Doubled, v.Stray, v.Differ)
	return strings.Join(append([]string{s}, v.examples...), "\n  ")
}

func (v *TokenVerdict) fault(count *int64, format string, args ...any) {
	if *count++; *count <= 5 {
		v.examples = append(v.examples, fmt.Sprintf(format, args...))
	}
}

// JudgeTokens compares the rows of a disturbed run with those of an undisturbed
// one over the same log, in which the sequences id(0) to id(n-1) stand once.
func JudgeTokens(got, want TokenRows, n int64, id func(int64) string) *TokenVerdict {
	v := &TokenVerdict{Sequences: n}
	seen := make(map[string]int, n)
	for _, place := range slices.SortedFunc(maps.Keys(got), comparePlaces) {
		for index, rows := range got[place] {
			seen[rows[0].ID] += len(rows)
			right := want[place][index]
			if len(right) != 1 || right[0].Digest != rows[0].Digest {
				v.fault(&v.Differ, "different: %d@%d index %d (%s)", place.Partition, place.Offset, index, rows[0].ID)
			}
		}
	}
	for i := range n {
		switch times := seen[id(i)]; {
		case times == 0:
			v.fault(&v.Missing, "missing: %s", id(i))
		case times > 1:
			v.fault(&v.Doubled, "doubled: %s is there %d times", id(i), times)
		}
		delete(seen, id(i))
	}
	for _, stray := range slices.Sorted(maps.Keys(seen)) {
		v.fault(&v.Stray, "stray: %q was not sent", stray)
	}
	return v
}
