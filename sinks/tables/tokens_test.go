package tables

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"entropipe/schemas"
	"entropipe/sinks/internal/batches"
)

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
	b := batches.Tokens("tokens", 5, 300, 24)
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
	rows := rowsOf[readTokens](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b),
		"tokens/dataset=corpus/topic=tokens/"))
	if len(rows) != len(b.Results) {
		t.Fatalf("%d rows of %d sequences", len(rows), len(b.Results))
	}
	for i, got := range rows {
		s := b.Results[i].Tokens
		want := readTokens{keysOf(&b.Results[i].FrameKey), s.ID, s.Model, s.ModelSHA, s.Weights, nil, s.Task, s.Pooling,
			s.Normalized, s.NTokens, s.Truncated,
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
	b := batches.Tokens("tokens", 0, 100, 4)
	b.Results[0].Tokens.Stats = []schemas.AttentionStat{{Layer: math.MaxInt16, Head: -1},
		{Ladder: true, Extended: 7, Dense: math.MaxInt32}, {Ladder: true}}
	rows := rowsOf[readStats](t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b),
		"attention_stats/dataset=corpus/"))
	var want []readStats
	for i := range b.Results {
		for _, a := range b.Results[i].Tokens.Stats {
			row := readStats{keysOf(&b.Results[i].FrameKey), b.Results[i].Tokens.ID, a.Layer, a.Head, a.KeptMass,
				a.Delta, a.Bound, a.Error, nil, nil}
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
	}{{[]int{8, 8}, "8"}, {[]int{-1, 8}, "8"}, {[]int{8, 9}, ""}, {[]int{8, 9, 8}, ""}, {[]int{-1}, ""},
		{[]int{384}, "384"}} {
		b := batches.Tokens("tokens", 0, 2, 1)
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
	b := batches.Tokens("tokens", 0, 40, 16)
	f := openBytes(t, fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "tokens/"))
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for i := range b.Results {
		low, high = min(low, slices.Min(b.Results[i].Tokens.Embedding)),
			max(high, slices.Max(b.Results[i].Tokens.Embedding))
	}
	leaf, _ := f.Schema().Lookup("embedding", "list", "element")
	c := &f.Metadata().RowGroups[0].Columns[leaf.ColumnIndex]
	if c.MetaData.Codec != format.Zstd || c.OffsetIndexOffset == 0 ||
		!slices.Contains(c.MetaData.Encoding, format.ByteStreamSplit) {
		t.Errorf("embeddings: %v, %v, offset index at %d", c.MetaData.Codec, c.MetaData.Encoding, c.OffsetIndexOffset)
	}
	index := f.ColumnIndexes()[leaf.ColumnIndex]
	if got := [2]float32{parquet.Float.Value(index.MinValues[0]).Float(),
		parquet.Float.Value(index.MaxValues[0]).Float()}; got != [2]float32{low, high} {
		t.Errorf("the index says %v, the embeddings are from %v to %v", got, low, high)
	}
}
