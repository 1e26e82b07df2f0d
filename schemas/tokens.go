package schemas

// Sequence is one row of a tokens/1 or text/1 message: the input of a language
// model. IDs and Text are views of the message's value or of the decoder's memory:
// valid until the next call of the same Decoder, and no longer than the message. ID
// and the names of FrameKey own their memory.
type Sequence struct {
	FrameKey
	ID     string  // the producer's id, or topic/partition/offset/index
	IDs    []int32 // token ids without padding; nil if IsText
	Text   string
	IsText bool
	Err    *FormatError // why this row cannot be used; nil if it can
}

// TokenResult is the row of table tokens that a model computed for one sequence. It
// owns its memory.
type TokenResult struct {
	ID       string
	Model    string // name of the model
	ModelSHA string // hex SHA-256 of its weights
	Weights  string // form of its matrices: f32, or the approximation bf16
	MaskSHA  string // hex SHA-256 of the frozen masks; empty (null) if attention was dense
	Task     string // embed, logits, generate
	Pooling  string // mean, cls, none

	Normalized bool  // the embedding has length 1
	Truncated  bool  // tokens beyond the model's positions were cut off
	NTokens    int32 // tokens that the model read, special tokens included

	Embedding   []float32 // nil: null
	NextIDs     []int32   // generated tokens; nil: null
	TopIDs      []int32   // the likeliest next tokens, best first; nil: null
	TopLogprobs []float32 // their natural logarithms; nil: null

	TokenizerSHA string  // hex SHA-256 of the tokenizer that made the ids; empty (null) if it is unknown
	Text         *string // NextIDs as text; nil: null

	Stats []AttentionStat // one for each layer and head, if the sequence was audited; else nil
}

// AttentionStat compares one head's sparse attention with dense attention on
// one audited sequence.
type AttentionStat struct {
	Layer, Head int16
	KeptMass    float32 // mean softmax mass of the keys that were read
	Delta       float32 // largest mass that a query lost
	Bound       float32 // 2·B·Delta, the certificate
	Error       float32 // largest measured distance between the outputs for one query
	Ladder      bool    // queries could climb a ladder; if false, Extended and Dense are null
	Extended    int32   // queries that read further blocks
	Dense       int32   // queries that read all keys
}

// bytes estimates the memory that t holds.
func (t *TokenResult) bytes() int64 {
	text := 0
	if t.Text != nil {
		text = len(*t.Text)
	}
	return 256 + int64(len(t.ID)+text) + 4*int64(len(t.Embedding)+len(t.NextIDs)+len(t.TopIDs)+len(t.TopLogprobs)) +
		32*int64(len(t.Stats))
}
