package main

import (
	"slices"
	"testing"

	"entropipe/sparse/train"
)

// drawn calls check for some puzzles of a task of 64 and 128 tokens.
func drawn(t *testing.T, name string, check func(t *testing.T, p *puzzle)) {
	k := slices.IndexFunc(tasks, func(t task) bool { return t.name == name })
	for _, length := range []int{64, 128} {
		_, held, err := tasks[k].puzzles(400, length, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range held {
			if check(t, p); t.Failed() {
				t.Fatalf("%d tokens, seed 5: %q asks %v", length, bytesOf(p.ids), p.targets)
			}
		}
	}
}

func bytesOf(ids []int32) string {
	b := make([]byte, len(ids))
	for i, id := range ids {
		b[i] = byte(id)
	}
	return string(b)
}

// The first half has one symbol of each set, and each set that stands in the
// second is asked for it.
func TestRecall(t *testing.T) {
	drawn(t, "recall", func(t *testing.T, p *puzzle) {
		n, symbol := len(p.ids), map[int32]int32{}
		for i, id := range p.ids[:n/2] {
			if p.targets[i] != train.NoTarget {
				t.Errorf("token %d: %d is asked", i, p.targets[i])
			}
			if id == filler {
				continue
			}
			set := (id - firstSymbol) / symbols
			if _, twice := symbol[set]; twice || id < firstSymbol || set >= sets {
				t.Errorf("token %d: set %d has two symbols, or there is none such", i, set)
			}
			symbol[set] = id
		}
		for i := n / 2; i < n; i++ {
			want, known := symbol[p.ids[i]-firstSet]
			if !known || p.targets[i] != want || p.ids[i-int(p.back[i])] != want {
				t.Errorf("token %d: %d is asked of set %d, its symbol is %d", i, p.targets[i], p.ids[i]-firstSet, want)
			}
		}
		if len(symbol) != sets {
			t.Errorf("symbols of %d sets", len(symbol))
		}
	})
}

// Brackets are balanced, at most so deep, and before each that closes its kind is
// asked.
func TestBrackets(t *testing.T) {
	pair := map[int32]int32{'(': ')', '[': ']', '{': '}'}
	drawn(t, "brackets", func(t *testing.T, p *puzzle) {
		var open []int
		for i, id := range p.ids {
			if pair[id] != 0 {
				open = append(open, i)
			} else {
				from := open[len(open)-1]
				if id != pair[p.ids[from]] || p.targets[i-1] != id || i-1-int(p.back[i-1]) != from {
					t.Errorf("token %d: %c after %d is asked, %c opened at %d", i, p.targets[i-1],
						p.back[i-1], p.ids[from], from)
				}
				open = open[:len(open)-1]
			}
			if closes := i+1 < len(p.ids) && pair[p.ids[i+1]] == 0; closes != (p.targets[i] != train.NoTarget) ||
				len(open) > deepest {
				t.Errorf("token %d: asked %d, depth %d", i, p.targets[i], len(open))
			}
		}
		if len(open) > 0 {
			t.Errorf("%d brackets stay open", len(open))
		}
	})
}

// Words of brackets are drawn alike: of two steps a side there are two words, of
// three five (Catalan's numbers).
func TestBracketsAreCounted(t *testing.T) {
	// Of twelve steps one of the 132 words is six deep.
	for steps, want := range []float64{1, 0, 1, 0, 2, 0, 5, 0, 14, 0, 42, 0, 131} {
		if got := endings(steps)[steps][0]; got != want {
			t.Errorf("%d steps: %v words, want %v", steps, got, want)
		}
	}
}

// Expressions have the values that a stack machine finds, which counts arguments
// instead of following a tree.
func TestListOps(t *testing.T) {
	drawn(t, "listops", func(t *testing.T, p *puzzle) {
		type frame struct {
			operator byte
			from     int
			counts   [10]int
		}
		stack := []frame{{}}
		for i, id := range p.ids {
			top := &stack[len(stack)-1]
			asked := p.targets[i]
			switch b := byte(id); {
			case b == '[':
				stack = append(stack, frame{from: i})
			case b >= '0' && b <= '9':
				top.counts[b-'0']++
			case b == ']':
				value := counted(top.operator, top.counts)
				if asked != int32('0'+value) || i-int(p.back[i]) != top.from {
					t.Errorf("token %d: %d is asked, the value is %d", i, asked, value)
				}
				stack = stack[:len(stack)-1]
				stack[len(stack)-1].counts[value]++
				asked = train.NoTarget
			default:
				top.operator = b
			}
			if asked != train.NoTarget || len(stack) > deepestExpression+1 {
				t.Errorf("token %d: asked %d, depth %d", i, asked, len(stack)-1)
			}
		}
		if len(stack) != 1 {
			t.Error("not one whole expression")
		}
	})
}

// counted is an operator's value of so many of each digit.
func counted(operator byte, counts [10]int) int {
	number, sum := 0, 0
	low, high := -1, -1
	for digit, count := range counts {
		number, sum = number+count, sum+digit*count
		if count > 0 {
			if high = digit; low < 0 {
				low = digit
			}
		}
	}
	switch operator {
	case 'v':
		return low
	case '^':
		return high
	case '+':
		return sum % 10
	}
	for digit, before := 0, 0; ; digit++ {
		if before += counts[digit]; before > number/2 {
			return digit
		}
	}
}

// The same seed gives the same puzzles, another gives others, and what is held out
// is not among what is learned.
func TestPuzzles(t *testing.T) {
	for k := range tasks {
		one, held, err := tasks[k].puzzles(300, 64, 7)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := tasks[k].puzzles(300, 64, 7)
		if err != nil {
			t.Fatal(err)
		}
		other, _, err := tasks[k].puzzles(300, 64, 8)
		if err != nil {
			t.Fatal(err)
		}
		if one.SHA256 != again.SHA256 || one.SHA256 == other.SHA256 {
			t.Errorf("%s: seed 7 %s, again %s, seed 8 %s", tasks[k].name, one.SHA256, again.SHA256, other.SHA256)
		}
		ids, targets := one.Windows(64)
		if len(ids) != 30 || len(held) != 30 {
			t.Fatalf("%s: %d and %d held out, want 30 of 300", tasks[k].name, len(ids), len(held))
		}
		for i, p := range held {
			if !slices.Equal(p.ids, ids[i]) || !slices.Equal(p.targets, targets[i]) {
				t.Errorf("%s: held-out puzzle %d is not the text's", tasks[k].name, i)
			}
			for at := 0; at < len(one.Learn); at += 64 {
				if slices.Equal(p.ids, one.Learn[at:at+64]) {
					t.Errorf("%s: held-out puzzle %d is learned from too", tasks[k].name, i)
				}
			}
		}
	}
}
