package sinks

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"entropipe/schemas"
)

// syntheticTokens makes a batch of sequences: four a message, of which every
// fifth is refused, by itself or with its whole message, and every seventh
// offset is a hole. Embeddings have dim numbers and length 1.
func syntheticTokens(topic string, start int64, records, dim int) *schemas.Batch {
	rng := rand.New(rand.NewPCG(uint64(start), uint64(dim)))
	b := &schemas.Batch{Topic: topic, Start: start, End: start + int64(records)}
	for o := b.Start; o < b.End; o++ {
		if o%7 == 3 {
			b.Holes++
			continue
		}
		b.Messages++
		b.Last = &schemas.RecordID{Offset: o, Timestamp: 1700000000000 + o, CRC32C: uint32(o)}
		if o%5 == 2 {
			b.Rejects = append(b.Rejects, syntheticReject(b, o))
			continue
		}
		for i := range int32(4) {
			if (o+int64(i))%5 == 0 {
				reject := syntheticReject(b, o)
				reject.Index, reject.Stage, reject.Reason = i, schemas.StageModel, schemas.ReasonTooLong
				b.Rejects = append(b.Rejects, reject)
				continue
			}
			b.Results = append(b.Results, schemas.Result{FrameKey: schemas.FrameKey{Dataset: "corpus", Sequence: "wiki", FrameID: o*4 + int64(i), TimeNs: 1700000000123456789 + o,
				Topic: topic, Offset: o, Index: i}, Tokens: syntheticSequence(rng, fmt.Sprintf("doc-%d-%d", o, i), dim)})
		}
	}
	return b
}

func syntheticSequence(rng *rand.Rand, id string, dim int) *schemas.TokenResult {
	r := &schemas.TokenResult{ID: id, Model: "minilm", ModelSHA: strings.Repeat("0a", 32), Weights: "bf16", Task: "embed", Pooling: "mean", Normalized: true, NTokens: 1 + rng.Int32N(512), Embedding: make([]float32, dim)}
	norm := 0.0
	for i := range r.Embedding {
		r.Embedding[i] = float32(rng.NormFloat64())
		norm += float64(r.Embedding[i]) * float64(r.Embedding[i])
	}
	for i := range r.Embedding {
		r.Embedding[i] /= float32(math.Sqrt(norm))
	}
	if rng.IntN(4) == 0 {
		r.MaskSHA, r.Truncated = strings.Repeat("0b", 32), true
		for h := range int16(6) {
			r.Stats = append(r.Stats, schemas.AttentionStat{Layer: h / 2, Head: h, KeptMass: rng.Float32(), Delta: rng.Float32(), Bound: 2, Error: rng.Float32()})
		}
	}
	return r
}

type readTokens struct {
	keys
	ID          string    `parquet:"id"`
	Model       string    `parquet:"model"`
	ModelSHA256 string    `parquet:"model_sha256"`
	Weights     string    `parquet:"weights"`
	MaskSHA256  *string   `parquet:"mask_sha256"`
	Task        string    `parquet:"task"`
	Pooling     string    `parquet:"pooling"`
	Normalized  bool      `parquet:"normalized"`
	NTokens     int32     `parquet:"n_tokens"`
	Truncated   bool      `parquet:"truncated"`
	Embedding   []float32 `parquet:"embedding,optional,list"`
	NextIDs     []int32   `parquet:"next_ids,optional,list"`
	TopIDs      []int32   `parquet:"top_ids,optional,list"`
	TopLogprobs []float32 `parquet:"top_logprobs,optional,list"`
}

// A list that is null is not the list without an element.
func TestTokensRoundTrip(t *testing.T) {
	b := syntheticTokens("tokens", 5, 300, 24)
	for i := range b.Results {
		s := b.Results[i].Tokens
		switch i % 5 {
		case 1:
			s.Task, s.Pooling, s.Normalized, s.Embedding = "logits", "none", false, nil
			s.TopIDs, s.TopLogprobs = []int32{7, 0, int32(i)}, []float32{-0.25, -1, float32(math.Inf(-1))}
		case 2:
			s.Task, s.Embedding, s.NextIDs = "generate", nil, []int32{}
		case 3:
			s.Task, s.NextIDs = "generate", []int32{int32(i), math.MaxInt32}
		}
	}
	rows := rowsOf[readTokens](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "tokens/dataset=corpus/topic=tokens/"))
	if len(rows) != len(b.Results) {
		t.Fatalf("%d rows of %d sequences", len(rows), len(b.Results))
	}
	for i, got := range rows {
		s := b.Results[i].Tokens
		want := readTokens{keysOf(&b.Results[i].FrameKey), s.ID, s.Model, s.ModelSHA, s.Weights, nil, s.Task, s.Pooling, s.Normalized, s.NTokens, s.Truncated,
			s.Embedding, s.NextIDs, s.TopIDs, s.TopLogprobs}
		if s.MaskSHA != "" {
			want.MaskSHA256 = &s.MaskSHA
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(readTokens{}, keys{})); diff != "" {
			t.Fatalf("row %d: %s", i, diff)
		}
	}
}

type readStats struct {
	keys
	ID       string  `parquet:"id"`
	Layer    int16   `parquet:"layer"`
	Head     int16   `parquet:"head"`
	KeptMass float32 `parquet:"kept_mass"`
	Delta    float32 `parquet:"delta"`
	Bound    float32 `parquet:"bound"`
	Error    float32 `parquet:"error"`
	Extended *int32  `parquet:"n_extended"`
	Dense    *int32  `parquet:"n_dense"`
}

// A sequence that was not audited has no row, one that was has one a head.
func TestAttentionStatsRoundTrip(t *testing.T) {
	b := syntheticTokens("tokens", 0, 100, 4)
	b.Results[0].Tokens.Stats = []schemas.AttentionStat{{Layer: math.MaxInt16, Head: -1}, {Ladder: true, Extended: 7, Dense: math.MaxInt32}, {Ladder: true}}
	rows := rowsOf[readStats](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "attention_stats/dataset=corpus/"))
	var want []readStats
	for i := range b.Results {
		for _, a := range b.Results[i].Tokens.Stats {
			row := readStats{keysOf(&b.Results[i].FrameKey), b.Results[i].Tokens.ID, a.Layer, a.Head, a.KeptMass, a.Delta, a.Bound, a.Error, nil, nil}
			if a.Ladder {
				row.Extended, row.Dense = &a.Extended, &a.Dense
			}
			want = append(want, row)
		}
	}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(readStats{}, keys{})); diff != "" {
		t.Error(diff)
	}
}

// The footer names the length of the embeddings, if there is one.
func TestEmbeddingDim(t *testing.T) {
	e := newEncoder(testConfig())
	for _, c := range []struct {
		dims []int // -1: null
		want string
	}{{[]int{8, 8}, "8"}, {[]int{-1, 8}, "8"}, {[]int{8, 9}, ""}, {[]int{8, 9, 8}, ""}, {[]int{-1}, ""}, {[]int{384}, "384"}} {
		b := syntheticTokens("tokens", 0, 2, 1)
		b.Results = b.Results[:len(c.dims)]
		for i, dim := range c.dims {
			if b.Results[i].Tokens.Embedding = nil; dim >= 0 {
				b.Results[i].Tokens.Embedding = make([]float32, dim)
			}
		}
		if got, _ := openBytes(t, fileOf(t, encodeAll(t, e, b), "tokens/")).Lookup("embedding.dim"); got != c.want {
			t.Errorf("embeddings of %v: embedding.dim is %q, want %q", c.dims, got, c.want)
		}
	}
}

// Embeddings are split into planes of bytes, and their bounds in the index are
// those of their numbers: skipped ones would be zeros, and wrong.
func TestTokenStorage(t *testing.T) {
	b := syntheticTokens("tokens", 0, 40, 16)
	f := openBytes(t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "tokens/"))
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for i := range b.Results {
		low, high = min(low, slices.Min(b.Results[i].Tokens.Embedding)), max(high, slices.Max(b.Results[i].Tokens.Embedding))
	}
	leaf, _ := f.Schema().Lookup("embedding", "list", "element")
	c := &f.Metadata().RowGroups[0].Columns[leaf.ColumnIndex]
	if c.MetaData.Codec != format.Zstd || c.OffsetIndexOffset == 0 || !slices.Contains(c.MetaData.Encoding, format.ByteStreamSplit) {
		t.Errorf("embeddings: %v, %v, offset index at %d", c.MetaData.Codec, c.MetaData.Encoding, c.OffsetIndexOffset)
	}
	index := f.ColumnIndexes()[leaf.ColumnIndex]
	if got := [2]float32{parquet.Float.Value(index.MinValues[0]).Float(), parquet.Float.Value(index.MaxValues[0]).Float()}; got != [2]float32{low, high} {
		t.Errorf("the index says %v, the embeddings are from %v to %v", got, low, high)
	}
}

// A message of drawings, one of sequences and one of both kinds of rejects make
// tables side by side: frames has no row of a sequence, tokens none of a frame,
// and verify counts each once.
func TestSequencesAreCommitted(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	o, err := Open(ctx, memStore(d), Config{Tables: []string{"hulls", "tokens", "attention_stats"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, "tokens", schemas.TopicID{}, map[int32]int64{0: 0}); err != nil {
		t.Fatal(err)
	}
	want := Counts{}
	for start := int64(0); start < 120; start += 40 {
		if pos, err := o.Resume(ctx, "tokens", 0); err != nil || pos.Next != start {
			t.Fatalf("resumed at %+v (%v), want %d", pos, err, start)
		}
		b := syntheticTokens("tokens", start, 40, 8)
		if start == 40 {
			b = synthetic(batchSpec{topic: "tokens", start: start, records: 20, frames: 2, points: 5})
			more := syntheticTokens("tokens", start+20, 20, 8)
			b.End, b.Messages, b.Holes, b.Last = more.End, b.Messages+more.Messages, b.Holes+more.Holes, more.Last
			b.Results, b.Rejects = append(b.Results, more.Results...), append(b.Rejects, more.Rejects...)
		}
		done, err := o.Commit(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		c := countsOf(b)
		want.Messages, want.Frames, want.Sequences, want.Rejects, want.Holes = want.Messages+c.Messages, want.Frames+c.Frames, want.Sequences+c.Sequences, want.Rejects+c.Rejects, want.Holes+c.Holes
		for _, table := range done.Tables {
			if table.Table == tableTokens && table.Rows != c.Sequences || table.Table == tableFrames && (table.Rows != c.Frames || c.Frames == 0) {
				t.Errorf("commit at %d: %+v of %+v", start, table, c)
			}
		}
	}
	if want.Frames == 0 || want.Sequences == 0 {
		t.Fatalf("%+v: nothing was tested", want)
	}
	r, err := Verify(ctx, memStore(d), VerifyOptions{})
	if err != nil || !r.OK || len(r.Partitions) != 1 || r.Partitions[0].Counts != want {
		t.Errorf("%v\n%v\nwant %+v", err, r, want)
	}
	s, err := Describe(ctx, memStore(d))
	if err != nil || s.First == nil || !strings.Contains(s.String(), fmt.Sprintf("%d frames, %d sequences", want.Frames, want.Sequences)) || !strings.Contains(s.String(), "frames and sequences from") {
		t.Errorf("%v\n%v", err, s)
	}
}

// A sequence that is in no file is missed.
func TestVerifyMissesSequences(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*schemas.Batch)
	}{
		{"a sequence less", func(b *schemas.Batch) { b.Results = b.Results[1:] }},
		{"a sequence twice", func(b *schemas.Batch) { b.Results[1].Index = b.Results[0].Index }},
		{"a message less", func(b *schemas.Batch) { b.Results = b.Results[len(b.Results)-8:] }},
	} {
		b := syntheticTokens("tokens", 0, 20, 8)
		m := manifestJob{&Manifest{Topic: "tokens", End: 20, Counts: countsOf(b)}, c.name, false}
		var rejects []rowKey
		for i := range b.Rejects {
			rejects = append(rejects, rowKey{b.Rejects[i].Offset, b.Rejects[i].Index})
		}
		account := func() *Report {
			v := &verifier{reporter: reporter{Report: newReport()}}
			var rows []rowKey
			for i := range b.Results {
				rows = append(rows, rowKey{b.Results[i].Offset, b.Results[i].Index})
			}
			v.accounts(m, nil, rows, slices.Clone(rejects))
			return v.sorted()
		}
		if r := account(); !r.OK {
			t.Fatalf("before: %v", r)
		}
		if c.change(b); account().OK {
			t.Errorf("%s: no fault", c.name)
		}
	}
}

// countsOf says what becomes of the records of b.
func countsOf(b *schemas.Batch) Counts {
	a := attempt{m: new(Manifest), seen: -1, last: rowKey{-1, -1}}
	a.complete(b)
	return a.m.Counts
}
