package train

import (
	"io/fs"
	"os"
	"testing"

	"entropipe/models"
	"entropipe/models/mat"
	"entropipe/sparse/model"
	"entropipe/sparse/token"
)

// The shipped language model predicts the text that it has not seen, through
// its own tokenizer, as its card says.
func TestShippedModel(t *testing.T) {
	data, err := os.ReadFile(testData(t, "text", "tinyshakespeare", "input.txt"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Open("builtin:bytes")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := models.Transformer("builtin:bytes")
	if err != nil {
		t.Fatal(err)
	}
	file, err := fs.ReadFile(dir, tokenizerFile)
	if err != nil {
		t.Fatal(err)
	}
	k, err := token.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	n := m.Config().MaxPositions
	if n != 512 || m.Config().Vocab != k.Vocab() {
		t.Errorf("%d positions, a vocabulary of %d and a tokenizer of %d", n, m.Config().Vocab, k.Vocab())
	}
	ids := k.Encode(nil, string(data[len(data)-len(data)/10:]))
	s := m.NewSession(2)
	logits := mat.Of(n, k.Vocab(), make([]float32, n*k.Vocab()))
	loss, count := 0.0, 0
	for at := 0; at+n < len(ids); at += 16 * n {
		hidden, err := s.Hidden(model.Batch{IDs: ids[at : at+n], Starts: []int32{0, int32(n)}}, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Logits(logits, hidden)
		for i := range n {
			l, _ := CrossEntropy(logits.Row(i), ids[at+i+1])
			loss, count = loss+l, count+1
		}
	}
	if loss /= float64(count); loss > 1.75 {
		t.Errorf("held-out loss %.4f nats of %d bytes, want less than 1.75", loss, count)
	} else {
		t.Logf("held-out loss %.4f nats of %d bytes", loss, count)
	}
}
