package schemas

// Sequence is one row of a tokens/1 or text/1 message: what a language model
// reads at once. IDs and Text are views of the message's value or of the
// decoder's memory: valid until the next call of the same Decoder, and no
// longer than the message. The names and ID own their memory.
type Sequence struct {
	FrameKey
	ID     string  // as the producer said, else topic/partition/offset/index
	IDs    []int32 // of tokens, without padding; nil of a text
	Text   string
	IsText bool
	// Err says why this row alone cannot be used; nil: it can.
	Err *FormatError
}

// TokenResult is what a model made of one sequence.
type TokenResult struct {
	ID       string
	Model    string // name
	ModelSHA string // hex SHA-256 of its weights
	Weights  string // form of its matrices: f32, or bf16, an approximation
	MaskSHA  string // of the frozen masks; empty: null, attention was dense
	Task     string // embed, logits, generate
	Pooling  string // mean, cls, none

	Normalized bool  // the embedding has length 1
	Truncated  bool  // tokens beyond the model's positions were cut off
	NTokens    int32 // that the model read, special tokens included

	Embedding   []float32 // nil: null
	NextIDs     []int32   // generated; nil: null
	TopIDs      []int32   // the likeliest next tokens, best first; nil: null
	TopLogprobs []float32 // their natural logarithms; nil: null

	TokenizerSHA string  // hex SHA-256 of the tokenizer that made the ids; empty: null, it is not known
	Text         *string // NextIDs as text; nil: null

	Stats []AttentionStat // of an audited sequence, by layer and head
}

// AttentionStat compares one head's sparse attention with dense attention on
// one audited sequence.
type AttentionStat struct {
	Layer, Head int16
	KeptMass    float32 // mean softmax mass of the keys that were read
	Delta       float32 // largest mass that a query lost
	Bound       float32 // 2·B·Delta, the certificate
	Error       float32 // largest distance that was measured
	Ladder      bool    // rows might climb; else the numbers of those that did are null
	Extended    int32   // queries that read further blocks
	Dense       int32   // queries that read all keys
}

// bytes estimates the memory that t holds.
func (t *TokenResult) bytes() int64 {
	text := 0
	if t.Text != nil {
		text = len(*t.Text)
	}
	return 256 + int64(len(t.ID)+text) + 4*int64(len(t.Embedding)+len(t.NextIDs)+len(t.TopIDs)+len(t.TopLogprobs)) + 32*int64(len(t.Stats))
}
