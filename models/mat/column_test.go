package mat

import (
	"slices"
	"testing"
)

// Every column is the row that was packed, in whole bands and in the last one.
func TestColumnsAreTheRowsThatWerePacked(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {63, 5}, {64, 64}, {65, 70}, {131, 7}, {160, 3}} {
		rows, cols := shape[0], shape[1]
		m := Of(rows, cols, make([]float32, rows*cols))
		for i := range m.Data {
			m.Data[i] = float32(i + 1)
		}
		var w Weights
		w.PackT(m)
		for j := range rows {
			got := make([]float32, cols)
			if w.Column(got, j); !slices.Equal(got, m.Row(j)) {
				t.Fatalf("%d rows of %d: column %d is %v, want %v", rows, cols, j, got, m.Row(j))
			}
		}
		for name, f := range map[string]func(){
			"beyond": func() { w.Column(make([]float32, cols), rows) },
			"length": func() { w.Column(make([]float32, cols+1), 0) },
			"rounded": func() {
				w.Round()
				w.Column(make([]float32, cols), 0)
			},
		} {
			func() {
				defer func() {
					if recover() != badColumns {
						t.Errorf("%s: no panic, or another", name)
					}
				}()
				f()
			}()
		}
	}
}
