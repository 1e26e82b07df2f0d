package tables

import (
	"strconv"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// Tables of token sequences. A sequence has a row in tokens and none in frames; an
// audited sequence has rows in attention_stats. Both tables are always written if they
// have rows.
const (
	Tokens         = record.Tokens
	AttentionStats = "attention_stats"
)

var (
	tokensTable         = &table{Tokens, tokensRow{}, hasTokens, addTokens}
	attentionStatsTable = &table{AttentionStats, attentionStatsRow{},
		func(r *schemas.Result) bool { return hasTokens(r) && len(r.Tokens.Stats) > 0 }, addAttentionStats}
	sequenceTables = []*table{tokensTable, attentionStatsTable}
)

func hasTokens(r *schemas.Result) bool { return r.Tokens != nil }

// tokensRow is a row of table tokens. The floats of embeddings are split into byte
// planes, which zstd shrinks by a tenth; unsplit they do not shrink.
type tokensRow struct {
	keys
	ID          string    `parquet:"id"`
	Model       string    `parquet:"model,dict"`
	ModelSHA256 string    `parquet:"model_sha256,dict"`
	Weights     string    `parquet:"weights,dict"`
	MaskSHA256  string    `parquet:"mask_sha256,optional,dict"`
	Task        string    `parquet:"task,dict"`
	Pooling     string    `parquet:"pooling,dict"`
	Normalized  bool      `parquet:"normalized"`
	NTokens     int32     `parquet:"n_tokens,delta"`
	Truncated   bool      `parquet:"truncated"`
	Embedding   []float32 `parquet:"embedding,optional,list" parquet-element:",split"`
	NextIDs     []int32   `parquet:"next_ids,optional,list" parquet-element:",delta"`
	TopIDs      []int32   `parquet:"top_ids,optional,list" parquet-element:",delta"`
	TopLogprobs []float32 `parquet:"top_logprobs,optional,list"`

	TokenizerSHA256 string    `parquet:"tokenizer_sha256,optional,dict"`
	Text            string    `parquet:"text,optional"`
	Scores          []float32 `parquet:"scores,optional,list"`
}

type attentionStatsRow struct {
	keys
	ID       string  `parquet:"id"`
	Layer    int16   `parquet:"layer,delta"`
	Head     int16   `parquet:"head,delta"`
	KeptMass float32 `parquet:"kept_mass"`
	Delta    float32 `parquet:"delta"`
	Bound    float32 `parquet:"bound"`
	Error    float32 `parquet:"error"`
	Extended int32   `parquet:"n_extended,optional,delta"`
	Dense    int32   `parquet:"n_dense,optional,delta"`
}

func addTokens(t *tableWriter, r *schemas.Result) {
	s := r.Tokens
	t.begin(1, 256+len(s.ID)+4*(len(s.Embedding)+len(s.NextIDs)+len(s.TopIDs)+len(s.TopLogprobs)))
	addKeys(t, &r.FrameKey)
	t.text(s.ID)
	t.text(s.Model)
	t.text(s.ModelSHA)
	t.text(s.Weights)
	t.textOrNull(s.MaskSHA)
	t.text(s.Task)
	t.text(s.Pooling)
	t.boolean(s.Normalized)
	t.int32(s.NTokens)
	t.boolean(s.Truncated)
	t.embeddings.add(s.Embedding)
	listOrNull(t, s.Embedding, parquet.FloatValue)
	listOrNull(t, s.NextIDs, parquet.Int32Value)
	listOrNull(t, s.TopIDs, parquet.Int32Value)
	listOrNull(t, s.TopLogprobs, parquet.FloatValue)
	t.textOrNull(s.TokenizerSHA)
	if s.Text == nil {
		t.nulls(1)
	} else {
		t.text(*s.Text)
	}
	t.nulls(1) // scores
	t.end(1)
}

func addAttentionStats(t *tableWriter, r *schemas.Result) {
	s := r.Tokens
	t.begin(len(s.Stats), len(s.Stats)*(96+len(s.ID)))
	for i := range s.Stats {
		a := &s.Stats[i]
		addKeys(t, &r.FrameKey)
		t.text(s.ID)
		t.int32(int32(a.Layer))
		t.int32(int32(a.Head))
		t.float32(a.KeptMass)
		t.float32(a.Delta)
		t.float32(a.Bound)
		t.float32(a.Error)
		if a.Ladder {
			t.int32(a.Extended)
			t.int32(a.Dense)
		} else {
			t.nulls(2)
		}
		t.end(1)
	}
}

// listOrNull appends an optional list of required elements; nil is null.
func listOrNull[T int32 | float32](t *tableWriter, v []T, value func(T) parquet.Value) {
	if v == nil {
		t.nulls(1)
		return
	}
	c := &t.columns[t.next]
	if len(v) == 0 { // the list exists and has no element
		c.values = append(c.values, parquet.NullValue().Level(0, c.optional-1, t.next))
	}
	for i, x := range v {
		c.values = append(c.values, value(x).Level(min(i, 1), c.optional, t.next))
	}
	t.bytes += 24 * len(v)
	t.next++
}

// embeddingFile gathers the length of a file's embeddings for its metadata.
type embeddingFile struct {
	dim   int // length of the last embedding; 0: none yet
	mixed bool
}

func (f *embeddingFile) add(v []float32) {
	if v == nil {
		return
	}
	f.mixed = f.mixed || f.dim != 0 && f.dim != len(v)
	f.dim = len(v)
}

// footer returns the key embedding.dim if all embeddings have one length.
func (f *embeddingFile) footer() [][2]string {
	if f.dim == 0 || f.mixed {
		return nil
	}
	return [][2]string{{"embedding.dim", strconv.Itoa(f.dim)}}
}
