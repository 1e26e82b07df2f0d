package token

import (
	"math/rand/v2"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Byte-level tokens are the bytes of the text: nothing is lost.
func FuzzByteLevelComesBack(f *testing.F) {
	for _, text := range hostileTexts() {
		f.Add(text)
	}
	toks := map[string]*Tokenizer{"gpt2": load(f, "testdata/gpt2.json"), "llama3": load(f, "testdata/llama3.json")}
	if t, err := Parse(byteAlphabet()); err == nil {
		toks["bytes"] = t
	} else {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := string(appendValid(nil, text))
		for name, tok := range toks {
			ids := tok.Encode(nil, text)
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Vocab() {
					t.Fatalf("%s: %+q: id %d of %d", name, text, id, tok.Vocab())
				}
			}
			if spellsSpecial(tok, want) {
				continue
			}
			if got := tok.Decode(ids); got != want {
				t.Errorf("%s: %+q came back as %+q", name, text, got)
			}
		}
	})
}

func spellsSpecial(tok *Tokenizer, text string) bool {
	for id, special := range tok.special {
		if special && strings.Contains(text, tok.tokens[id]) {
			return true
		}
	}
	return false
}

// Encode appends, gives the same again, and its ids exist, whatever the text.
func FuzzEncode(f *testing.F) {
	for _, text := range hostileTexts() {
		f.Add(text)
	}
	var toks []*Tokenizer
	for _, kind := range goldenKinds {
		toks = append(toks, load(f, filepath.Join("testdata", kind+".json")))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tok := range toks {
			ids := tok.Encode([]int32{-5}, text)
			if again := tok.Encode(nil, text); ids[0] != -5 || !slices.Equal(ids[1:], again) {
				t.Fatalf("%s: %+q: %d, then %d", goldenKinds[i], text, ids, again)
			}
			if valid := string(appendValid(nil, text)); !slices.Equal(ids[1:], tok.Encode(nil, valid)) {
				t.Errorf("%s: %+q: other ids than those of %+q", goldenKinds[i], text, valid)
			}
			for _, id := range ids[1:] {
				if _, known := tok.Token(id); !known {
					t.Fatalf("%s: %+q: id %d, which no token has", goldenKinds[i], text, id)
				}
			}
			if decoded := tok.Decode(ids[1:]); !utf8.ValidString(decoded) {
				t.Errorf("%s: %+q: decoded to %+q", goldenKinds[i], text, decoded)
			}
		}
	})
}

// A maximal part of a broken sequence is one U+FFFD: the examples of Unicode's
// section 3.9, tables 3-8 to 3-11.
func TestBrokenUTF8(t *testing.T) {
	for _, c := range [][2]string{
		{"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82A", "????????A"},
		{"\xED\xA0\x80\xED\xBF\xBF\xED\xAFA", "????????A"},
		{"\xF4\x91\x92\x93\xFFA\x80\xBFB", "?????A??B"},
		{"\xE1\x80\xE2\xF0\x91\x92\xF1\xBFA", "????A"},
		{"\xF0\x90\x80", "?"}, {"\xF4\x8F\xBF\xC3\xA9", "?é"}, {"é\xE2\x82", "é?"}, {"\uFFFD\xFF", "\uFFFD?"},
	} {
		want := strings.ReplaceAll(c[1], "?", "\uFFFD")
		if got := string(appendValid(nil, c[0])); got != want {
			t.Errorf("%+q: got %+q, want %+q", c[0], got, want)
		}
	}
}

// Both ways to merge make the same of a word: the pairs in order of rank.
func TestLongAndShortWordsMergeAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, kind := range []string{"gpt2", "llama2"} {
		m := load(t, filepath.Join("testdata", kind+".json")).model.pairs
		var w wordScratch
		for range 2000 {
			symbols := make([]int32, 2+r.IntN(120))
			for i := range symbols {
				symbols[i] = int32(r.IntN(len(m.words.words)))
			}
			text := []byte(randomText(r, 1+r.IntN(10)))
			if r.IntN(2) == 0 {
				if symbols = m.appendRunes(nil, text); m.bytes {
					symbols = m.appendBytes(nil, text)
				}
			}
			short, long := slices.Clone(symbols), slices.Clone(symbols)
			short, long = short[:m.mergeShort(short, &w)], long[:m.mergeLong(long, &w)]
			if want := mergeByRule(m, symbols); !slices.Equal(short, want) || !slices.Equal(long, want) {
				t.Fatalf("%s: %d: short %d, long %d, want %d", kind, symbols, short, long, want)
			}
		}
	}
}

// mergeByRule is the definition: as long as some pair merges, the leftmost of
// the lowest rank does.
func mergeByRule(m *bpe, symbols []int32) []int32 {
	symbols = slices.Clone(symbols)
	for {
		best, at := merge{rank: noRank}, 0
		for i := range len(symbols) - 1 {
			if found := m.merges.find(symbols[i], symbols[i+1]); found.rank < best.rank {
				best, at = found, i
			}
		}
		if best.rank == noRank {
			return symbols
		}
		symbols[at] = best.id
		symbols = slices.Delete(symbols, at+1, at+2)
	}
}

// No long text takes long, whatever it repeats: some ten milliseconds, and minutes
// if a step were quadratic. The bound is one against hanging, which a crowded
// machine does not reach. These kinds have every normalizer, splitter, scanner,
// model and decoder between them; a campaign tries all, and a megabyte.
func TestLongTextsTakeLinearTime(t *testing.T) {
	const most = 30 * time.Second
	size, kinds := 1<<18, []string{"wordpiece", "wordpiece-cased", "gpt2", "llama3", "qwen2", "digits",
		"llama2", "metaspace"}
	switch {
	case *campaign > defaultCampaign:
		size, kinds = 1<<20, goldenKinds
	case raceEnabled || testing.Short():
		size = 1 << 14
	}
	for _, kind := range kinds {
		tok := load(t, filepath.Join("testdata", kind+".json"))
		for _, part := range []string{"a", "ab", "the", " ", "\n", "1", "!", "'", "é", "\u0301", "\u0323\u0301", "灯",
			"[CLS", "<mask> ", " <both>", "left ", "word", "<|endoftext", "\xff", "\xe2\x82", " \n",
			"▁", "<0x0A>", "Å"} {
			text := strings.Repeat(part, size/len(part))
			start := time.Now()
			tok.Decode(tok.Encode(nil, text))
			if took := time.Since(start); took > most {
				t.Errorf("%s: %d times %+q took %v", kind, size/len(part), part, took)
			}
		}
	}
}

// Encode allocates nothing once its buffers have grown.
func TestEncodeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools too
	texts := hostileTexts()
	for _, kind := range goldenKinds {
		if kind == "classes" { // the machine of regular expressions takes memory for every match
			continue
		}
		tok := load(t, filepath.Join("testdata", kind+".json"))
		var ids []int32
		allocations := testing.AllocsPerRun(20, func() {
			for _, text := range texts {
				ids = tok.Encode(ids[:0], text)
			}
		})
		if allocations > 0 {
			t.Errorf("%s: %v allocations for %d texts", kind, allocations, len(texts))
		}
	}
}

// One tokenizer serves many goroutines.
func TestConcurrentUse(t *testing.T) {
	tok := load(t, "testdata/llama3.json")
	texts := hostileTexts()
	want := make([][]int32, len(texts))
	for i, text := range texts {
		want[i] = tok.Encode(nil, text)
	}
	done := make(chan int)
	for range 8 {
		go func() {
			wrong := 0
			for i, text := range texts {
				if !slices.Equal(tok.Encode(nil, text), want[i]) {
					wrong++
				}
			}
			done <- wrong
		}()
	}
	for range 8 {
		if wrong := <-done; wrong > 0 {
			t.Errorf("%d texts differ", wrong)
		}
	}
}
