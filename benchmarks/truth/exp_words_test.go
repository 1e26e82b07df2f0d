package main

import (
	"slices"
	"strings"
	"testing"
)

// Words that the part to learn from holds often enough have numbers of their own, the end of a
// line among them; empty lines have none, and a word that only the held-out tenth holds is unknown.
func TestWordsOfAText(t *testing.T) {
	raw := strings.Repeat("a b\n \n", 5) + strings.Repeat("c ", 4) + "\n" + "new new\n"
	ids, vocab := wordIDs(raw)
	var want []int32
	for range 5 {
		want = append(want, 1, 2, 3)
	}
	want = append(want, 0, 0, 0, 0, 3, 0, 0, 3)
	if !slices.Equal(ids, want) || vocab != 4 {
		t.Errorf("ids %v of %d, want %v of 4", ids, vocab, want)
	}
}

// The vocabulary does not see the last tenth, which judges.
func TestVocabularyIsOfTheLearnedPart(t *testing.T) {
	raw := strings.Repeat("a ", 90) + strings.Repeat("held ", 9) // the end of the line is the hundredth word
	ids, vocab := wordIDs(raw)
	if vocab != 2 || ids[89] != 1 || ids[90] != 0 || ids[99] != 0 {
		t.Errorf("%d words, ids %v", vocab, ids)
	}
}
