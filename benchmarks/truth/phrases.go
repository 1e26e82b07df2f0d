package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/model"
	"entropipe/sparse/token"
)

// phrase is a phrase with its label, true for a positive sentiment.
type phrase struct {
	ids   []int32
	label bool
}

// phraseLab holds the model and the phrases in groups, which cells share.
type phraseLab struct {
	how    effort
	lab    minilmLab
	groups map[phraseSize][][]phrase
	fixed  map[string][][]float32 // embeddings of methods that draw nothing, by method, sparsity and size
}

// open reads what a size asks for and returns its groups.
func (l *phraseLab) open(size phraseSize) ([][]phrase, error) {
	if g := l.groups[size]; g != nil {
		return g, nil
	}
	var groups [][]phrase
	var err error
	if l.how == quick {
		groups, err = l.invented()
	} else {
		groups, err = l.read(size)
	}
	if err != nil {
		return nil, err
	}
	if l.groups == nil {
		l.groups, l.fixed = map[phraseSize][][]phrase{}, map[string][][]float32{}
	}
	l.groups[size] = groups
	return groups, nil
}

// invented makes phrases of the articles of the small encoder: their label is their topic's.
func (l *phraseLab) invented() (groups [][]phrase, err error) {
	l.lab.how = quick
	if err := l.lab.open(); err != nil {
		return nil, err
	}
	for _, article := range l.lab.articles {
		ids := append([]int32{l.lab.ends[0]}, article[:20]...)
		groups = append(groups, []phrase{{append(ids, l.lab.ends[1]), slices.Max(article) >= 28}})
	}
	return groups, nil
}

// read reads the phrases of the file.
func (l *phraseLab) read(size phraseSize) ([][]phrase, error) {
	path, err := rig.TestData("text", "sst2", "dev.tsv")
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines, labels, err := sentencesOf(string(raw), size.words)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	dir := os.Getenv("ENTROPIPE_MINILM")
	if dir == "" {
		return nil, errors.New("ENTROPIPE_MINILM names no folder of the model; .ci/minilm installs it and prints it")
	}
	tokenizer, err := token.Open(dir)
	if err != nil {
		return nil, err
	}
	if l.lab.model == nil {
		if l.lab.model, err = model.Load(dir); err != nil {
			return nil, err
		}
	}
	var groups [][]phrase
	count := 0
	for _, members := range sharing(lines, 4) {
		if size.most > 0 && count >= size.most {
			break
		}
		var group []phrase
		for _, i := range members {
			ids := tokenizer.Encode(nil, lines[i])
			if len(ids) > longestPhrase {
				return nil, fmt.Errorf("%s: a phrase of %d tokens, more than %d", path, len(ids), longestPhrase)
			}
			l.lab.ends = [2]int32{ids[0], ids[len(ids)-1]}
			group = append(group, phrase{ids, labels[i]})
		}
		groups, count = append(groups, group), count+len(group)
	}
	return groups, nil
}

// embedAll is embed on all processors. o must allow calls from several goroutines.
func (l *minilmLab) embedAll(sequences [][]int32, o model.Options) ([][]float32, error) {
	workers := runtime.GOMAXPROCS(0)
	parts, faults := make([][][]float32, workers), make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			parts[w], faults[w] = l.embed(sequences[w*len(sequences)/workers:(w+1)*len(sequences)/workers], o)
		})
	}
	group.Wait()
	return slices.Concat(parts...), errors.Join(faults...)
}

// sentencesOf reads lines of a sentence, a tab, and 0 or 1, behind a line with the columns' names. It
// leaves out those with fewer words.
func sentencesOf(file string, words int) (sentences []string, labels []bool, err error) {
	for n, line := range strings.Split(strings.TrimSpace(file), "\n") {
		sentence, label, ok := strings.Cut(strings.TrimRight(line, "\r"), "\t")
		if n == 0 && label == "label" {
			continue
		}
		if !ok || label != "0" && label != "1" {
			return nil, nil, fmt.Errorf("line %d: want a sentence, a tab, and 0 or 1, not %q", n+1, line)
		}
		if len(strings.Fields(sentence)) >= words {
			sentences, labels = append(sentences, strings.TrimSpace(sentence)), append(labels, label == "1")
		}
	}
	return sentences, labels, nil
}

// sharing returns groups of lines, joined by runs of words that two of them share, in the order of
// their first lines.
func sharing(lines []string, run int) (groups [][]int) {
	parent, first := make([]int, len(lines)), map[string]int{}
	root := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for i, line := range lines {
		parent[i] = i
		words := strings.Fields(line)
		for k := range max(len(words)-run+1, 0) {
			key := strings.Join(words[k:k+run], " ")
			if j, there := first[key]; there {
				a, b := root(i), root(j)
				parent[max(a, b)] = min(a, b)
			} else {
				first[key] = i
			}
		}
	}
	of := map[int]int{}
	for i := range lines {
		r := root(i)
		at, there := of[r]
		if !there {
			at = len(groups)
			of[r] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

// calibrating is the share of the groups that calibrate: one in so many.
const calibrating = 7

// phraseSplit gives every phrase, in the order of the groups, the number of its fold, or -1 if
// it calibrates.
func phraseSplit(groups [][]phrase, folds int, seed uint64) (fold []int) {
	of := make([]int, len(groups))
	for place, g := range rand.New(rand.NewPCG(seed, 26)).Perm(len(groups)) {
		if of[g] = place % folds; place < len(groups)/calibrating {
			of[g] = -1
		}
	}
	for g, group := range groups {
		for range group {
			fold = append(fold, of[g])
		}
	}
	return fold
}
